/** `npm start`: makes a fresh clone ready (packages, build), then runs the demo. Uses nothing that is not in Node. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const program = path.join(root, 'bin', 'giro.js');

const ready =
  (isFresh('node_modules/.package-lock.json', ['package-lock.json']) ||
    step('installing packages', ['ci', '--loglevel=error'])) &&
  (isFresh('dist/main.js', ['src', 'scripts', 'tsdown.config.ts', 'package-lock.json']) ||
    step('building', ['run', 'build', '--silent']));

if (ready) {
  // In this process, so that terminal, signals and exit code are the program's own.
  process.argv = [process.execPath, program, 'demo', ...process.argv.slice(2)];
  await import(program);
} else {
  process.exitCode = 1;
}

/** Whether `made` exists and is at least as new as everything it is made from. */
function isFresh(made, sources) {
  const file = path.join(root, made);
  if (!existsSync(file)) return false;
  const time = statSync(file).mtimeMs;
  return sources.every((source) => newest(path.join(root, source)) <= time);
}

function newest(file) {
  const status = statSync(file);
  if (!status.isDirectory()) return status.mtimeMs;
  return Math.max(0, ...readdirSync(file).map((name) => newest(path.join(file, name))));
}

function step(what, npmArguments) {
  console.error(`${what}: npm ${npmArguments.join(' ')}`);
  const { status, signal, error } = spawnSync('npm', npmArguments, {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (status === 0) return true;
  console.error(`${what} failed: ${error?.message ?? (signal === null ? `exit ${String(status)}` : signal)}`);
  return false;
}

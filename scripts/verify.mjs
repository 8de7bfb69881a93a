/**
 * `npm run verify`: everything that must hold, in order, ending with a plain line `N passed, N failed`.
 * Counted are the tests that vitest reports, each protection of the mutation check, and each further step once. `--clean` installs from the lock file first
 * (what `.ci/run` asks for). Uses nothing that is not in Node.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const folder = mkdtempSync(path.join(tmpdir(), 'giro-verify-'));
const report = path.join(folder, 'tests.json');
const mutations = path.join(folder, 'mutations.json');
const tests = process.argv.includes('--clean') ? ['npm', 'cit'] : ['npm', 'test'];

/** No step is waited for longer than this. */
const limitMs = 30 * 60_000;

const steps = [
  ['types', 'npm', 'run', '--silent', 'types'],
  ['lint', 'npm', 'run', '--silent', 'lint'],
  ['format', 'npm', 'run', '--silent', 'format'],
  ['unused code', 'npm', 'run', '--silent', 'knip'],
  ['build', 'npm', 'run', '--silent', 'build'],
  ['package', 'npm', 'run', '--silent', 'publint'],
  ['start', 'npm', 'start', '--silent'],
  ['simulation', 'npm', 'run', '--silent', 'sim', '--', '--seeds', '10000', '--seconds', '110'],
  ['torture', 'npm', 'run', '--silent', 'torture', '--', '--seed', '1'],
];

const counts = { passed: 0, failed: 0 };
const failures = [];
let running;
process.once('SIGINT', interrupted).once('SIGTERM', interrupted);

const testsEnded = await run('tests', tests, { ...process.env, GIRO_TEST_REPORT: report });
countTests(testsEnded);
const mutated = ['npm', 'run', '--silent', 'mutations'];
countMutations(await run('mutations', mutated, { ...process.env, GIRO_MUTATIONS_REPORT: mutations }));
for (const [name, ...command] of steps) count(name, await run(name, command, process.env));

rmSync(folder, { recursive: true, force: true });
console.log(`\n--- result`);
for (const failure of failures) console.log(`failed: ${failure}`);
console.log(`${counts.passed} passed, ${counts.failed} failed`);
process.exitCode = counts.failed === 0 ? 0 : 1;

function count(name, ended) {
  if (ended === 'exit 0') {
    counts.passed += 1;
  } else {
    counts.failed += 1;
    failures.push(`${name} (${ended})`);
  }
}

/** Numbers come from vitest's own report; a run that failed without a failed test in it still counts as one failure. */
function countTests(ended) {
  const { passed, failed, notRun } = readReport();
  counts.passed += passed;
  counts.failed += failed;
  if (failed > 0) failures.push(`${failed} tests`);
  if (notRun > 0) console.log(`${notRun} tests were not run`);
  if (failed === 0 && (ended !== 'exit 0' || passed === 0)) count('tests', ended === 'exit 0' ? 'none ran' : ended);
}

function readReport() {
  try {
    const files = JSON.parse(readFileSync(report, 'utf8')).testResults;
    const states = files.flatMap((file) => {
      const own = file.assertionResults.map(({ status }) => status);
      // A file that could not be loaded holds no test and is no pass.
      return file.status === 'failed' && !own.includes('failed') ? [...own, 'failed'] : own;
    });
    const passed = states.filter((state) => state === 'passed').length;
    const failed = states.filter((state) => state === 'failed').length;
    return { passed, failed, notRun: states.length - passed - failed };
  } catch {
    return { passed: 0, failed: 0, notRun: 0 };
  }
}

/** Each protection counts; a check that did not come to its end, or proved nothing, is a failure. */
function countMutations(ended) {
  const { passed, failed } = readMutations();
  counts.passed += passed;
  counts.failed += failed;
  if (failed > 0) failures.push(`mutations: ${failed} protections`);
  else if (ended !== 'exit 0' || passed === 0) count('mutations', ended === 'exit 0' ? 'none ran' : ended);
}

function readMutations() {
  try {
    const { passed, failed } = JSON.parse(readFileSync(mutations, 'utf8'));
    return { passed, failed };
  } catch {
    return { passed: 0, failed: 0 };
  }
}

/** Runs one step without a terminal, in a process group of its own that is ended when its time is over. */
function run(name, [file, ...args], env) {
  console.log(`\n--- ${name}: ${[file, ...args].join(' ')}`);
  const started = Date.now();
  return new Promise((resolve) => {
    const child = spawn(file, args, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'], detached: true });
    running = child;
    const timer = setTimeout(() => endGroup(child, 'SIGKILL'), limitMs);
    const settle = (how) => {
      clearTimeout(timer);
      running = undefined;
      console.log(`--- ${name}: ${how}, ${((Date.now() - started) / 1000).toFixed(1)} s`);
      resolve(how);
    };
    child.once('error', (error) => settle(error.message));
    child.once('exit', (code, signal) => settle(signal === null ? `exit ${code}` : `ended by ${signal}`));
  });
}

/** Interrupted: the step goes with it, and nothing is counted. */
function interrupted(signal) {
  if (running !== undefined) endGroup(running, signal);
  rmSync(folder, { recursive: true, force: true });
  process.kill(process.pid, signal);
}

function endGroup(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch {
    // It is gone already.
  }
}

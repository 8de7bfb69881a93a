import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdir, readFile, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { temporaryFolder } from '../rig/temp.js';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** What a program did. */
export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A program of its own that uses `src/platform`, for what cannot be seen from inside: exits, crashes, races, limits. */
export interface Program {
  readonly folder: string;
  /** Runs it to its end, below a shell prefix such as `ulimit -n 64;`. */
  readonly run: (args?: readonly string[], prefix?: string) => Promise<Outcome>;
  /** Starts it and leaves it running. */
  readonly start: (args?: readonly string[]) => ChildProcess;
}

/** Compiles `src/platform` and a module that imports from `./platform/*.js`. */
export async function program(source: string): Promise<Program> {
  const { path: folder } = await temporaryFolder();
  await mkdir(join(folder, 'platform'));
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  const names = (await readdir(join(root, 'src', 'platform'))).map((name) => join('platform', name));
  for (const name of ['failure.ts', ...names]) {
    const text = await readFile(join(root, 'src', name), 'utf8');
    await writeFile(join(folder, name.replace(/\.ts$/, '.js')), compiled(text));
  }
  await writeFile(join(folder, 'main.js'), source);
  const main = join(folder, 'main.js');
  return {
    folder,
    run: (args = [], prefix = '') =>
      new Promise((resolve) => {
        const line = `${prefix} exec "$0" "$@"`;
        execFile(
          'sh',
          ['-c', line, process.execPath, main, ...args],
          { cwd: folder, timeout: 30_000 },
          (error, stdout, stderr) => {
            const code = error === null ? 0 : typeof error.code === 'number' ? error.code : null;
            resolve({ code, stdout, stderr });
          },
        );
      }),
    start: (args = []) => spawn(process.execPath, [main, ...args], { cwd: folder, stdio: ['pipe', 'pipe', 'inherit'] }),
  };
}

function compiled(text: string): string {
  const compilerOptions = { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ES2022, verbatimModuleSyntax: true };
  return ts.transpileModule(text, { compilerOptions }).outputText;
}

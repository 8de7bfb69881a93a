import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, readFile, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../rig/temp.js';

const root = path.dirname(path.dirname(import.meta.dirname));

test('a fresh clone is installed and built, then the demo runs', async () => {
  const clone = await freshClone();
  const { code, stdout } = await start(clone, ['--plain']);
  expect(stdout).toBe('demo --plain\n');
  expect(code).toBe(0);
  expect(await asked(clone)).toEqual(['ci', 'run build']);
});

test('what is there and current is not made again', async () => {
  const clone = await freshClone();
  await start(clone);
  await start(clone);
  expect(await asked(clone)).toEqual(['ci', 'run build']);
});

test('a changed source is built again, without installing', async () => {
  const clone = await freshClone();
  await start(clone);
  await touch(path.join(clone, 'src/deep/file.ts'));
  await start(clone);
  expect(await asked(clone)).toEqual(['ci', 'run build', 'run build']);
});

test('a changed lock file installs and builds again', async () => {
  const clone = await freshClone();
  await start(clone);
  await touch(path.join(clone, 'package-lock.json'));
  await start(clone);
  expect(await asked(clone)).toEqual(['ci', 'run build', 'ci', 'run build']);
});

test('a failing install ends it with 1 and says what failed', async () => {
  const clone = await freshClone();
  await writeFile(path.join(clone, 'fails'), '');
  const { code, stdout, stderr } = await start(clone);
  expect(code).toBe(1);
  expect(stdout).toBe('');
  expect(stderr).toContain('installing packages failed: exit 7');
});

test('the exit code is that of the demo', async () => {
  const clone = await freshClone();
  expect((await start(clone, ['2'])).code).toBe(2);
});

/** A clone whose npm writes down what it is asked for, and makes what npm would make. */
async function freshClone(): Promise<string> {
  const { path: clone } = await temporaryFolder();
  const files = {
    'package.json': '{"type":"module"}',
    'package-lock.json': '{}',
    'tsdown.config.ts': '',
    'src/deep/file.ts': '',
    'bin/giro.js': "console.log(process.argv.slice(2).join(' ')); process.exitCode = Number(process.argv[3]) || 0;\n",
    'tools/npm': `#!/bin/sh
if [ -e fails ]; then exit 7; fi
if [ "$1" = ci ]; then echo ci >>asked; mkdir -p node_modules; echo >node_modules/.package-lock.json
else echo "$1 $2" >>asked; mkdir -p dist; echo >dist/main.js; fi
`,
  };
  for (const [name, content] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(clone, name)), { recursive: true });
    await writeFile(path.join(clone, name), content);
  }
  await cp(path.join(root, 'scripts/start.mjs'), path.join(clone, 'scripts/start.mjs'));
  await chmod(path.join(clone, 'tools/npm'), 0o755);
  return clone;
}

async function asked(clone: string): Promise<readonly string[]> {
  return (await readFile(path.join(clone, 'asked'), 'utf8')).trim().split('\n');
}

/** Gives a file a time after everything made so far. */
async function touch(file: string): Promise<void> {
  const later = new Date(Date.now() + 60_000);
  await utimes(file, later, later);
}

function start(
  clone: string,
  args: readonly string[] = [],
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  const env = { ...process.env, PATH: `${path.join(clone, 'tools')}:${process.env['PATH'] ?? ''}` };
  return new Promise((resolve) => {
    execFile(process.execPath, ['scripts/start.mjs', ...args], { cwd: clone, env }, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1, stdout, stderr });
    });
  });
}

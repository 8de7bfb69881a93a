import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../rig/temp.js';

const root = path.dirname(path.dirname(import.meta.dirname));
const further = 9;
/** Protections that the mutation check proves, unless a test says otherwise. */
const proved = 3;

test('counts the tests that ran and every further step', async () => {
  const { code, lines } = await verify({ report: [file('passed', ['passed', 'passed'])] });
  expect(lines.at(-1)).toBe(`${2 + proved + further} passed, 0 failed`);
  expect(code).toBe(0);
});

test('counts failed tests, and a failed step once, and goes on to the last step', async () => {
  const report = [file('failed', ['passed', 'failed', 'failed'])];
  const { code, lines } = await verify({ report, failing: ['test', 'run --silent lint'] });
  expect(lines.at(-1)).toBe(`${1 + proved + further - 1} passed, 3 failed`);
  expect(lines).toContain('failed: 2 tests');
  expect(lines).toContain('failed: lint (exit 3)');
  expect(code).toBe(1);
});

test('every file that could not be loaded is a failure, and what else failed is not hidden by it', async () => {
  const report = [file('failed', []), file('failed', []), file('failed', ['failed', 'passed'])];
  const { lines } = await verify({ report, failing: ['test'] });
  expect(lines.at(-1)).toBe(`${1 + proved + further} passed, 3 failed`);
});

test.each([
  ['a file that could not be loaded', [file('failed', []), file('passed', ['passed'])], 1],
  ['an error outside of every test', [file('passed', ['passed'])], 1],
  ['no report at all', undefined, 0],
])('a run of tests that fails counts as failed for %s', async (_what, report, passed) => {
  const { code, lines } = await verify({ report, failing: ['test'] });
  expect(lines.at(-1)).toBe(`${passed + proved + further} passed, 1 failed`);
  expect(code).toBe(1);
});

test('no test run at all is a failure, and skipped ones are said', async () => {
  const { code, lines } = await verify({ report: [file('passed', ['pending', 'todo'])] });
  expect(lines.at(-1)).toBe(`${proved + further} passed, 1 failed`);
  expect(lines).toContain('2 tests were not run');
  expect(code).toBe(1);
});

test.each([
  ['protections that are not proved count each', { passed: 2, failed: 2 }, ['run --silent mutations'], 2, 2],
  ['a mutation check that failed without a count', undefined, ['run --silent mutations'], 0, 1],
  ['one that proved nothing', { passed: 0, failed: 0 }, [], 0, 1],
])('%s', async (_what, mutations, failing, passed, failed) => {
  const { code, lines } = await verify({ report: [file('passed', ['passed'])], mutations, failing });
  expect(lines.at(-1)).toBe(`${1 + passed + further} passed, ${failed} failed`);
  expect(code).toBe(1);
});

test('installs from the lock file first when asked to', async () => {
  const { lines } = await verify({ report: [file('passed', ['passed'])], args: ['--clean'] });
  expect(lines.some((line) => line.startsWith('--- tests: npm cit'))).toBe(true);
});

interface FileResult {
  readonly status: string;
  readonly assertionResults: readonly { readonly status: string }[];
}

function file(status: string, tests: readonly string[]): FileResult {
  return { status, assertionResults: tests.map((state) => ({ status: state })) };
}

/** Runs the script with an npm that writes the report and fails where it is told to. */
async function verify({
  report,
  failing = [],
  args = [],
  ...more
}: {
  readonly report: readonly FileResult[] | undefined;
  readonly failing?: readonly string[];
  readonly args?: readonly string[];
  /** What the mutation check reports; all is proved when absent. */
  readonly mutations?: { readonly passed: number; readonly failed: number } | undefined;
}): Promise<{ readonly code: number; readonly lines: readonly string[] }> {
  const { path: clone } = await temporaryFolder();
  await mkdir(path.join(clone, 'tools'));
  await cp(path.join(root, 'scripts/verify.mjs'), path.join(clone, 'scripts/verify.mjs'));
  if (report !== undefined) await writeFile(path.join(clone, 'report.json'), JSON.stringify({ testResults: report }));
  const mutations = 'mutations' in more ? more.mutations : { passed: proved, failed: 0 };
  if (mutations !== undefined) await writeFile(path.join(clone, 'mutations.json'), JSON.stringify(mutations));
  await writeFile(
    path.join(clone, 'tools/npm'),
    `#!/bin/sh
case "$1" in test|cit) [ -e report.json ] && cp report.json "$GIRO_TEST_REPORT" ;; esac
case "$*" in *mutations) [ -e mutations.json ] && cp mutations.json "$GIRO_MUTATIONS_REPORT" ;; esac
case "|${failing.join('|')}|" in *"|$*|"*) exit 3 ;; esac
exit 0
`,
  );
  await chmod(path.join(clone, 'tools/npm'), 0o755);
  const env = { ...process.env, PATH: `${path.join(clone, 'tools')}:${process.env['PATH'] ?? ''}` };
  return new Promise((resolve) => {
    execFile(process.execPath, ['scripts/verify.mjs', ...args], { cwd: clone, env }, (error, stdout) => {
      const code = typeof error?.code === 'number' ? error.code : error === null ? 0 : -1;
      resolve({ code, lines: stdout.trim().split('\n') });
    });
  });
}

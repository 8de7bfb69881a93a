/** What vitest, jest and mocha print at their end. Pure. */
import { countedWords, evidenceOf, once, sumOf, type Reader } from './reading.js';

/** Reads vitest: ` Tests  2 failed | 3 passed | 1 skipped (6)`. */
export const readVitest: Reader = (lines) => {
  let [ran, failed, skipped, isThere] = [0, 0, 0, false];
  const [failures, passes] = [new Array<string>(), new Array<string>()];
  let part: 'suites' | 'tests' | null = null;
  for (const line of lines) {
    const closing = /^ +(Tests|Errors) {2}(.+)$/.exec(line);
    const section = /⎯ Failed (Suites|Tests) (\d+) ⎯/.exec(line);
    const failure = /^ FAIL {2}(.+)$/.exec(line);
    const pass = /^ [✓√] (.+ > .+)$/.exec(line);
    if (closing !== null) {
      const words = countedWords(closing[2] ?? '');
      isThere = true;
      ran += sumOf(words, 'passed', 'failed');
      failed += sumOf(words, 'failed', 'error', 'errors');
      skipped += sumOf(words, 'skipped', 'todo');
      part = null;
    } else if (section !== null) {
      part = section[1] === 'Suites' ? 'suites' : 'tests';
      if (part === 'suites') failed += Number(section[2]);
    } else if (failure !== null && part === 'tests') failures.push(failure[1] ?? '');
    else if (pass !== null) passes.push((pass[1] ?? '').replace(/ \d+(?:\.\d+)?m?s(?: \(.*\))?$/, ''));
    else if (/^No test files found, exiting with code \d/.test(line)) isThere = true;
  }
  return isThere
    ? evidenceOf({ runner: 'vitest', tests: ran, failed, skipped, failures: once(failures), passes })
    : null;
};

/** Reads jest: `Tests:       2 failed, 1 skipped, 3 passed, 6 total`. */
export const readJest: Reader = (lines) => {
  let [ran, failed, skipped, isThere] = [0, 0, 0, false];
  const failures: string[] = [];
  let file = '';
  for (const line of lines) {
    const closing = /^Tests: +(.*\d+ total)$/.exec(line);
    const from = /^ *FAIL +(?:\S+ {2})?(\S.*?)(?: \([\d.]+ m?s\))?$/.exec(line);
    const failure = /^ {2}● (.+)$/.exec(line)?.[1];
    if (closing !== null) {
      const words = countedWords(closing[1] ?? '');
      isThere = true;
      ran += sumOf(words, 'passed', 'failed');
      failed += sumOf(words, 'failed');
      skipped += sumOf(words, 'skipped', 'todo', 'pending');
    } else if (from !== null) file = (from[1] ?? '').replace(/^\.\//, '');
    else if (failure === 'Test suite failed to run') failed += 1;
    else if (failure !== undefined && file !== '') failures.push(`${file} › ${failure}`);
    else if (/^No tests found, exiting with code \d/.test(line)) isThere = true;
    else if (/^ *PASS /.test(line)) file = '';
  }
  return isThere ? evidenceOf({ runner: 'jest', tests: ran, failed, skipped, failures: once(failures) }) : null;
};

/** Reads mocha: `  3 passing (4ms)`, `  2 pending`, `  2 failing`, and the numbered list below. */
export const readMocha: Reader = (lines) => {
  let [ran, failed, skipped, isThere, isListing] = [0, 0, 0, false, false];
  const failures: string[] = [];
  for (const [index, line] of lines.entries()) {
    const closing = /^ {2}(\d+) (passing|pending|failing)(?: \([^)]*\))?$/.exec(line);
    if (closing !== null) {
      const number = Number(closing[1]);
      const word = closing[2];
      if (word === 'passing') isThere = true;
      if (word === 'pending') skipped += number;
      else ran += number;
      if (word === 'failing') failed += number;
      isListing = word === 'failing' && number > 0;
    } else if (isListing && /^ {2}\d+\) /.test(line)) {
      const title = mochaTitle(lines.slice(index, index + 20));
      // A hook is no test: what it broke cannot be named.
      if (title !== null && !/^"(?:before|after) (?:all|each)" hook/.test(title.at(-1) ?? ''))
        failures.push(title.join(' › '));
    }
  }
  return isThere ? evidenceOf({ runner: 'mocha', tests: ran, failed, skipped, failures }) : null;
};

/** A title has a line for each level, and ends with a colon. */
function mochaTitle(lines: readonly string[]): readonly string[] | null {
  const title: string[] = [];
  for (const line of lines) {
    const text = title.length === 0 ? line.replace(/^ {2}\d+\) /, '') : /^ {5,}(\S.*)$/.exec(line)?.[1];
    if (text === undefined) return null;
    if (text.endsWith(':')) return [...title, text.slice(0, -1)];
    title.push(text);
  }
  return null;
}

/**
 * A file that could not be loaded is listed like a test, by its path, which Node 20 cuts down to what is below the folder.
 * What it would have tested is not known.
 */
export function isFileName(test: string): boolean {
  return /^(?:(?:\/|[A-Za-z]:\\).*|[\w@.+-]+(?:[\\/][\w@.+-]+)*)\.[cm]?[jt]sx?$/.test(test);
}

/** Reads the spec reporter of node:test: `ℹ tests 7`, `ℹ pass 3`, and the list of failing tests. */
export const readNodeSpec: Reader = (lines) => {
  const counts = new Map<string, number>();
  const failures: string[] = [];
  let [isListing, file] = [false, ''];
  for (const [index, line] of lines.entries()) {
    const closing = /^ℹ (tests|pass|fail|cancelled|skipped|todo) (\d+)$/.exec(line);
    const at = /^test at (.+):\d+:\d+$/.exec(line);
    const failure = /^✖ (.+?) \([\d.]+ms\)/.exec(line);
    if (closing !== null) {
      counts.set(closing[1] ?? '', (counts.get(closing[1] ?? '') ?? 0) + Number(closing[2]));
      isListing = false;
    } else if (line === '✖ failing tests:') isListing = true;
    else if (at !== null) file = at[1] ?? '';
    else if (failure !== null && isListing && !/^ {2}'\d+ subtests? failed'$/.test(lines[index + 1] ?? '')) {
      if (!isFileName(failure[1] ?? '')) failures.push(`${file} › ${failure[1] ?? ''}`);
    }
  }
  if (!counts.has('tests') || !counts.has('pass')) return null;
  const failed = sumOf(counts, 'fail', 'cancelled');
  const tests = sumOf(counts, 'pass') + failed;
  return evidenceOf({ runner: 'node:test', tests, failed, skipped: sumOf(counts, 'skipped', 'todo'), failures });
};

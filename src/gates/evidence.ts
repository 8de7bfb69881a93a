/** What a gate's output says that was tested, and whether that is enough for a pass. Pure. */
import type { Evidence } from '../issue.js';
import { printableLines } from '../platform/text.js';
import type { GateRules } from '../policy.js';
import { readGo, readGoJson } from './read-go.js';
import { readJest, readMocha, readNodeSpec, readVitest } from './read-javascript.js';
import { readPytest, readUnittest } from './read-python.js';
import { readCargo, readNextest } from './read-rust.js';
import { readTap } from './read-tap.js';
import { linesByPrefix } from './read-prefixed.js';
import { sumEvidence, type Reader } from './reading.js';

const readers: readonly Reader[] = [
  readVitest,
  readJest,
  readMocha,
  readNodeSpec,
  readPytest,
  readUnittest,
  readGo,
  readGoJson,
  // The one quotes the other.
  (lines) => readNextest(lines) ?? readCargo(lines),
];

/**
 * Reads what the runners printed at their end, several of them added up; `null`: no runner that is known printed anything.
 * `isWhole`: the text is the whole output, not only its end.
 */
export function readEvidence(output: string, isWhole: boolean): Evidence | null {
  const lines = plainLines(output);
  const found = readLines(lines, isWhole) ?? readPrefixed(lines, isWhole);
  // What ran before the part that is left may have been more.
  return found?.tests === 0 && !isWhole && found.failed === 0 ? null : found;
}

function readLines(lines: readonly string[], isWhole: boolean): Evidence | null {
  const found = sumEvidence(
    [...readers.map((read) => read(lines)), readTap(lines, isWhole)].filter((one) => one !== null),
  );
  return found === null ? null : { ...found, failed: found.failed + lines.filter(isUnmetThreshold).length };
}

/** Coverage that is too low is a failure without a test: of vitest, c8, nyc and tap, of jest, of pytest. */
function isUnmetThreshold(line: string): boolean {
  return /^(?:ERROR: (?:Coverage for|Coverage failure|incomplete coverage)|Jest: .*\bthreshold\b|(?:FAIL|ERROR:?) Required test coverage)/.test(
    line,
  );
}

/** What task runners print of several packages: each has a prefix of its own, which becomes part of the tests' names. */
function readPrefixed(lines: readonly string[], isWhole: boolean): Evidence | null {
  const found = [...linesByPrefix(lines)].flatMap(([prefix, own]) => {
    const evidence = readLines(own, isWhole);
    return evidence === null ? [] : [withPrefix(evidence, prefix)];
  });
  return sumEvidence(found);
}

function withPrefix(evidence: Evidence, prefix: string): Evidence {
  const named = (names: readonly string[]): readonly string[] => names.map((name) => `${prefix} › ${name}`);
  const { failures, passes } = evidence;
  return {
    ...evidence,
    failures: named(failures),
    ...(passes === undefined ? {} : { passes: named(passes) }),
  };
}

/** Tells whether every failure is known by name: only then failures can be compared. */
export function isNamed(evidence: Evidence | null): evidence is Evidence {
  return evidence !== null && evidence.failed > 0 && evidence.failures.length === evidence.failed;
}

/** Says what a green run lacks to be evidence; `null`: nothing. */
export function whyVacuous(evidence: Evidence | null, { minTests }: Pick<GateRules, 'minTests'>): string | null {
  if (minTests !== null) return lessThan(minTests, evidence);
  if (evidence?.tests !== 0) return null;
  if (evidence.skipped === 0) return `passed without a test: ${evidence.runner} ran none`;
  const tests = evidence.skipped === 1 ? 'its only test was' : `all its ${String(evidence.skipped)} tests were`;
  return `passed without a test: ${tests} skipped or filtered out (${evidence.runner})`;
}

function lessThan(minimum: number, evidence: Evidence | null): string | null {
  const wanted = `min-tests is ${String(minimum)}`;
  if (evidence === null)
    return `passed, but does not say how many tests ran (${wanted}): no runner that giro reads printed its closing lines`;
  if (evidence.tests === null)
    return `passed, but ${evidence.runner} does not say how many tests ran (${wanted}): let it list them, such as with -v`;
  if (evidence.tests >= minimum) return null;
  const skipped = evidence.skipped === 0 ? '' : `, ${String(evidence.skipped)} were skipped or filtered out`;
  return `passed with too few tests: ${String(evidence.tests)} ran (${wanted})${skipped}`;
}

/** Finds the first line of an output that a pattern matches; only the start of a very long line is looked at. */
export function matchingLine(output: string, pattern: string): string | null {
  const expression = new RegExp(pattern, 'u');
  return plainLines(output).find((line) => expression.test(line)) ?? null;
}

const longestLine = 4_096;

/** The lines without colours and without blanks at their end; most are plain already. */
export function plainLines(output: string): readonly string[] {
  return output.split('\n').map((line) => {
    const start = line.length > longestLine ? line.slice(0, longestLine) : line;
    return (/^[\x20-\x7e]*$/.test(start) ? start : printableLines(start)).trimEnd();
  });
}

/** Shows evidence in a few words: `48 tests, 1 failed`. */
export function formatEvidence({ tests, failed, skipped }: Evidence): string {
  const ran = tests === null ? 'tests ran' : `${String(tests)} ${tests === 1 ? 'test' : 'tests'}`;
  return [
    ran,
    ...(failed === 0 ? [] : [`${String(failed)} failed`]),
    ...(skipped === 0 ? [] : [`${String(skipped)} skipped`]),
  ].join(', ');
}

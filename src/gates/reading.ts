/** What one reader finds in the output of one kind of test runner, and how several add up. Pure. */
import type { Evidence } from '../issue.js';
import { printable } from '../platform/text.js';

/** Reads what one kind of runner printed; `null`: nothing of it is there. Lines are without colours. */
export type Reader = (lines: readonly string[]) => Evidence | null;

/** What a reader has counted. */
export interface Counted {
  readonly runner: string;
  /** `null`: some ran, nobody knows how many. */
  readonly tests: number | null;
  readonly failed: number;
  readonly skipped: number;
  readonly failures: readonly string[];
  /** Names that passed, as far as they were seen. */
  readonly passes?: readonly string[];
}

/** More names than this are not kept: they would fill logs and records. */
const mostNames = 5_000;
const longestName = 500;

/** Makes evidence: names safe, unlike each other and bounded; passes only when every one of them is known. */
export function evidenceOf({ runner, tests, failed, skipped, failures, passes = [] }: Counted): Evidence {
  const evidence = { runner, tests, failed, skipped, failures: identities(failures).slice(0, mostNames) };
  const complete = tests !== null && tests - failures.length === passes.length && passes.length <= mostNames;
  return complete && passes.length > 0 ? { ...evidence, passes: identities(passes) } : evidence;
}

/** Adds up what several runners, or several runs of one, have shown; `null` when there is nothing. */
export function sumEvidence(all: readonly Evidence[]): Evidence | null {
  const [first, ...rest] = all;
  if (first === undefined) return null;
  return rest.reduce(added, first);
}

function added(left: Evidence, right: Evidence): Evidence {
  const sum = {
    runner: left.runner === right.runner ? left.runner : `${left.runner} + ${right.runner}`,
    tests: left.tests === null || right.tests === null ? null : left.tests + right.tests,
    failed: left.failed + right.failed,
    skipped: left.skipped + right.skipped,
    failures: identities([...left.failures, ...right.failures]),
  };
  if (left.passes === undefined || right.passes === undefined) return sum;
  return { ...sum, passes: identities([...left.passes, ...right.passes]) };
}

/** Tells apart tests of the same name by counting them, so that none hides another. */
function identities(names: readonly string[]): readonly string[] {
  const seen = new Map<string, number>();
  return names.map((raw) => {
    const name = printable(raw).slice(0, longestName);
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    return count === 1 ? name : `${name} (${String(count)})`;
  });
}

/** Reads counted words, such as `2 failed | 1 passed`, into a sum for each word. */
export function countedWords(text: string): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const [, number, word] of text.matchAll(/(\d+) ([a-z]+(?: [a-z]+)?)/g)) {
    if (number === undefined || word === undefined) continue;
    found.set(word, (found.get(word) ?? 0) + Number(number));
  }
  return found;
}

/** Adds the numbers of some words. */
export function sumOf(words: ReadonlyMap<string, number>, ...names: readonly string[]): number {
  return names.reduce((sum, name) => sum + (words.get(name) ?? 0), 0);
}

/** Leaves out what was seen before, keeping order. */
export function once(names: readonly string[]): readonly string[] {
  return [...new Set(names)];
}

/**
 * Tests that shrink: fewer of them, fewer assertions, tests that were emptied, new skips and selections. Counted over the
 * whole difference, so that tests may be renamed, moved, split and joined.
 */
import type { Finding } from '../issue.js';
import { textOf, type Content } from './guard-contents.js';
import { countTests, nothing, type Mark, type TestCount } from './guard-count.js';
import { matcher } from './guard-globs.js';
import { guardFinding, inIssue, type GuardRule, type RuleContext } from './guard-rule.js';
import { testLanguage, type Language } from './guard-languages.js';

interface Counted {
  readonly path: string;
  readonly before: TestCount;
  readonly after: TestCount;
  readonly allowed: boolean;
}

/** Finds what the work takes away from the tests. */
export function shrinkRule({ work, testsAllow }: RuleContext): GuardRule {
  const languageOf = testFiles(work.policy.protect.tests);
  const more = work.policy.protect.assertions.map((pattern) => new RegExp(pattern, 'gm'));
  const seen: Counted[] = [];
  const count = (path: string, content: Content | null, language: Language): TestCount =>
    content?.kind === 'text' && !isLarge(content)
      ? countTests({ path, text: textOf(content) }, language, more)
      : nothing;
  return {
    needsBefore: ({ path }) => languageOf(path) !== null,
    see({ change, before, after }) {
      const language = languageOf(change.path);
      // What cannot be compared with anything; whoever makes a file so large has taken its tests away.
      if (language === null || isLarge(before)) return;
      // What an Issue may take away is not missed, wherever it went.
      const allowed = testsAllow(change.path);
      const was = allowed ? nothing : count(change.path, before, language);
      seen.push({ path: change.path, allowed, before: was, after: count(change.path, after, language) });
    },
    findings() {
      const allow = (path: string): string => inIssue('tests', path);
      return shrunk(seen).map((found) => guardFinding(work, { rule: 'shrink', allow: allow(found.file), ...found }));
    },
  };
}

/** Nobody writes such tests; counting in them would only take time. */
function isLarge(content: Content | null): boolean {
  return content?.kind === 'large' || (content?.kind === 'text' && content.bytes > 2 * 1024 * 1024);
}

/** Tells files with tests, and their language, from others. */
export function testFiles(globs: readonly string[]): (path: string) => Language | null {
  const named = matcher(globs);
  return (path) => testLanguage(path, named(path));
}

type Found = Required<Pick<Finding, 'file' | 'message'>> & Pick<Finding, 'line'>;

function shrunk(seen: readonly Counted[]): readonly Found[] {
  const emptied = emptiedTests(seen);
  const rows = gained(seen, (count) => count.rows);
  const tests = fallOf(seen, (count) => count.tests);
  const assertions = fallOf(seen, (count) => count.assertions);
  const findings = [...emptied, ...newMarks(seen)];
  if (tests !== null && tests.before - tests.after > rows) {
    findings.push({ file: tests.file, message: fewer('test', tests) });
  } else if (emptied.length === 0 && assertions !== null && assertions.before - assertions.after > rows) {
    findings.push({ file: assertions.file, message: fewer('assertion', assertions) });
  }
  return findings;
}

interface Fall {
  readonly before: number;
  readonly after: number;
  /** Where most of it was lost. */
  readonly file: string;
}

function fallOf(seen: readonly Counted[], of: (count: TestCount) => number): Fall | null {
  const before = seen.reduce((sum, file) => sum + of(file.before), 0);
  const after = seen.reduce((sum, file) => sum + of(file.after), 0);
  const losses = seen.map((file) => ({ file: file.path, lost: of(file.before) - of(file.after) }));
  const [most] = losses.sort((left, right) => right.lost - left.lost);
  return after < before && most !== undefined ? { before, after, file: most.file } : null;
}

function gained(seen: readonly Counted[], of: (count: TestCount) => number): number {
  return Math.max(
    0,
    seen.reduce((sum, file) => sum + of(file.after) - of(file.before), 0),
  );
}

function fewer(what: string, { before, after }: Fall): string {
  const lost = before - after;
  const things = `${String(lost)} ${what}${lost === 1 ? '' : 's'}`;
  return `${things} fewer in the changed test files (${String(before)} before, ${String(after)} now); put them back`;
}

/** Tests that kept their name and lost all that they did. */
function emptiedTests(seen: readonly Counted[]): readonly Found[] {
  return seen.flatMap(({ path, before, after }) =>
    [...before.named].flatMap(([name, was]) => {
      const is = after.named.get(name);
      if (was.assertions === 0 || is?.empty !== true) return [];
      return [{ file: path, line: is.line, message: `the test ${JSON.stringify(name)} was emptied; put it back` }];
    }),
  );
}

function newMarks(seen: readonly Counted[]): readonly Found[] {
  const files = seen.filter(({ allowed }) => !allowed);
  const left = new Map<string, number>();
  for (const { text } of files.flatMap(({ before }) => before.marks)) left.set(text, (left.get(text) ?? 0) + 1);
  const fresh: { readonly path: string; readonly mark: Mark }[] = [];
  for (const { path, after } of files) {
    for (const mark of after.marks) {
      const known = left.get(mark.text) ?? 0;
      if (known > 0) left.set(mark.text, known - 1);
      else fresh.push({ path, mark });
    }
  }
  // A mark may be written in another way; only more of them take something away.
  const more = Math.max(0, fresh.length - [...left.values()].reduce((sum, count) => sum + count, 0));
  return fresh.slice(0, more).map(({ path, mark }) => ({
    file: path,
    line: mark.line,
    message: `a new ${JSON.stringify(mark.text)}, which keeps tests from running; take it out`,
  }));
}

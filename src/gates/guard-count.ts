/** Counts tests, assertions and marks in one file. Pure; what only looks like code (comments, strings) does not count. */
import { codeOf } from './guard-source.js';
import { countBelow, linesIn } from './guard-contents.js';
import type { Language } from './guard-languages.js';

/** What a file with tests holds. */
export interface TestCount {
  readonly tests: number;
  readonly assertions: number;
  /** Rows of tables without a head; they only ever speak for a file. */
  readonly rows: number;
  readonly marks: readonly Mark[];
  /** By name; of equal names the first. */
  readonly named: ReadonlyMap<string, NamedTest>;
}

/** A skip or a selection. */
export interface Mark {
  readonly line: number;
  /** As written, such as `it.skip`. */
  readonly text: string;
}

/** One test with a name. */
export interface NamedTest {
  readonly line: number;
  readonly assertions: number;
  /** Nothing is called in it. */
  readonly empty: boolean;
}

/** A file that is not there. */
export const nothing: TestCount = { tests: 0, assertions: 0, rows: 0, marks: [], named: new Map() };

interface Segment {
  readonly start: number;
  readonly bodyStart: number;
  readonly end: number;
  readonly head: string;
  /** Rows of the tables that this test is run over. */
  readonly weight: number;
  readonly assertions: number;
}

/** Counts one file. `more`: further patterns of assertions. */
export function countTests(
  source: { readonly path: string; readonly text: string },
  language: Language,
  more: readonly RegExp[] = [],
): TestCount {
  const whole = codeOf(source.text, language.syntax);
  const begin = language.begin?.(source.path, whole) ?? 0;
  const code = begin === 0 ? whole : ' '.repeat(begin) + whole.slice(begin);
  const counted = code.replace(language.trivial, (match) => ' '.repeat(match.length));
  const places = [language.assertions, ...more].flatMap((pattern) => placesOf(pattern, counted)).sort((a, b) => a - b);
  const segments = segmentsOf(code, language, places);
  const first = segments[0]?.start ?? code.length;
  const lineAt = linesIn(code);
  const marks = [...code.matchAll(language.marks)].map((match) => ({
    line: lineAt(match.index + match[0].length - match[0].trimStart().length),
    text: match[0].trim().replace(/[\s({,`.]+$|^[{,(]\s*/g, ''),
  }));
  return {
    tests: segments.reduce((sum, { weight }) => sum + weight, 0),
    assertions:
      countBelow(places, first) + segments.reduce((sum, { weight, assertions }) => sum + weight * assertions, 0),
    rows: language.rows === undefined ? 0 : placesOf(language.rows, code).length,
    marks,
    named: namesOf(source.text, counted, { segments, lineAt }),
  };
}

function placesOf(pattern: RegExp, code: string): readonly number[] {
  return [...code.matchAll(pattern)].map((match) => match.index);
}

function segmentsOf(code: string, language: Language, assertions: readonly number[]): readonly Segment[] {
  const tests = [...code.matchAll(language.tests)];
  const tables = tablesOf(code, language);
  // Tables that are never closed may be read to the end, but not again and again.
  const budget = { left: 4 * code.length };
  let next = 0;
  return tests.map((match, at) => {
    const start = match.index;
    const bodyStart = start + match[0].length;
    const end = tests[at + 1]?.index ?? code.length;
    const before = tests[at - 1];
    const from = before === undefined ? 0 : before.index + before[0].length;
    let weight = 1;
    // A table stands in the head of its test, or between the test before and it.
    for (let table = tables[next]; table !== undefined && table.index < bodyStart; table = tables[next]) {
      if (table.index >= from) weight *= rowsAt(code, table.open, budget);
      next += 1;
    }
    const inside = countBelow(assertions, end) - countBelow(assertions, start);
    return { start, bodyStart, end, head: match[0], weight, assertions: inside };
  });
}

interface Table {
  readonly index: number;
  /** Where its list begins. */
  readonly open: number;
}

/** Tables that stand where they are used, and those that are named there and stand in the same file. */
function tablesOf(code: string, { tables, namedTables }: Language): readonly Table[] {
  const here = [...code.matchAll(tables ?? never)].map((match) => ({
    index: match.index,
    open: match.index + match[0].length,
  }));
  const lists = namedTables === undefined ? new Map<string, number>() : listsIn(code);
  const elsewhere = [...code.matchAll(namedTables ?? never)].flatMap((match) => {
    const open = lists.get(match[1] ?? '');
    return open === undefined ? [] : [{ index: match.index, open }];
  });
  return [...here, ...elsewhere].sort((left, right) => left.index - right.index);
}

const never = /(?!)/g;

/** Where the list of each name begins that is given one; of equal names the first. */
function listsIn(code: string): ReadonlyMap<string, number> {
  const lists = new Map<string, number>();
  for (const match of code.matchAll(
    /(?<![\w.$])([A-Za-z_$][\w$]{0,80})(?::[^=\n]{0,200})?[ \t]{0,20}=\s{0,200}(?=[[(])/g,
  )) {
    const name = match[1] ?? '';
    if (!lists.has(name)) lists.set(name, match.index + match[0].length);
  }
  return lists;
}

/** Rows of the list that begins at a place: what its outermost commas separate, or the lines of a template. */
function rowsAt(code: string, open: number, budget: { left: number }): number {
  if (code[open] === '`') return Math.max(1, code.slice(open, code.indexOf('`', open + 1)).split('\n').length - 2);
  let depth = 0;
  let rows = 0;
  let filled = false;
  for (let at = open; at < code.length && budget.left > 0; at += 1, budget.left -= 1) {
    const char = code[at] ?? '';
    if ('([{'.includes(char)) depth += 1;
    else if (')]}'.includes(char)) depth -= 1;
    if (depth === 0) return Math.max(1, rows + (filled ? 1 : 0));
    if (char === ',' && depth === 1) {
      rows += 1;
      filled = false;
    } else if (depth > 1 || (at > open && !/\s/.test(char))) filled = true;
  }
  return 1;
}

function namesOf(
  text: string,
  code: string,
  { segments, lineAt }: { readonly segments: readonly Segment[]; readonly lineAt: (index: number) => number },
): ReadonlyMap<string, NamedTest> {
  const named = new Map<string, NamedTest>();
  for (const { head, start, bodyStart, end, assertions } of segments) {
    const name = nameOf(head, text.slice(bodyStart - 1, bodyStart + 400));
    if (name === null || named.has(name)) continue;
    // What decorates the next test stands behind this one.
    const [own = ''] = code.slice(bodyStart, end).split(/\n[ \t]*(?:@|#\[)/);
    const body = own.replace(/\b(?:function|async|done|func)\b/g, '');
    const empty = assertions === 0 && !/[\w$\])]\s*[(`]|\w!\s*[([]/.test(body);
    named.set(name, { line: lineAt(start + head.length - head.trimStart().length), assertions, empty });
  }
  return named;
}

/** `def test_x(` and the like name themselves; else the first string does. */
function nameOf(head: string, after: string): string | null {
  const own = /\b(?:def|func)\s+(?:\([^)]*\)\s*)?(\w+)/.exec(head)?.[1];
  return own ?? /^[(\s`"']*?(["'`])((?:\\.|(?!\1)[^\\\n])+)\1/.exec(after)?.[2] ?? null;
}

/** Bars in the configuration of coverage, lint and type checks: they may be raised, not lowered. */
import { posix } from 'node:path';
import type { Finding } from '../issue.js';
import { linesIn, textOf } from './guard-contents.js';
import { runnerOf } from './guard-gate-files.js';
import { guardFinding, inIssue, type GuardRule, type RuleContext } from './guard-rule.js';
import { withoutComments, type Syntax } from './guard-source.js';

const configs: readonly (readonly [name: RegExp, syntax: Syntax])[] = [
  [/^(?:vite|eslint|stylelint|webpack|rollup|nuxt|next)\.config\.[cm]?[jt]s$/, 'js'],
  [
    /^\.(?:eslintrc|stylelintrc|oxlintrc)(?:\.[cm]?js|\.jsonc?)?$|^biome\.jsonc?$|^(?:ts|js)config(?:\.[\w-]+)*\.json$/,
    'js',
  ],
  [/^(?:package|deno|composer|pyrightconfig)\.jsonc?$/, 'js'],
  [/^\.(?:eslintrc|stylelintrc|rubocop|golangci|codecov)\.ya?ml$|^codecov\.ya?ml$/, 'hash'],
  [
    /^(?:pyproject|\.?ruff|\.?clippy|tarpaulin)\.toml$|^(?:setup\.cfg|tox\.ini|mypy\.ini|\.?pylintrc|\.flake8)$/,
    'hash',
  ],
  [/^(?:[Mm]akefile|GNUmakefile|\.?[Jj]ustfile|Rakefile|spec_helper\.rb|test_helper\.rb|\.simplecov)$/, 'hash'],
  [/^(?:pom|checkstyle[\w-]*|pmd[\w-]*)\.xml$/, 'markup'],
  [/^build\.gradle(?:\.kts)?$|^build\.sbt$/, 'c'],
];

/** Larger ones are written by tools. */
const largestConfig = 256 * 1024;

// Every repetition has an end: what is read here may be written to make reading it slow.
const number = String.raw`["']?(\d{1,9}(?:\.\d{1,9})?)`;
/** Lower is looser. */
const floors = new RegExp(
  String.raw`\b(branches|functions|lines|statements|check-coverage|cov-fail-under|fail[-_]under|minimum_coverage(?:_by_file)?|minimum|min[-_]?coverage|coverage[-_]?threshold|coverageMinimum\w{0,20}|target)\b["']?[\s:=>]{1,20}${number}`,
  'gi',
);
/** Higher is looser. */
const roofs = new RegExp(
  String.raw`\b(max[-_]?warnings|max[-_]?line[-_]?length|max[-_]?complexity|cognitive-complexity-threshold|cyclomatic-complexity-threshold|too-many-\w{1,20}-threshold|complexity|max[-_](?:args|locals|branches|statements|lines|lines-per-function|params|depth|nested-callbacks))\b["']?[\s:=>]{1,20}(?:\[\s{0,9}["']\w{1,9}["']\s{0,9},\s{0,20})?(?:\{\s{0,9}["']?max["']?\s{0,9}:\s{0,9})?${number}`,
  'gi',
);
const switches =
  /\b(strict\w{0,40}|no(?!Emit|Resolve|Lib|Check|ErrorTrunc)[A-Z]\w{1,60}|alwaysStrict|exactOptionalPropertyTypes|useUnknownInCatchVariables|checkJs|disallow_\w{1,40}|warn_\w{1,40}|check_untyped_defs|no_implicit_\w{1,40})\b["']?\s{0,9}[:=]\s{0,9}(true|false)\b/gi;
/** True is looser. */
const escapes =
  /\b(noCheck|skipTests|maven\.test\.skip|testFailureIgnore|ignoreFailures|passWithNoTests|ignore_errors|ignore_missing_imports)\b["']?[\s:=>]{1,9}["']?(true|false)\b/gi;
const severities =
  /(?<![\w@/-])["']?((?:@[\w-]{1,60}\/)?[\w-]{1,80}(?:\/[\w-]{1,80}){0,3})["']?\s{0,9}:\s{0,9}\[?\s{0,9}["'](off|warn|error)["']/g;
/** The same as numbers, of rules whose names no option has. */
const numbered =
  /(?<![\w@/-])["']((?:@[\w-]{1,60}\/)?[\w-]{1,40}[-/][\w/-]{1,80})["']\s{0,9}:\s{0,9}\[?\s{0,9}([012])\s{0,9}(?=[,\]}\n])/g;
const ranks: Readonly<Record<string, number>> = { off: 0, warn: 1, error: 2, 0: 0, 1: 1, 2: 2 };

interface Bar {
  readonly name: string;
  readonly value: number;
  readonly index: number;
}

/** Finds bars that are lower than they were. */
export function thresholdRule({ work, testsAllow }: RuleContext): GuardRule {
  const findings: Finding[] = [];
  const syntaxOf = (path: string): Syntax | null =>
    testsAllow(path) || runnerOf(path) !== null ? null : syntaxOfConfig(path);
  return {
    needsBefore: ({ path, oldOid, newOid }) => oldOid !== null && newOid !== null && syntaxOf(path) !== null,
    see({ change: { path }, before, after }) {
      const syntax = syntaxOf(path);
      if (syntax === null || before?.kind !== 'text' || after.kind !== 'text') return;
      if (before.bytes > largestConfig) return;
      if (after.bytes > largestConfig) {
        const message = 'too large now to see what it asks for; put it back';
        findings.push(guardFinding(work, { rule: 'threshold', file: path, message, allow: inIssue('tests', path) }));
        return;
      }
      const lineAt = linesIn(textOf(after));
      for (const { name, index, was, is } of loosened(textOf(before), textOf(after), syntax)) {
        const message = `${JSON.stringify(name)} is ${is} instead of ${was}, which asks for less; put it back`;
        const line = index === null ? {} : { line: lineAt(index) };
        findings.push(
          guardFinding(work, { rule: 'threshold', file: path, ...line, message, allow: inIssue('tests', path) }),
        );
      }
    },
    findings: () => findings,
  };
}

function syntaxOfConfig(path: string): Syntax | null {
  return configs.find(([name]) => name.test(posix.basename(path)))?.[1] ?? null;
}

interface Loosened {
  readonly name: string;
  readonly was: string;
  readonly is: string;
  /** `null`: it is not there any more. */
  readonly index: number | null;
}

/** A kind of bar, as numbers of which a lower one asks for less. */
interface Kind {
  readonly pattern: RegExp;
  /** Another way to write it. */
  readonly second?: RegExp;
  readonly value: (written: string) => number;
  readonly shown: (value: number) => string;
  /** What stands for one that is not there, in the base and in the work; `null`: no bar at all. */
  readonly absent: readonly [before: number | null, after: number | null];
}

const kinds: readonly Kind[] = [
  { pattern: floors, value: Number, shown: String, absent: [null, null] },
  { pattern: roofs, value: (written) => -Number(written), shown: (value) => String(-value), absent: [null, null] },
  {
    pattern: switches,
    value: (written) => Number(written.toLowerCase() === 'true'),
    shown: (value) => String(value === 1),
    absent: [1, 0],
  },
  {
    pattern: severities,
    second: numbered,
    value: (written) => ranks[written] ?? 0,
    shown: (value) => ['off', 'warn', 'error'][value] ?? '',
    absent: [1, 1],
  },
];

function loosened(before: string, after: string, syntax: Syntax): readonly Loosened[] {
  const [old, now] = [withoutComments(before, syntax), withoutComments(after, syntax)];
  const found = kinds.flatMap((kind) => {
    const [was, is] = [barsOf(old, kind), barsOf(now, kind)];
    const names = new Set([...was.keys(), ...is.keys()]);
    return [...names].flatMap((name) => lowered(kind, was.get(name) ?? [], is.get(name) ?? []));
  });
  return [...found, ...newEscapes(old, now)];
}

function barsOf(text: string, { pattern, second, value }: Kind): ReadonlyMap<string, readonly Bar[]> {
  const bars = new Map<string, Bar[]>();
  for (const match of [pattern, ...(second === undefined ? [] : [second])].flatMap((way) => [...text.matchAll(way)])) {
    const name = (match[1] ?? '').toLowerCase();
    const bar = { name: match[1] ?? '', value: value(match[2] ?? ''), index: match.index };
    bars.set(name, [...(bars.get(name) ?? []), bar]);
  }
  return bars;
}

/** Bars of one name are compared in their order; of different numbers of them only the lowest. */
function lowered({ shown, absent }: Kind, was: readonly Bar[], is: readonly Bar[]): readonly Loosened[] {
  const pairs =
    was.length === is.length ? was.map((bar, at) => [bar, is[at]] as const) : [[lowest(was), lowest(is)] as const];
  return pairs.flatMap(([old, now]) => {
    const [before, after] = [old?.value ?? absent[0], now?.value ?? absent[1]];
    const name = now?.name ?? old?.name ?? '';
    // A bar that was not there asked for nothing.
    if (before === null || (after !== null && after >= before)) return [];
    if (now === undefined && isLoosest(before)) return [];
    const words = {
      was: old === undefined ? 'its default' : shown(before),
      is: now === undefined ? 'gone' : shown(now.value),
    };
    return [{ name, ...words, index: now?.index ?? null }];
  });
}

function lowest(bars: readonly Bar[]): Bar | undefined {
  return [...bars].sort((left, right) => left.value - right.value)[0];
}

/** No percentage, a switch that is off. */
function isLoosest(value: number): boolean {
  return Object.is(value, 0);
}

function newEscapes(old: string, now: string): readonly Loosened[] {
  const on = (text: string): readonly RegExpMatchArray[] =>
    [...text.matchAll(escapes)].filter((match) => (match[2] ?? '').toLowerCase() === 'true');
  const had = new Set(on(old).map((match) => match[1]?.toLowerCase()));
  return on(now)
    .filter((match) => !had.has(match[1]?.toLowerCase()))
    .map((match) => ({ name: match[1] ?? '', was: 'false', is: 'true', index: match.index ?? null }));
}

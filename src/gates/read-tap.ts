/** The Test Anything Protocol, nested as node:test or as vitest nest it. Pure. */
import type { Evidence } from '../issue.js';
import { isFileName } from './read-javascript.js';
import { evidenceOf, sumOf } from './reading.js';

interface Scope {
  readonly indent: number;
  readonly name: string;
  /** node:test names a subtest before it begins; its point comes after those inside it. */
  readonly isAnnounced: boolean;
  points: number;
}

interface Points {
  ran: number;
  failed: number;
  skipped: number;
  readonly failures: string[];
  readonly passes: string[];
}

const pointPattern = /^( *)(not )?ok\b(?: +\d+)?(?: +-)? *(.*)$/;

/** Reads TAP; `isWhole`: no part of the output is missing, so that counting its points counts all. */
export function readTap(lines: readonly string[], isWhole: boolean): Evidence | null {
  const hasVersion = lines.some((line) => /^TAP version \d+$/.test(line));
  const plans = lines.flatMap((line) => {
    const plan = /^1\.\.(\d+)(?: *#.*)?$/.exec(line);
    return plan === null ? [] : [Number(plan[1])];
  });
  const isEmpty = plans.length > 0 && plans.every((plan) => plan === 0);
  if (!hasVersion && !isEmpty && (plans.length === 0 || !lines.some((line) => /^(?:not )?ok\b/.test(line))))
    return null;
  const points = readPoints(lines);
  const told = nodeCounts(lines);
  const { failures, passes } = points;
  if (told !== null) return evidenceOf({ runner: 'node:test', ...told, failures, passes });
  if (!isWhole) return null;
  const broken = lines.filter((line) => line.startsWith('Bail out!')).length;
  const { ran: tests, skipped } = points;
  return evidenceOf({ runner: 'tap', tests, failed: points.failed + broken, skipped, failures, passes });
}

/** node:test counts itself, in comments at the end. */
function nodeCounts(
  lines: readonly string[],
): { readonly tests: number; readonly failed: number; readonly skipped: number } | null {
  const counts = new Map<string, number>();
  for (const line of lines) {
    const [, word, number] = /^# (tests|suites|pass|fail|cancelled|skipped|todo) (\d+)$/.exec(line) ?? [];
    if (word !== undefined) counts.set(word, (counts.get(word) ?? 0) + Number(number));
  }
  if (!counts.has('cancelled') || !counts.has('pass')) return null;
  const failed = sumOf(counts, 'fail', 'cancelled');
  return { tests: sumOf(counts, 'pass') + failed, failed, skipped: sumOf(counts, 'skipped', 'todo') };
}

function readPoints(lines: readonly string[]): Points {
  const points: Points = { ran: 0, failed: 0, skipped: 0, failures: [], passes: [] };
  const open: Scope[] = [];
  let yamlIndent: string | null = null;
  for (const line of lines) {
    if (yamlIndent !== null) {
      if (line === `${yamlIndent}...`) yamlIndent = null;
      continue;
    }
    const yaml = /^( +)---$/.exec(line);
    const announced = /^( *)# Subtest: (.*)$/.exec(line);
    const point = pointPattern.exec(line);
    if (yaml !== null) yamlIndent = yaml[1] ?? '';
    else if (announced !== null) openScope(open, announced[1] ?? '', announced[2] ?? '');
    else if (/^ *\}$/.test(line)) open.pop();
    else if (point !== null) addPoint(points, open, point);
  }
  return points;
}

function openScope(open: Scope[], indent: string, name: string): void {
  while (open.length > 0 && (open.at(-1)?.indent ?? 0) >= indent.length) open.pop();
  open.push({ indent: indent.length, name, isAnnounced: true, points: 0 });
}

function addPoint(points: Points, open: Scope[], match: RegExpExecArray): void {
  const indent = (match[1] ?? '').length;
  const isOk = match[2] === undefined;
  const rest = match[3] ?? '';
  while ((open.at(-1)?.indent ?? -1) > indent) open.pop();
  const own = open.at(-1);
  const isSuite = own?.isAnnounced === true && own.indent === indent;
  const inside = isSuite ? open.pop() : undefined;
  const parent = open.at(-1);
  if (parent !== undefined) parent.points += 1;
  const name = nameOf(rest);
  if (rest.endsWith(' {')) {
    open.push({ indent, name, isAnnounced: false, points: 0 });
    return;
  }
  if (inside !== undefined && inside.points > 0) return;
  const path = [...open.map((scope) => scope.name), name].join(' › ');
  const directive = /(?<!\\)# *(SKIP|TODO)\b/i.exec(rest);
  if (directive !== null) points.skipped += 1;
  else points.ran += 1;
  if (directive !== null) return;
  if (!isOk) points.failed += 1;
  if (isOk) points.passes.push(path);
  else if (!isFileName(name)) points.failures.push(path);
}

function nameOf(rest: string): string {
  return rest
    .replace(/ \{$/, '')
    .replace(/ (?<!\\)# *(?:time=\S+|SKIP\b.*|TODO\b.*)$/i, '')
    .replaceAll('\\#', '#')
    .trim();
}

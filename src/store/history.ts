/**
 * The `## History` of an Issue or Spec file, read back to know how much of the budget is used and what the next attempt
 * must hear. It is written by `history-entries.ts`, which sees to it that nothing foreign passes for an entry.
 */
import { createHash } from 'node:crypto';
import type { AttemptVerdict, Finding, Issue } from '../issue.js';
import { withoutTimes } from '../issue.js';
import { readDuration } from '../platform/duration.js';
import { blockedBullet, isWorkerBullet } from './history-entries.js';

/** One entry as read back. */
export type HistoryEntry =
  | {
      readonly kind: 'attempt';
      readonly attempt: number;
      /** Absent while the entry is open. */
      readonly verdict?: AttemptVerdict;
      /** Short name of the code tree that was judged; absent when the attempt was not. */
      readonly tree?: string;
      /** What a worker that said `blocked` asks; absent when it did not say so. */
      readonly question?: string;
      readonly text: string;
    }
  | {
      readonly kind: 'integration' | 'escalated' | 'answered' | 'integrated' | 'validated' | 'plan' | 'other';
      readonly text: string;
    };

/** The id behind each finding: the last thing on its line, written by giro. */
const findingSuffix = / \[([0-9a-f]{8})\]$/;
const suffixes = /^( *- .*) \[[0-9a-f]{8}\]$/gm;
const attemptHeading = /^### Attempt (\d+) · /;

/** Splits a History section into its entries, oldest first. */
export function readHistory(history: string): readonly HistoryEntry[] {
  return splitEntries(history).map(readEntry);
}

const known = new WeakMap<Pick<Issue, 'history'>, readonly HistoryEntry[]>();

/** Gives the entries of an Issue as it was read, which is asked again and again where there are thousands. */
export function entriesOf(issue: Pick<Issue, 'history'>): readonly HistoryEntry[] {
  const entries = known.get(issue) ?? readHistory(issue.history);
  known.set(issue, entries);
  return entries;
}

/** Counts the attempts ever recorded; numbers are never reused. */
export function lastAttempt(entries: readonly HistoryEntry[]): number {
  return entries.reduce((last, entry) => (entry.kind === 'attempt' ? Math.max(last, entry.attempt) : last), 0);
}

/** Counts the attempts that used budget since the last answer; one left open by a crash counts (L5). */
export function budgetUsed(entries: readonly HistoryEntry[]): number {
  return sinceAnswer(entries).filter(
    (entry) => entry.kind === 'attempt' && entry.verdict !== 'operation' && entry.verdict !== 'stopped',
  ).length;
}

/** Counts the newest red attempts in a row that said `blocked`. */
export function blockedInARow(entries: readonly HistoryEntry[]): number {
  let count = 0;
  for (const entry of [...sinceAnswer(entries)].reverse()) {
    if (entry.kind !== 'attempt' || entry.verdict === 'operation' || entry.verdict === 'stopped') continue;
    if (entry.question === undefined || entry.verdict !== 'fail') break;
    count += 1;
  }
  return count;
}

/** Gives what the newest attempt asks, when it said `blocked` and its gates did not answer by passing. */
export function lastQuestion(entries: readonly HistoryEntry[]): string | undefined {
  const newest = sinceAnswer(entries).findLast((entry) => entry.kind === 'attempt');
  return newest?.kind === 'attempt' && newest.verdict !== 'pass' ? newest.question : undefined;
}

/** Says whether the newest attempt was judged by gates that could not run at all. */
export function couldNotBeJudged(entries: readonly HistoryEntry[]): boolean {
  const newest = sinceAnswer(entries).findLast((entry) => entry.kind === 'attempt');
  return newest?.kind === 'attempt' && newest.verdict === 'operation' && newest.tree !== undefined;
}

/** Says whether the newest attempt had an agent (or a person) whose folder was taken back. */
export function wasTakenBack(entries: readonly HistoryEntry[]): boolean {
  const newest = entries.findLast((entry) => entry.kind === 'attempt');
  return newest !== undefined && / · \d+ files? \+/.test(baseLine(newest.text));
}

/** Gives how long the agents of the attempts that count worked, oldest first: one that broke or was stopped tells nothing. */
export function agentDurations(entries: readonly HistoryEntry[]): readonly number[] {
  return entries.flatMap((entry) => {
    if (entry.kind !== 'attempt' || (entry.verdict !== 'pass' && entry.verdict !== 'fail')) return [];
    const shown = / · \d+ files? \+\d+ -\d+ · ([^·]+)(?: · |$)/.exec(baseLine(entry.text))?.[1];
    return (shown === undefined ? undefined : readDuration(shown)) ?? [];
  });
}

/** Gives what the engine found on the work of an attempt that is not judged yet. */
export function openFindings(entries: readonly HistoryEntry[]): readonly Finding[] {
  const newest = entries.findLast((entry) => entry.kind === 'attempt');
  if (newest?.kind !== 'attempt' || newest.verdict !== undefined) return [];
  const count = Number(/ · (\d+) findings?(?: · |$)/.exec(baseLine(newest.text))?.[1] ?? 0);
  // While an entry is open nothing stands behind them.
  const bullets = newest.text.split('\n').filter((line) => line.startsWith('- '));
  return count === 0 ? [] : bullets.slice(-count).map((line) => readFinding(line.slice(2)));
}

/**
 * Says whether the loop pays again for the same result: the same code tree in two judged attempts running, or the same
 * set of findings in `limit` of them. An attempt that the lane sent back was judged there.
 */
export function noProgress(entries: readonly HistoryEntry[], limit: number): string | undefined {
  const judged = redRounds(sinceAnswer(entries));
  const [last, before] = [judged.at(-1), judged.at(-2)];
  if (last !== undefined && before !== undefined && last.tree === before.tree) {
    return 'two attempts running left the same code';
  }
  const newest = judged.slice(-limit).map((round) => fingerprint(round.text));
  if (judged.length >= limit && new Set(newest).size === 1) {
    return `the same findings in ${String(limit)} attempts running`;
  }
  return undefined;
}

/** Takes the ids of findings out of a text: whoever works on them needs none. */
export function withoutIds(text: string): string {
  return text.replace(suffixes, '$1');
}

/** Reads a finding back from the text behind its bullet. */
export function readFinding(text: string): Finding {
  const id = findingSuffix.exec(text)?.[1];
  return id === undefined ? { message: text } : { id, message: text.replace(findingSuffix, '') };
}

/**
 * Gives the text that the next attempt must hear: everything since the newest judged attempt that speaks of the work.
 * What a person answered is told apart from it (`answersOf`).
 */
export function lastFindings(history: string): string {
  const entries = readHistory(history);
  const judged = entries.findLastIndex(isJudged);
  return entries
    .slice(Math.max(0, judged))
    .filter((entry) => entry.kind !== 'escalated' && entry.kind !== 'answered')
    .filter((entry) => entry.kind !== 'attempt' || entry.verdict === 'fail' || entry.verdict === 'pass')
    .map((entry) => withoutIds(entry.text.trimEnd()))
    .join('\n\n');
}

/** Counts what closed a life of the Issue: landings and answers. A History with fewer of them is an older one. */
export function closings(entries: readonly HistoryEntry[]): number {
  return entries.filter((entry) => entry.kind === 'integrated' || entry.kind === 'answered').length;
}

/** Reads the question of the newest packet; empty when there is none. */
export function packetQuestion(entries: readonly HistoryEntry[]): string {
  const packet = entries.findLast((entry) => entry.kind === 'escalated');
  return /^question: (.*)$/m.exec(packet?.text ?? '')?.[1] ?? '';
}

function splitEntries(history: string): readonly string[] {
  const lines = history.replace(/\r\n/g, '\n').split('\n');
  const starts = lines.flatMap((line, index) => (line.startsWith('### ') ? [index] : []));
  return starts.map((start, index) => lines.slice(start, starts[index + 1]).join('\n'));
}

function readEntry(text: string): HistoryEntry {
  const attempt = attemptHeading.exec(text)?.[1];
  if (attempt !== undefined) {
    const verdict = /^verdict: (pass|fail|operation|stopped)$/m.exec(text)?.[1];
    const base = baseLine(text);
    const tree = / · tree ([0-9a-f]+)(?: · |$)/.exec(base)?.[1];
    const question = / · blocked(?: · |$)/.test(base) ? questionIn(text) : undefined;
    return {
      kind: 'attempt',
      attempt: Number(attempt),
      ...(isVerdict(verdict) ? { verdict } : {}),
      ...(tree === undefined ? {} : { tree }),
      ...(question === undefined ? {} : { question }),
      text,
    };
  }
  const word = /^### (\w+)/.exec(text)?.[1]?.toLowerCase();
  return { kind: plainKinds.find((kind) => kind === word) ?? 'other', text };
}

const plainKinds = ['integration', 'escalated', 'answered', 'integrated', 'validated', 'plan'] as const;

function isVerdict(text: string | undefined): text is AttemptVerdict {
  return text === 'pass' || text === 'fail' || text === 'operation' || text === 'stopped';
}

/** Gives the entries since a person answered last. */
export function sinceAnswer(entries: readonly HistoryEntry[]): readonly HistoryEntry[] {
  return entries.slice(entries.findLastIndex((entry) => entry.kind === 'answered') + 1);
}

interface Round {
  readonly tree: string;
  readonly text: string;
}

/** The judged attempts that came to nothing, each with what the lane said of it. */
function redRounds(entries: readonly HistoryEntry[]): readonly Round[] {
  return entries.flatMap((entry, index): readonly Round[] => {
    if (!isJudged(entry)) return [];
    const next = entries.findIndex((other, at) => at > index && other.kind === 'attempt');
    const after = entries.slice(index + 1, next < 0 ? undefined : next).filter((other) => other.kind === 'integration');
    if (entry.verdict === 'pass' && after.length === 0) return [];
    return [{ tree: entry.tree, text: [entry, ...after].map((one) => one.text).join('\n') }];
  });
}

function isJudged(
  entry: HistoryEntry,
): entry is Extract<HistoryEntry, { kind: 'attempt' }> & { readonly tree: string } {
  return entry.kind === 'attempt' && entry.tree !== undefined && (entry.verdict === 'fail' || entry.verdict === 'pass');
}

function baseLine(text: string): string {
  return /^base .*$/m.exec(text)?.[0] ?? '';
}

/** The first of its kind: foreign text comes behind it. */
function questionIn(text: string): string {
  const line = text.split('\n').find((one) => one.startsWith(blockedBullet));
  return line?.slice(blockedBullet.length) ?? '';
}

/** Hashes the reasons of an entry, whatever their times, places and temporary folders. Counts are part of a reason. */
export function fingerprint(text: string): string {
  const reasons = text
    .split('\n')
    .filter((line) => line.startsWith('- ') || line.startsWith(' '))
    .filter((line) => !isWorkerBullet(line))
    .filter((line) => !/^- gate \S+: pass · /.test(line))
    .map((line) => withoutNoise(line.replace(findingSuffix, '').replace(/^(- gate \S+: fail) · .*$/, '$1')));
  return createHash('sha256').update(reasons.sort().join('\n')).digest('hex');
}

function withoutNoise(line: string): string {
  return withoutTimes(line.replace(/(?:\/[\w.@+-]+)+\//g, '/'));
}

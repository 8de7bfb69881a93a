/**
 * What the `## History` of a SPEC.md tells of the Spec loop: its plans and its rounds. A plan is an attempt like any
 * other: it is recorded before the planner starts, and one left open by a crash counts (L5).
 *
 * What is read back stands in headings, on the `base` line and on the `verdict` line, where no foreign text can be.
 */
import type { Finding, GateNote, Oid } from '../issue.js';
import { shortOid } from '../issue.js';
import { formatUsage, type Usage } from '../usage.js';
import { fingerprint, readFinding, readHistory, sinceAnswer, withoutIds, type HistoryEntry } from './history.js';
import { append, appendValidation, findingLines, oneLine, plural, seconds } from './history-entries.js';

/** How a plan ended. `pass`: its Issues are written in the same commit. */
export type PlanVerdict = 'pass' | 'fail' | 'operation' | 'stopped';

/** Where the planning of what comes next stands. */
export interface PlanStanding {
  /** Number of the newest plan; numbers are never reused. */
  readonly last: number;
  /** Plans of what is to be planned now that were given and not taken. */
  readonly refused: number;
  /** Planners that gave none that could be read, or ran into their limit. */
  readonly unread: number;
  /** Planners under which giro ended. */
  readonly cutOff: number;
  /** Why the newest plan was not taken, and what came of the planners after it. */
  readonly rejected: readonly Finding[];
  /** What the newest of them asks, as long as nobody answered. */
  readonly questions: readonly string[];
  /** What a planner asked before, and what a person answered. */
  readonly answers: string;
}

/** A validation that was red, and for which no gap Issues are planned yet. */
export interface OpenGap {
  readonly round: number;
  /** Short name of the code tree that was judged. */
  readonly tree: string;
  /** The entry, for the planner. */
  readonly text: string;
}

/** Appends the heading of a new plan; the entry is open until a verdict closes it. */
export function openPlan(
  history: string,
  entry: { readonly at: string; readonly driver: string; readonly base: Oid; readonly round: number },
): string {
  const number = planStanding(readHistory(history)).last + 1;
  return append(history, [
    `### Plan ${String(number)} · ${seconds(entry.at)} · ${oneLine(entry.driver)}`,
    `base ${shortOid(entry.base)} · round ${String(entry.round)}`,
  ]);
}

/** What closes a plan. */
export interface PlanClosing {
  readonly verdict: PlanVerdict;
  readonly spent: { readonly duration: string; readonly usage: Usage };
  readonly findings: readonly Finding[];
  readonly questions: readonly string[];
  /** True: there was no plan in what the planner gave. */
  readonly unread?: boolean;
  /** What was planned: id and title. */
  readonly planned: readonly { readonly id: string; readonly title: string }[];
}

/** Closes the newest plan, wherever it stands: a person may have answered something meanwhile. */
export function closePlan(history: string, closing: PlanClosing): string {
  const { questions, planned, findings } = closing;
  const lines = history.replace(/\s*$/, '').split('\n');
  const start = lines.findLastIndex((line) => planHeading.test(line));
  if (start < 0) throw new Error('no plan to close');
  const next = lines.findIndex((line, index) => index > start && line.startsWith('### '));
  const end = next < 0 ? lines.length : next;
  const facts = [
    closing.spent.duration,
    ...formatUsage(closing.spent.usage),
    ...(questions.length === 0 ? [] : [plural(questions.length, 'question')]),
    ...(planned.length === 0 ? [] : [plural(planned.length, 'Issue')]),
    ...(closing.unread === true ? [unreadMark] : []),
  ].join(' · ');
  const entry = lines.slice(start, end).filter((line) => line !== '');
  return `${[
    ...lines.slice(0, start),
    ...entry.map((line) => (line.startsWith('base ') ? `${line} · ${facts}` : line)),
    ...questions.map((question) => `- ${oneLine(question)}`),
    ...planned.map(({ id, title }) => `- ${id}: ${oneLine(title)}`),
    ...findings.flatMap((finding) => findingLines(finding, '- ')),
    `verdict: ${closing.verdict}`,
    ...(next < 0 ? [] : ['', ...lines.slice(end)]),
  ].join('\n')}\n`;
}

/** Tells where the planning of what comes next stands. */
export function planStanding(entries: readonly HistoryEntry[]): PlanStanding {
  const open = entries.slice(entries.findLastIndex(endsPlanning) + 1).filter(isPlan);
  const newest = open.at(-1);
  const failed = open.filter((entry) => verdictOf(entry) === 'fail');
  const refused = failed.filter((entry) => !isUnread(entry));
  const told = failed.slice(
    Math.max(
      0,
      failed.findLastIndex((entry) => !isUnread(entry)),
    ),
  );
  const asks = newest === undefined ? 0 : questionsIn(newest);
  return {
    last: entries.reduce((last, entry) => Math.max(last, Number(planHeading.exec(entry.text)?.[1] ?? 0)), 0),
    refused: refused.length,
    unread: failed.length - refused.length,
    cutOff: open.filter((entry) => verdictOf(entry) === undefined).length,
    rejected: told.flatMap((entry) => (questionsIn(entry) > 0 ? [] : bulletsOf(entry).map(readFinding))),
    questions: newest === undefined || asks === 0 ? [] : bulletsOf(newest).slice(0, asks),
    answers: answersIn(entries),
  };
}

/** Gives the red validation that is to be planned for; `null` when there is none. */
export function openGap(entries: readonly HistoryEntry[]): OpenGap | null {
  const own = sinceReset(entries);
  const at = own.findLastIndex((entry) => entry.kind === 'validated');
  const entry = own[at];
  if (entry === undefined || verdictOf(entry) !== 'fail') return null;
  if (own.slice(at).some((later) => isPlan(later) && verdictOf(later) === 'pass')) return null;
  const tree = /^tip [0-9a-f]+ · tree ([0-9a-f]+)$/m.exec(entry.text)?.[1];
  return tree === undefined ? null : { round: reds(own), tree, text: withoutIds(entry.text.trimEnd()) };
}

/** Tells which round a red validation ends, and whether it found what the one before it found. */
export function redRound(
  history: string,
  validation: { readonly gates: readonly GateNote[]; readonly tip: Oid; readonly code: Oid },
): { readonly round: number; readonly same: boolean } {
  const told = appendValidation(history, { ...validation, at: '', verdict: 'fail' });
  const own = sinceReset(readHistory(told)).filter((entry) => entry.kind === 'validated');
  const [before, last] = own.slice(-2).map((entry) => fingerprint(entry.text));
  return { round: reds(own), same: last !== undefined && before === last };
}

/** Says whether a Spec that is run again had used something of what an answer gives back. */
export function hasUsed(entries: readonly HistoryEntry[]): boolean {
  return sinceReset(entries).some((entry) => entry.kind === 'validated' || entry.kind === 'escalated' || isPlan(entry));
}

const planHeading = /^### Plan (\d+) · /;

function isPlan(entry: HistoryEntry): boolean {
  return entry.kind === 'plan';
}

/** An answer or a green validation begins the rounds anew. */
function sinceReset(entries: readonly HistoryEntry[]): readonly HistoryEntry[] {
  const own = sinceAnswer(entries);
  return own.slice(own.findLastIndex((entry) => entry.kind === 'validated' && verdictOf(entry) === 'pass') + 1);
}

function reds(entries: readonly HistoryEntry[]): number {
  return entries.filter((entry) => entry.kind === 'validated' && verdictOf(entry) === 'fail').length;
}

/** On the `base` line, where no foreign text can be. */
const unreadMark = 'no plan';

function isUnread(entry: HistoryEntry): boolean {
  return (/^base .*$/m.exec(entry.text)?.[0] ?? '').split(' · ').includes(unreadMark);
}

/** What is behind it is about another plan. */
function endsPlanning(entry: HistoryEntry): boolean {
  return entry.kind === 'answered' || entry.kind === 'validated' || (isPlan(entry) && verdictOf(entry) === 'pass');
}

function verdictOf(entry: HistoryEntry): string | undefined {
  return /^verdict: (pass|fail|operation|stopped)$/m.exec(entry.text)?.[1];
}

function questionsIn(entry: HistoryEntry): number {
  const base = /^base .*$/m.exec(entry.text)?.[0] ?? '';
  return Number(/ · (\d+) questions?(?: · |$)/.exec(base)?.[1] ?? 0);
}

function bulletsOf(entry: HistoryEntry): readonly string[] {
  return entry.text.split('\n').flatMap((line) => (line.startsWith('- ') ? [line.slice(2)] : []));
}

/** The questions that were answered since the newest plan that was taken, each with what came back. */
function answersIn(entries: readonly HistoryEntry[]): string {
  const own = entries.slice(entries.findLastIndex((entry) => isPlan(entry) && verdictOf(entry) === 'pass') + 1);
  const asked = own.findIndex((entry) => isPlan(entry) && questionsIn(entry) > 0);
  const said = own.filter((entry) => entry.kind === 'answered' && /^> /m.test(entry.text));
  if (asked < 0) return said.map((entry) => entry.text.trimEnd()).join('\n\n');
  if (!own.slice(asked).some((entry) => entry.kind === 'answered')) return '';
  return own
    .slice(asked)
    .filter((entry) => entry.kind === 'answered' || (isPlan(entry) && questionsIn(entry) > 0))
    .map((entry) => entry.text.trimEnd())
    .join('\n\n');
}

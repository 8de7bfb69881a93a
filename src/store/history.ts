/**
 * The `## History` of an Issue or Spec file: written by giro only, one readable entry a heading, and read back to know
 * how much of the budget is used and what the next attempt must hear.
 *
 * Nothing that a tool or a model printed can forge an entry: headings count only at column one, and foreign text is
 * either a single line behind a bullet or indented by four columns.
 */
import { createHash } from 'node:crypto';
import type { AttemptVerdict, Finding, GateNote, Oid, Waived, WorkNote } from '../issue.js';
import { findingId, shortOid, withoutTimes } from '../issue.js';
import type { EscalationCause, SpecCause } from '../event.js';
import { readDuration } from '../platform/duration.js';
import { packetIndent } from '../packet.js';
import { printable } from '../platform/text.js';
import { formatUsage } from '../usage.js';

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

const heading = '## History';
const blockedBullet = '- blocked: ';
const summaryBullet = '- worker says: ';
const subjectBullet = '- commit by the worker: ';
const workerBullets = [blockedBullet, summaryBullet, subjectBullet];
/** The id behind each finding: the last thing on its line, written by giro. */
const findingSuffix = / \[([0-9a-f]{8})\]$/;
const suffixes = /^( *- .*) \[[0-9a-f]{8}\]$/gm;
const attemptHeading = /^### Attempt (\d+) · /;

/** Splits a History section into its entries, oldest first. */
export function readHistory(history: string): readonly HistoryEntry[] {
  return splitEntries(history).map(readEntry);
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

/** Tells a line that repeats what a worker said from one of giro's. */
export function isWorkerBullet(line: string): boolean {
  return workerBullets.some((bullet) => line.startsWith(bullet));
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

/** Appends the heading of a new attempt; the entry is open until a verdict closes it. */
export function openAttempt(
  history: string,
  entry: { readonly attempt: number; readonly at: string; readonly driver: string; readonly base: Oid },
): string {
  return append(history, [
    `### Attempt ${String(entry.attempt)} · ${seconds(entry.at)} · ${oneLine(entry.driver)}`,
    `base ${shortOid(entry.base)}`,
  ]);
}

/** Writes what the worker left, and what the engine found on it, into the open entry. */
export function describeWork(history: string, work: WorkNote, findings: readonly Finding[] = []): string {
  const size = `${plural(work.files, 'file')} +${String(work.insertions)} -${String(work.deletions)}`;
  // Only giro writes the base line: what is read back of an entry stands there, where foreign text cannot forge it.
  const facts = [
    size,
    work.duration,
    ...(work.usage === undefined ? [] : formatUsage(work.usage)),
    ...(work.question === undefined ? [] : ['blocked']),
    ...(findings.length === 0 ? [] : [plural(findings.length, 'finding')]),
  ];
  return extendLast(history, (lines) => [
    ...lines.map((line) => (line.startsWith('base ') ? `${line} · ${facts.join(' · ')}` : line)),
    ...(work.question === undefined ? [] : [`${blockedBullet}${oneLine(work.question)}`]),
    ...(work.summary === undefined ? [] : [`${summaryBullet}${oneLine(work.summary)}`]),
    ...work.subjects.map((subject) => `${subjectBullet}${oneLine(subject)}`),
    ...findings.flatMap((finding) => findingLines(finding, '- ')),
  ]);
}

/** Closes the open entry with its verdict. */
export function closeAttempt(
  history: string,
  verdict: {
    readonly verdict: AttemptVerdict;
    readonly work?: { readonly commit: Oid; readonly tree: Oid };
    readonly gates: readonly GateNote[];
    readonly findings: readonly Finding[];
    readonly waived?: readonly Waived[];
  },
): string {
  const { work } = verdict;
  return extendLast(history, (lines) => [
    ...lines.map((line) =>
      work !== undefined && line.startsWith('base ')
        ? `${line} · work ${shortOid(work.commit)} · tree ${shortOid(work.tree)}`
        : line,
    ),
    ...verdict.gates.flatMap(gateLines),
    ...verdict.findings.flatMap((finding) => findingLines(finding, '- ')),
    ...waivedLines(verdict.waived),
    `verdict: ${verdict.verdict}`,
  ]);
}

/** Appends what the merge lane found on a candidate. */
export function appendIntegration(
  history: string,
  entry: {
    readonly at: string;
    readonly tip: Oid;
    readonly verdict: 'pass' | 'fail';
    readonly gates: readonly GateNote[];
    readonly findings: readonly Finding[];
    readonly waived?: readonly Waived[];
  },
): string {
  return append(history, [
    `### ${entry.verdict === 'pass' ? 'Integrated' : 'Integration'} · ${seconds(entry.at)}`,
    `onto ${shortOid(entry.tip)}`,
    ...entry.gates.flatMap(gateLines),
    ...entry.findings.flatMap((finding) => findingLines(finding, '- ')),
    ...waivedLines(entry.waived),
    `verdict: ${entry.verdict}`,
  ]);
}

/** Appends the packet of an escalation. */
export function appendEscalation(
  history: string,
  entry: { readonly at: string; readonly cause: EscalationCause | SpecCause; readonly packet: readonly string[] },
): string {
  return append(history, [`### Escalated · ${seconds(entry.at)} · ${entry.cause}`, ...entry.packet.map(packetLine)]);
}

/** Adds to the newest entry where work is kept that no branch has. */
export function noteSaved(history: string, ref: string): string {
  return extendLast(history, (lines) => [...lines, `saved: ${oneLine(ref)}`]);
}

/** Appends that a person answered, which gives the budget back. Their words are quoted, and so cannot pass for giro's. */
export function appendAnswer(
  history: string,
  entry: {
    readonly at: string;
    readonly how: string;
    readonly text?: string;
    /** Findings that the person accepts. */
    readonly accepted?: readonly Finding[];
  },
): string {
  const words = (entry.text ?? '').trim();
  return append(history, [
    `### Answered · ${seconds(entry.at)}`,
    plainLine(entry.how),
    ...(words === '' ? [] : words.split(/\r\n|\r|\n/).map((line) => `> ${printable(line)}`.trimEnd())),
    ...(entry.accepted ?? []).map((finding) => `accepted ${findingId(finding)}: ${oneLine(finding.message)}`),
  ]);
}

/** Appends the Spec's own verdict. */
export function appendValidation(
  history: string,
  entry: {
    readonly at: string;
    readonly tip: Oid;
    /** The code tree that was judged. */
    readonly code: Oid;
    readonly verdict: 'pass' | 'fail';
    readonly gates: readonly GateNote[];
    /** What the gates demand, so that the entry can be read without any giro.toml. */
    readonly definitions?: readonly { readonly gate: string; readonly hash: string; readonly demand: string }[];
    readonly waived?: readonly Waived[];
  },
): string {
  return append(history, [
    `### Validated · ${seconds(entry.at)}`,
    `tip ${shortOid(entry.tip)} · tree ${shortOid(entry.code)}`,
    ...entry.gates.flatMap(gateLines),
    ...(entry.definitions ?? []).map(
      ({ gate, hash, demand }) => `definition ${hash} ${oneLine(gate)}: ${oneLine(demand)}`,
    ),
    ...waivedLines(entry.waived),
    `verdict: ${entry.verdict}`,
  ]);
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

/** Appends an entry of these lines. */
export function append(history: string, lines: readonly string[]): string {
  const before = history.trim() === '' ? `${heading}\n` : history.replace(/\s*$/, '\n');
  return `${before}\n${lines.join('\n')}\n`;
}

function extendLast(history: string, change: (lines: readonly string[]) => readonly string[]): string {
  const lines = history.replace(/\s*$/, '').split('\n');
  const start = lines.findLastIndex((line) => line.startsWith('### '));
  if (start < 0) throw new Error('no entry to extend');
  return `${[...lines.slice(0, start), ...change(lines.slice(start))].join('\n')}\n`;
}

function gateLines(gate: GateNote): readonly string[] {
  return [
    `- gate ${oneLine(gate.gate)}: ${gate.verdict} · ${oneLine(gate.note)}`,
    ...gate.findings.flatMap((finding) => findingLines(finding, '  - ')),
  ];
}

/** Writes a finding behind a bullet, its detail indented. */
export function findingLines(finding: Finding, bullet: string): readonly string[] {
  const place =
    finding.file === undefined
      ? ''
      : `${finding.file}${finding.line === undefined ? '' : `:${String(finding.line)}`}: `;
  const tail = (finding.detail ?? '').split('\n').filter((line) => line.trim() !== '');
  return [
    `${bullet}${oneLine(place + finding.message)} [${findingId(finding)}]`,
    ...tail.slice(-40).map((line) => `      ${printable(line.slice(0, 400))}`),
  ];
}

function waivedLines(waived: readonly Waived[] = []): readonly string[] {
  return waived.map(({ finding, by, what }) => `waived ${finding} by ${by}: ${oneLine(what)}`);
}

/** Makes one safe line of foreign text. */
export function oneLine(text: string): string {
  return printable(text.replace(/\s+/g, ' ').trim().slice(0, 2000));
}

/** A line of its own, at column one, that cannot pass for one of giro's. */
function plainLine(text: string): string {
  const line = oneLine(text);
  return /^(?:#|base |verdict: |- |> |waived |accepted |saved: |definition )/.test(line) ? `    ${line}` : line;
}

/** A line of a packet; one that is indented is foreign text, and stays so. */
function packetLine(text: string): string {
  return text.startsWith(packetIndent)
    ? `${packetIndent}${printable(text.slice(packetIndent.length).slice(0, 400))}`
    : plainLine(text);
}

/** Shows a time as History does. */
export function seconds(iso: string): string {
  return iso.replace(/\.\d+Z$/, 'Z');
}

/** Counts things in words. */
export function plural(count: number, noun: string): string {
  return `${String(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/**
 * The `## History` of an Issue or Spec file, as giro writes it: one readable entry a heading.
 *
 * Nothing that a tool or a model printed can forge an entry: headings count only at column one, and foreign text is
 * either a single line behind a bullet or indented by four columns.
 */
import type { AttemptVerdict, Finding, GateNote, Oid, Waived, WorkNote } from '../issue.js';
import { findingId, shortOid } from '../issue.js';
import type { EscalationCause, SpecCause } from '../event.js';
import { packetIndent } from '../packet.js';
import { printable } from '../platform/text.js';
import { formatUsage } from '../usage.js';

const heading = '## History';
/** Stands before what a worker that said `blocked` asks. */
export const blockedBullet = '- blocked: ';
const summaryBullet = '- worker says: ';
const subjectBullet = '- commit by the worker: ';
const workerBullets = [blockedBullet, summaryBullet, subjectBullet];

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

/** Tells a line that repeats what a worker said from one of giro's. */
export function isWorkerBullet(line: string): boolean {
  return workerBullets.some((bullet) => line.startsWith(bullet));
}

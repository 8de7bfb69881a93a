/** What History says of findings and of people's answers to them: read back, oldest first. */
import type { Finding, Waived } from '../issue.js';
import { findingId } from '../issue.js';
import type { Story } from '../record.js';
import { readFinding, sinceAnswer, type HistoryEntry } from './history.js';
import { isWorkerBullet } from './history-entries.js';

/** Reads the story of an Issue. */
export function storyOf(entries: readonly HistoryEntry[]): Story {
  const found = newestFindings(entries);
  return {
    answers: answersOf(entries).flatMap(({ text }) => (text === '' ? [] : [text])),
    accepted: acceptedIds(entries),
    against: found.map(({ finding }) => finding),
    own: ownFindings(entries),
    acceptable: new Set(found.filter(({ of }) => of === 'verdict').map(({ finding }) => findingId(finding))),
    canJudgeAgain: canJudgeAgain(entries),
    tried: triedLines(entries),
  };
}

/** A finding as it stands in History. */
export interface RecordedFinding {
  readonly finding: Finding;
  /**
   * `verdict`: of a gate or a guard that judged the work, so that a person can accept it; `no-verdict`: of a gate that
   * could not judge; `engine`: of giro itself.
   */
  readonly of: 'verdict' | 'no-verdict' | 'engine';
}

/** Gives what is known against the work of the newest attempt, by its own gates and by the lane. */
export function newestFindings(entries: readonly HistoryEntry[]): readonly RecordedFinding[] {
  const newest = entries.findLastIndex((entry) => entry.kind === 'attempt' || entry.kind === 'validated');
  return entries.slice(Math.max(0, newest)).flatMap((entry) => {
    switch (entry.kind) {
      case 'attempt':
        return findingsIn(entry.text, entry.tree === undefined ? 'engine' : 'verdict');
      case 'integration':
      case 'validated':
        return findingsIn(entry.text, 'engine');
      case 'plan':
      case 'escalated':
      case 'answered':
      case 'integrated':
      case 'other':
        return [];
    }
  });
}

/** Gives what guards and the engine found on the work of the newest attempt itself. */
function ownFindings(entries: readonly HistoryEntry[]): readonly Finding[] {
  const newest = entries.findLast((entry) => entry.kind === 'attempt');
  if (newest === undefined) return [];
  const own = newest.text.split('\n').filter((line) => line.startsWith('- ') && !isWorkerBullet(line));
  return own.flatMap((line) => (isFinding(line) ? [readFinding(line.slice(2))] : []));
}

/** One line for each attempt since the answer before the newest packet: verdict, size, duration, cost. */
function triedLines(entries: readonly HistoryEntry[]): readonly string[] {
  return sinceAnswer(entries).flatMap((entry, index, all): readonly string[] => {
    if (entry.kind !== 'attempt') return [];
    const driver = /^### Attempt \d+ · \S+ · (.*)$/m.exec(entry.text)?.[1] ?? '';
    const facts = (/^base .*$/m.exec(entry.text)?.[0] ?? '')
      .split(' · ')
      .slice(1)
      .filter((fact) => !/^(?:work|tree) [0-9a-f]+$/.test(fact));
    const end = all.findIndex((other, at) => at > index && other.kind === 'attempt');
    const sentBack = all.slice(index + 1, end < 0 ? undefined : end).some((other) => other.kind === 'integration');
    const verdict = `${entry.verdict ?? 'interrupted'}${sentBack ? ', sent back by the merge' : ''}`;
    return [`${String(entry.attempt)}: ${[verdict, driver, ...facts].join(' · ')}`];
  });
}

/** One answer of a person. */
export interface Answer {
  readonly at: string;
  /** How it was given. */
  readonly how: string;
  /** Their own words; empty when they said nothing. */
  readonly text: string;
  readonly accepted: readonly Finding[];
}

/** Gives every answer that a person gave. */
export function answersOf(entries: readonly HistoryEntry[]): readonly Answer[] {
  return entries.flatMap((entry) => (entry.kind === 'answered' ? [readAnswer(entry.text)] : []));
}

/** Gives the ids of the findings that a person accepted; they hold for as long as the Issue or Spec is not done anew. */
export function acceptedIds(entries: readonly HistoryEntry[]): ReadonlySet<string> {
  return new Set(answersOf(entries).flatMap((answer) => answer.accepted.flatMap(({ id }) => id ?? [])));
}

/** Gives the waivers that the newest verdicts stand on, each once. */
export function waiversOf(entries: readonly HistoryEntry[]): readonly Waived[] {
  const own = entries.findLastIndex((entry) => entry.kind === 'attempt' || entry.kind === 'validated');
  const waived = entries.slice(Math.max(0, own)).flatMap((entry) => waivedIn(entry.text));
  return [...new Map(waived.map((one) => [one.finding, one])).values()];
}

/**
 * Says whether the work of the newest attempt should be judged again, as it is: a person answered without a word for
 * the worker, and nothing that can be known now stands against it.
 */
function canJudgeAgain(entries: readonly HistoryEntry[]): boolean {
  const at = entries.findLastIndex((entry) => entry.kind === 'attempt');
  const newest = entries[at];
  if (newest?.kind !== 'attempt' || newest.tree === undefined || sinceAnswer(entries).length > 0) return false;
  const later = answersOf(entries.slice(at));
  if (later.length === 0 || later.some((answer) => answer.text !== '')) return false;
  const accepted = acceptedIds(entries);
  const against = newestFindings(entries);
  const isRepaired = later.every(({ how, accepted: some }) => how.startsWith('run again') || some.length > 0);
  const isAnswered = ({ finding, of }: RecordedFinding): boolean =>
    of === 'no-verdict' ? isRepaired : of === 'verdict' && finding.id !== undefined && accepted.has(finding.id);
  return against.length > 0 && against.every(isAnswered);
}

/** Causes of a red gate that say nothing about the work. */
const unjudged = new Set(['cannot-run-here', 'errored', 'cancelled', 'not run']);

/** `own`: what those that stand behind no gate are. */
function findingsIn(text: string, own: RecordedFinding['of']): readonly RecordedFinding[] {
  const found: RecordedFinding[] = [];
  let ofGate: RecordedFinding['of'] = 'engine';
  const lines = text.split('\n');
  for (const [index, line] of lines.entries()) {
    const note = /^- gate \S+: (?:pass|fail) · (.*)$/.exec(line)?.[1];
    if (note !== undefined && !isFinding(line)) {
      ofGate = note.split(' · ').some((part) => unjudged.has(part)) ? 'no-verdict' : 'verdict';
      continue;
    }
    const bullet = /^(?: {2})?- (.* \[[0-9a-f]{8}\])$/.exec(line)?.[1];
    if (bullet === undefined || isWorkerBullet(line)) continue;
    const finding = readFinding(bullet);
    const detail = detailBelow(lines.slice(index + 1));
    found.push({ finding: detail === '' ? finding : { ...finding, detail }, of: line.startsWith('  ') ? ofGate : own });
  }
  return found;
}

function isFinding(line: string): boolean {
  return / \[[0-9a-f]{8}\]$/.test(line);
}

const detailIndent = '      ';

function detailBelow(lines: readonly string[]): string {
  const end = lines.findIndex((line) => !line.startsWith(detailIndent));
  return lines
    .slice(0, end < 0 ? undefined : end)
    .map((line) => line.slice(detailIndent.length))
    .join('\n');
}

function readAnswer(text: string): Answer {
  const [heading = '', how = '', ...rest] = text.split('\n');
  return {
    at: heading.split(' · ')[1] ?? '',
    how,
    text: rest
      .filter((line) => line.startsWith('>'))
      .map((line) => line.replace(/^> ?/, ''))
      .join('\n'),
    accepted: rest.flatMap((line) => {
      const [, id, message] = /^accepted ([0-9a-f]{8}): (.*)$/.exec(line) ?? [];
      return id === undefined || message === undefined ? [] : [{ id, message }];
    }),
  };
}

function waivedIn(text: string): readonly Waived[] {
  return text.split('\n').flatMap((line): readonly Waived[] => {
    const [, finding, by, what] = /^waived ([0-9a-f]{8}) by (answer|config): (.*)$/.exec(line) ?? [];
    if (finding === undefined || what === undefined) return [];
    return [{ finding, by: by === 'config' ? 'config' : 'answer', what }];
  });
}

/** What the Issue loop decides from the record of an Issue: another attempt, or a human. */
import type { EscalationCause } from '../event.js';
import type { AcceptedIds, Verdict } from '../gates/gate.js';
import { isWaived, noneAccepted } from '../gates/gate.js';
import type { Finding, Waived } from '../issue.js';
import { findingId, shortOid } from '../issue.js';
import { packetLines } from '../packet.js';
import type { Refusal } from './budget-account.js';
import { gateNotes } from './notes.js';
import { issuePacket } from './packet.js';
import type { IssueLoopPorts, IssueRecord } from './ports.js';

/** How an Issue came to rest. */
export type IssueEnd = 'integrated' | 'needs-human' | 'stopped';

/** The slots of the agents, as the scheduler hands them to an Issue. */
export interface AgentSlots {
  agent<T>(run: () => Promise<T>): Promise<T>;
}

/** What the loop does next, or how it ended. */
export type Step = 'attempt' | 'judge' | 'integrate' | IssueEnd;

/** One Issue that is being run. */
export interface Run {
  readonly ports: IssueLoopPorts;
  readonly record: IssueRecord;
  readonly slots: AgentSlots;
  /** Operation failures in a row. */
  failures: number;
  /** Where the output of the newest attempt and of its red gates is. */
  logs: readonly string[];
}

/** A reason for a red that every way of working shares. */
export const nothingChanged: Finding = { message: 'nothing was changed: the files are those of the base' };

/** Decides, after a red, between another attempt and a human. */
export async function afterRed(run: Run, findings: readonly Finding[]): Promise<Step> {
  const { record, ports } = run;
  const { budget } = ports.policy;
  if (record.blockedInARow >= budget.blocked) {
    return escalate(run, { cause: 'blocked', why: 'the worker is blocked', findings });
  }
  const stuck = record.noProgress(budget.noProgress);
  if (stuck !== undefined) return escalate(run, { cause: 'no-progress', why: stuck, findings });
  if (record.budgetUsed >= attemptsAllowed(run)) {
    return escalate(run, { cause: 'budget-spent', why: 'no attempt is left', findings });
  }
  return 'attempt';
}

/** Hands an Issue to a human: the packet on its branch, then where all stories can be read. */
export async function escalate(
  run: Run,
  asked: { readonly cause: EscalationCause; readonly why: string; readonly findings: readonly Finding[] },
): Promise<'needs-human'> {
  const { record, ports } = run;
  const { cause, why, findings } = asked;
  const worktree = ports.folders.leave(record.issue.id);
  const packet = issuePacket({
    spec: ports.spec.slug,
    issue: record.issue.id,
    title: record.issue.title,
    branch: record.ref.replace(/^refs\/heads\//, ''),
    cause,
    attempts: record.attempt,
    why,
    tried: record.story.tried,
    findings,
    acceptable: record.story.acceptable,
    // A branch that is somebody else's by now says nothing about this work.
    changes: record.lost === null ? await record.changes() : [],
    base: shortOid(record.base),
    logs: run.logs.map(ports.shown),
    ...(record.question === undefined ? {} : { asked: record.question }),
  });
  await record.escalate({ cause, packet: packetLines(packet) });
  await ports.publishEscalation(record);
  ports.emit({
    type: 'issue.escalated',
    issue: record.issue.id,
    cause,
    question: packet.question,
    attempts: record.attempt,
    worktree,
  });
  return 'needs-human';
}

/** Its own budget is a question about this Issue; that of the Spec or the run is not: it rests as it is, to be resumed. */
export async function overBudget(run: Run, refusal: Refusal, findings: readonly Finding[]): Promise<Step> {
  if (refusal.scope !== 'issue') return 'stopped';
  const why = refusal.why;
  return escalate(run, { cause: 'budget-spent', why, findings: [{ message: why }, ...findings] });
}

/** Some gate was not asked: the run ends, or no budget is left for a judge. What the others found and took is recorded. */
export async function unfinished(run: Run, verdict: Verdict): Promise<Step> {
  const { record, ports } = run;
  if (ports.signal.aborted || ports.budget.refusedTo(record.issue.id) === null) return 'stopped';
  const gates = gateNotes({ ...verdict, gates: verdict.gates.filter((gate) => gate.cause !== 'cancelled') });
  await record.recordVerdict({ verdict: 'stopped', gates, findings: [] });
  return notJudged(run, verdict.findings);
}

/** Asks a human when it was the Issue's own budget that had no room for a judge. */
export async function notJudged(run: Run, findings: readonly Finding[] = []): Promise<Step> {
  const { record, ports } = run;
  const refusal = ports.signal.aborted ? null : ports.budget.refusedTo(record.issue.id);
  return refusal === null ? 'stopped' : overBudget(run, refusal, findings);
}

/** How long the gates took; cached passes took no time. */
export function gatesMs(verdict: Verdict | null): number {
  return (verdict?.gates ?? []).reduce((sum, gate) => sum + (gate.cached ? 0 : gate.durationMs), 0);
}

/** How many attempts the budget and the Issue allow. */
export function attemptsAllowed(run: Run): number {
  const { attempts } = run.ports.policy.budget;
  return Math.min(attempts, run.record.issue.maxAttempts ?? attempts);
}

/** Says whether the only reds are gates that could not run at all: nothing that a worker could repair. */
export function onlyBroken(verdict: Verdict, accepted: AcceptedIds = noneAccepted): boolean {
  // A gate that waits for others to be green says nothing of its own.
  const reds = verdict.gates.filter(
    (gate) => gate.verdict === 'fail' && gate.cause !== 'not-run' && !isWaived(gate, accepted),
  );
  return reds.length > 0 && reds.every((gate) => gate.cause === 'errored' || gate.cause === 'cannot-run-here');
}

/** Gives the logs of the gates that are red. */
export function redLogs(verdict: Verdict): readonly string[] {
  return verdict.gates.flatMap((gate) => (gate.verdict === 'fail' && gate.log !== null ? [gate.log] : []));
}

/** Names what does not block because a person accepted it. */
export function waivedBy(findings: readonly Finding[]): readonly Waived[] {
  return findings.map((finding) => ({ finding: findingId(finding), by: 'answer', what: finding.message }));
}

/** What History tells against the newest work. */
export function lastFinding(record: IssueRecord): readonly Finding[] {
  return record.story.against;
}

/** Warns of a secret that is about to be committed: a later attempt can take it out of the files, but of no commit. */
export function sayLeaked({ ports, record }: Run, findings: readonly Finding[]): void {
  const files = [
    ...new Set(findings.flatMap(({ rule, file }) => (rule === 'secret' && file !== undefined ? [file] : []))),
  ];
  if (files.length === 0) return;
  const { id: issue } = record.issue;
  const message = `what looks like a secret is committed (${files.join(', ')}), and stays in the history of ${record.ref.replace(/^refs\/heads\//, '')} and, once it lands, of giro/${ports.spec.slug}, whatever a later attempt does: revoke it`;
  ports.emit({ type: 'run.notice', level: 'warning', message, issue });
}

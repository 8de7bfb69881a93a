/** Outcomes and verdicts as History shows them. Pure. */
import type { WorkerOutcome } from '../drivers/worker.js';
import { formatEvidence } from '../gates/evidence.js';
import type { AcceptedIds, GateVerdict, JudgedBy, Verdict } from '../gates/gate.js';
import { isWaived, noneAccepted } from '../gates/gate.js';
import type { GateNote, WorkNote } from '../issue.js';
import { formatDuration } from '../platform/duration.js';
import { printable } from '../platform/text.js';
import { formatUsage } from '../usage.js';
import type { Taken } from './ports.js';

/** Tells how each gate of a verdict ended. */
export function gateNotes(verdict: Verdict, accepted: AcceptedIds = noneAccepted): readonly GateNote[] {
  return verdict.gates.map((gate) => ({
    gate: gate.gate,
    verdict: gate.verdict,
    note: isWaived(gate, accepted) ? `${noteOf(gate)} · waived` : noteOf(gate),
    findings: gate.findings,
  }));
}

/** Tells what a worker left and said. */
export function workNote(taken: Taken, outcome: WorkerOutcome): WorkNote {
  const { result } = outcome;
  const envelope = result.kind === 'finished' ? result.envelope : undefined;
  return {
    ...taken.size,
    duration: formatDuration(outcome.durationMs),
    ...(envelope?.summary === undefined ? {} : { summary: envelope.summary }),
    ...(envelope?.status === 'blocked' ? { question: envelope.question ?? '' } : {}),
    ...(outcome.ended.kind === 'could-not-start' ? {} : { usage: outcome.usage }),
    subjects: taken.subjects,
  };
}

function noteOf(gate: GateVerdict): string {
  const parts = [
    gate.shown ?? (gate.judge === null ? ended(gate) : judgedBy(gate.judge)),
    ...(gate.cause !== null && gate.cause !== 'failed' && gate.cause !== 'not-run' ? [gate.cause] : []),
    ...(gate.cached || gate.cause === 'not-run' ? [] : [formatDuration(gate.durationMs)]),
    ...(gate.evidence === null ? [] : [formatEvidence(gate.evidence)]),
    ...spent(gate),
    ...(gate.waiver === null ? [] : [`accepted by ${gate.waiver}`]),
    ...bindings(gate),
  ];
  return (gate.cached ? ['same code tree, verified before', ...parts.slice(gate.judge === null ? 1 : 0)] : parts).join(
    ' · ',
  );
}

function judgedBy({ driver, model }: JudgedBy): string {
  return printable(model === null ? driver : `${driver} (${model})`);
}

function spent({ usage }: GateVerdict): readonly string[] {
  return usage === null ? [] : formatUsage(usage);
}

/** Enough of a hash to tell things apart, and short enough to be read. */
export function shortHash(hash: string): string {
  return hash.slice(0, 16);
}

/** What a verdict is bound to, as `store/proof-lines.ts` reads it back. */
function bindings({ definition, logHash, judge }: GateVerdict): readonly string[] {
  return [
    `definition ${shortHash(definition)}`,
    ...(logHash === null ? [] : [`log ${shortHash(logHash)}`]),
    ...(judge === null ? [] : [`prompt ${shortHash(judge.promptHash)}`]),
  ];
}

function ended(gate: GateVerdict): string {
  if (gate.ended === null) return 'not run';
  switch (gate.ended.kind) {
    case 'exited':
      return `exit ${String(gate.ended.code)}`;
    case 'signalled':
      return `killed by ${gate.ended.signal}`;
    case 'timed-out':
      return 'timed out';
    case 'stalled':
    case 'cancelled':
    case 'could-not-start':
      return gate.ended.reason;
  }
}

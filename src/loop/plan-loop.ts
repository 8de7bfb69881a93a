/**
 * Planning: the actor of the Spec loop that writes Issues (DESIGN 5). One call plans the Issues of a Spec that has none,
 * or the gap Issues of one round.
 *
 * P1 A plan is recorded before its planner starts (L5); what stays open counts.
 * P2 A plan is written as a whole in one commit, which closes its entry too: it is never paid twice.
 * P3 What was not taken goes back once, with the reasons; then a human is asked.
 */
import type { ActorResult } from '../drivers/driver.js';
import type { PlannedText, PlannerEnvelope } from '../drivers/planner.js';
import { unreachable } from '../failure.js';
import type { Emit, IssueFacts, SpecCause } from '../event.js';
import type { Finding, Oid, SpecSlug } from '../issue.js';
import type { Clock } from '../platform/clock.js';
import { formatDuration } from '../platform/duration.js';
import type { Policy } from '../policy.js';
import type { Usage } from '../usage.js';
import type { Budgeting, Ticket } from './budget.js';
import { pauseMs } from './parking.js';
import type { PlannedIssue } from './plan-draft.js';

/** What is to be planned. */
export interface PlanRequest {
  /** 0: the first plan; else the round whose validation was red. */
  readonly round: number;
  /** What that validation found, as it stands in History; empty for the first plan. */
  readonly gaps: string;
}

/** How a planning ended. */
export type PlanOutcome =
  | { readonly kind: 'planned' }
  | { readonly kind: 'escalated'; readonly asks: SpecAsks }
  | { readonly kind: 'held'; readonly message: string }
  | { readonly kind: 'stopped' };

/** What a Spec asks of a human. */
export interface SpecAsks {
  readonly cause: SpecCause;
  /** One sentence on what was tried. */
  readonly why: string;
  readonly findings: readonly Finding[];
  /** What the planner itself asks. */
  readonly questions: readonly string[];
}

/** One call of a planner, in its own checkout. */
export interface PlannerCall {
  readonly plan: number;
  /** The commit that it is shown. */
  readonly commit: Oid;
  readonly request: PlanRequest;
  readonly standing: PlanStanding;
  /** For the budgets of time; `null`: they say nothing. */
  readonly timeLeftMs: number | null;
}

/** What came of a call. */
export interface PlannerReply {
  readonly result: ActorResult<PlannerEnvelope>;
  readonly durationMs: number;
  /** The last lines of the transcript. */
  readonly tail: string;
  readonly usage: Usage;
}

/** Where this planning stands, from the Spec's History. */
export interface PlanStanding {
  readonly used: number;
  readonly rejected: readonly Finding[];
  readonly questions: readonly string[];
  readonly answers: string;
}

/** What a call took. */
export interface Spent {
  readonly duration: string;
  readonly usage: Usage;
}

/** The durable record of plans; each method is one commit on the integration branch. */
export interface PlanRecord {
  standing(): Promise<PlanStanding>;
  open(entry: { readonly driver: string; readonly round: number }): Promise<PlanWritten<{ readonly plan: number }>>;
  close(entry: {
    readonly verdict: 'fail' | 'operation' | 'stopped';
    readonly spent: Spent;
    readonly findings: readonly Finding[];
    readonly questions: readonly string[];
  }): Promise<PlanWritten<object>>;
  /** Writes the Issues, and closes the entry in the same commit. */
  write(entry: {
    readonly spent: Spent;
    readonly issues: readonly PlannedIssue[];
  }): Promise<PlanWritten<{ readonly facts: readonly IssueFacts[] }>>;
}

/** What was written and where the branch stands now, or why nothing can be written. */
export type PlanWritten<T> =
  ({ readonly kind: 'recorded'; readonly tip: Oid } & T) | { readonly kind: 'held'; readonly message: string };

/** What planning needs. */
export interface PlanPorts {
  readonly spec: SpecSlug;
  readonly budget: Policy['budget'];
  /** Asked before each call. */
  readonly spending: Pick<Budgeting, 'ask'>;
  readonly driver: string;
  readonly record: PlanRecord;
  readonly call: (call: PlannerCall) => Promise<PlannerReply>;
  /** Turns a planner's texts into Issues, or into every reason why not. */
  readonly draft: (
    texts: readonly PlannedText[],
    round: number,
  ) => Promise<
    | { readonly kind: 'plan'; readonly issues: readonly PlannedIssue[] }
    | { readonly kind: 'rejected'; readonly findings: readonly Finding[] }
  >;
  readonly logFile: (plan: number) => string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly emit: Emit;
  readonly jitter: () => number;
}

/** How often a plan is asked for: once, and once more with what was wrong with it. */
const plansAllowed = 2;

/** Plans until Issues are written, a human is asked, or the run stops. */
export async function runPlanning(ports: PlanPorts, request: PlanRequest): Promise<PlanOutcome> {
  for (let failures = 0; ;) {
    const standing = await ports.record.standing();
    const asks = mustAsk(standing);
    if (asks !== null) return { kind: 'escalated', asks };
    if (ports.signal.aborted) return { kind: 'stopped' };
    const step = await attempt(ports, request, standing);
    if (step.kind === 'again') continue;
    if (step.kind !== 'operation') return step;
    failures += 1;
    const { reason } = step;
    if (failures >= ports.budget.failures) {
      const why = `the planner could not work, ${String(failures)} times in a row`;
      return escalated({ cause: 'operation-failures', why, findings: [{ message: reason }], questions: [] });
    }
    const inMs = pauseMs(ports, { failures, until: step.until });
    ports.emit({ type: 'spec.plan.retrying', spec: ports.spec, reason, inMs, failures });
    await ports.clock.sleep(inMs, ports.signal);
  }
}

type Step =
  | PlanOutcome
  | { readonly kind: 'again' }
  | { readonly kind: 'operation'; readonly reason: string; readonly until?: string };

/** What History says already, so that a run that was killed asks the same without paying again. */
function mustAsk(standing: PlanStanding): SpecAsks | null {
  const { questions, rejected, used } = standing;
  if (questions.length > 0) return { cause: 'questions', why: 'the planner has questions', findings: [], questions };
  if (used < plansAllowed) return null;
  const findings = rejected.length > 0 ? rejected : [{ message: 'no planner came to its end' }];
  return { cause: 'plan-rejected', why: `${String(used)} plans were not taken`, findings, questions: [] };
}

async function attempt(ports: PlanPorts, request: PlanRequest, standing: PlanStanding): Promise<Step> {
  const asked = await ports.spending.ask({ role: 'planner', driver: ports.driver, issue: null }, ports.signal);
  // Whoever is told that it stopped asks the budget why.
  if (asked.kind !== 'open') return { kind: 'stopped' };
  try {
    return await attemptWith(ports, { request, standing, ticket: asked.ticket });
  } finally {
    asked.ticket.close(null);
  }
}

async function attemptWith(
  ports: PlanPorts,
  going: { readonly request: PlanRequest; readonly standing: PlanStanding; readonly ticket: Ticket },
): Promise<Step> {
  const { request, standing, ticket } = going;
  const { record, spec, emit } = ports;
  const { round } = request;
  const opened = await record.open({ driver: ports.driver, round });
  if (opened.kind === 'held') return opened;
  const { plan } = opened;
  emit({ type: 'spec.plan.started', spec, round, plan, driver: ports.driver, log: ports.logFile(plan) });
  const reply = await ports.call({ plan, commit: opened.tip, request, standing, timeLeftMs: ticket.timeLeftMs });
  ticket.close(reply);
  const spent = { duration: formatDuration(reply.durationMs), usage: reply.usage };
  const { result } = reply;
  const close = (verdict: 'fail' | 'operation' | 'stopped', findings: readonly Finding[]) =>
    record.close({ verdict, spent, findings, questions: [] });
  switch (result.kind) {
    case 'stopped':
      await close('stopped', []);
      return result;
    case 'usage-limit':
    case 'operation': {
      const written = await close('operation', [{ message: result.reason, ...detailOf(reply) }]);
      return written.kind === 'held' ? written : { ...result, kind: 'operation' };
    }
    case 'failed':
      return reject({ ...ports, spent }, { round, plan }, [{ message: result.reason, ...detailOf(reply) }]);
    case 'finished':
      return take({ ...ports, spent }, { round, plan }, result.envelope);
    default:
      return unreachable(result);
  }
}

type Closing = PlanPorts & { readonly spent: Spent };

interface Place {
  readonly round: number;
  readonly plan: number;
}

/** Takes what a planner gave: questions, Issues to write, or a plan that cannot be one. */
async function take(ports: Closing, place: Place, envelope: PlannerEnvelope): Promise<Step> {
  const { record, spent, spec, emit } = ports;
  if (envelope.kind === 'questions') {
    const { questions } = envelope;
    const written = await record.close({ verdict: 'fail', spent, findings: [], questions });
    // The next look at History finds them.
    return written.kind === 'held' ? written : { kind: 'again' };
  }
  const draft = await ports.draft(envelope.issues, place.round);
  if (draft.kind === 'rejected') return reject(ports, place, draft.findings);
  const written = await record.write({ spent, issues: draft.issues });
  if (written.kind === 'held') return written;
  emit({ type: 'spec.planned', spec, round: place.round, issues: written.facts, tip: written.tip });
  return { kind: 'planned' };
}

async function reject(ports: Closing, place: Place, findings: readonly Finding[]): Promise<Step> {
  const written = await ports.record.close({ verdict: 'fail', spent: ports.spent, findings, questions: [] });
  if (written.kind === 'held') return written;
  ports.emit({ type: 'spec.plan.rejected', spec: ports.spec, ...place, findings });
  return { kind: 'again' };
}

function escalated(asks: SpecAsks): PlanOutcome {
  return { kind: 'escalated', asks };
}

function detailOf({ tail }: PlannerReply): Pick<Finding, 'detail'> {
  return tail === '' ? {} : { detail: tail };
}

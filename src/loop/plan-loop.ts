/**
 * Planning: the actor of the Spec loop that writes Issues (DESIGN 5). One call plans the Issues of a Spec that has none,
 * or the gap Issues of one round.
 *
 * P1 A plan is recorded before its planner starts (L5); what stays open counts.
 * P2 A plan is written as a whole in one commit, which closes its entry too: it is never paid twice.
 * P3 What was not taken goes back once, with the reasons; then a human is asked. So it is with what nobody could read,
 *    which is counted apart: no plan was refused by it.
 * P4 A plan is recorded inside one of the agents' slots: a planner that waits for its turn has begun nothing.
 */
import type { ActorResult } from '../drivers/driver.js';
import type { PlannedText, PlannerEnvelope } from '../drivers/planner.js';
import { unreachable } from '../failure.js';
import type { IssueFacts, SpecCause } from '../event.js';
import type { Finding, Oid, SpecSlug } from '../issue.js';
import { formatDuration } from '../platform/duration.js';
import type { Policy } from '../policy.js';
import type { Usage } from '../usage.js';
import type { Budgeting, Ticket } from './budget.js';
import { park, pauseMs, type ParkingPorts } from './parking.js';
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
  /** Plans that were given and not taken. */
  readonly refused: number;
  /** Planners that gave none that could be read, or ran into their limit. */
  readonly unread: number;
  /** Planners under which giro ended: they count as attempts do (L5). */
  readonly cutOff: number;
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
    /** True: there was no plan in what the planner gave. */
    readonly unread?: boolean;
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
export interface PlanPorts extends ParkingPorts {
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
  /** Aborted with the run, or before it: no planner is started any more. */
  readonly noMore: AbortSignal;
  /** Takes one of the agents' slots; `null`: no agent is to be started any more. */
  readonly inSlot: <T>(run: () => Promise<T>) => Promise<T | null>;
}

/** How often a plan is asked for: once, and once more with what was wrong with it. */
const timesAllowed = 2;

/** Plans until Issues are written, a human is asked, or the run stops. */
export async function runPlanning(ports: PlanPorts, request: PlanRequest): Promise<PlanOutcome> {
  for (let failures = 0; ;) {
    const asks = mustAsk(await ports.record.standing(), ports.budget.attempts);
    if (asks !== null) return { kind: 'escalated', asks };
    const step = await whenOpen(ports, () => attempt(ports, request, failures));
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
    await ports.clock.sleep(inMs, ports.noMore);
  }
}

type Step =
  | PlanOutcome
  | { readonly kind: 'again' }
  | { readonly kind: 'operation'; readonly reason: string; readonly until?: string };

/** What History says already, so that a run that was killed asks the same without paying again. */
function mustAsk(standing: PlanStanding, attempts: number): SpecAsks | null {
  const { questions, rejected, refused, unread, cutOff } = standing;
  if (questions.length > 0) return { cause: 'questions', why: 'the planner has questions', findings: [], questions };
  if (refused < timesAllowed && unread < timesAllowed && cutOff < attempts) return null;
  const wasCutOff = cutOff >= attempts;
  const why = wasCutOff
    ? `giro ended ${String(cutOff)} times while its planner worked`
    : `${String(refused + unread)} plans were not taken`;
  const findings = rejected.length > 0 ? rejected : [{ message: wasCutOff ? why : 'no planner came to its end' }];
  return { cause: 'plan-rejected', why, findings, questions: [] };
}

/** Waits for a slot, and gives it back while agents are parked, so that whoever needs none goes on. */
async function whenOpen({ inSlot, parking, noMore }: PlanPorts, act: () => Promise<Step>): Promise<Step> {
  for (;;) {
    const step = noMore.aborted ? null : await inSlot(async () => (parking.isClosed ? 'parked' : act()));
    if (step === null) return { kind: 'stopped' };
    if (step !== 'parked') return step;
    await parking.over(noMore);
  }
}

async function attempt(ports: PlanPorts, request: PlanRequest, failures: number): Promise<Step> {
  const asked = await ports.spending.ask({ role: 'planner', driver: ports.driver, issue: null }, ports.noMore);
  // Whoever is told that it stopped asks the budget why.
  if (asked.kind !== 'open') return { kind: 'stopped' };
  try {
    return await attemptWith(ports, { request, failures, ticket: asked.ticket });
  } finally {
    asked.ticket.close(null);
  }
}

async function attemptWith(
  ports: PlanPorts,
  going: { readonly request: PlanRequest; readonly failures: number; readonly ticket: Ticket },
): Promise<Step> {
  const { request, failures, ticket } = going;
  const { record, spec, emit } = ports;
  const { round } = request;
  const standing = await record.standing();
  const opened = await record.open({ driver: ports.driver, round });
  if (opened.kind === 'held') return opened;
  const { plan } = opened;
  emit({ type: 'spec.plan.started', spec, round, plan, driver: ports.driver, log: ports.logFile(plan) });
  const reply = await ports.call({ plan, commit: opened.tip, request, standing, timeLeftMs: ticket.timeLeftMs });
  ticket.close(reply);
  const spent = { duration: formatDuration(reply.durationMs), usage: reply.usage };
  const { result } = reply;
  // Still inside the slot: whoever gets it next must know.
  if (result.kind === 'usage-limit') park(ports, { ...result, failures: failures + 1 });
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
      return reject({ ...ports, spent }, { round, plan, unread: true }, [
        { message: result.reason, ...detailOf(reply) },
      ]);
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
  readonly unread?: true;
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
  const { round, plan, unread = false } = place;
  const written = await ports.record.close({ verdict: 'fail', spent: ports.spent, findings, questions: [], unread });
  if (written.kind === 'held') return written;
  ports.emit({ type: 'spec.plan.rejected', spec: ports.spec, round, plan, findings });
  return { kind: 'again' };
}

function escalated(asks: SpecAsks): PlanOutcome {
  return { kind: 'escalated', asks };
}

function detailOf({ tail }: PlannerReply): Pick<Finding, 'detail'> {
  return tail === '' ? {} : { detail: tail };
}

/**
 * The Issue loop: record, work, commit, judge, integrate, until it lands or is handed to a human (DESIGN 5).
 *
 * | standing    | next step                                                            |
 * |-------------|----------------------------------------------------------------------|
 * | fresh, between, interrupted | an attempt, if the budget has one left               |
 * | between, answered | a person's changes in the folder become the work of an entry: judge |
 * | by-hand     | a person's commits on the branch do                                  |
 * | judging     | gates on the committed work                                          |
 * | integrating | the merge lane                                                       |
 *
 * L1 An attempt is recorded before its agent starts, inside the agent's slot.
 * L2 Whatever an agent left is on the Issue's branch before anything is decided about it.
 * L3 A verdict is recorded before its consequence.
 * L4 Once the branch is somebody else's, nothing more is done for the Issue but to hand it to a human.
 * L5 No agent is started before the budgets of the Issue, the Spec and the run have room for it.
 * L6 Once `signal` is aborted no agent and no gate is started, and no agent once `noMore` is; a later run resumes.
 */
import type { DriverRequest } from '../drivers/driver.js';
import { workerContract, type WorkerOutcome, type WorkerResult } from '../drivers/worker.js';
import { unreachable } from '../failure.js';
import type { Verdict } from '../gates/gate.js';
import { dueGates } from '../gates/gate.js';
import { guardFinding } from '../gates/guard-rule.js';
import type { Finding, Oid, WorkNote } from '../issue.js';
import { findingId } from '../issue.js';
import {
  afterRed,
  attemptsAllowed,
  escalate,
  lastFinding,
  nothingChanged,
  onlyBroken,
  overBudget,
  unfinished,
  notJudged,
  gatesMs,
  redLogs,
  sayLeaked,
  waivedBy,
  type AgentSlots,
  type IssueEnd,
  type Run,
  type Step,
} from './decide.js';
import { gateNotes, workNote } from './notes.js';
import type { Refusal } from './budget-account.js';
import type { Ticket } from './budget.js';
import type { IssueLoopPorts, IssueRecord, WorkFolder } from './ports.js';
import { park, pauseMs } from './parking.js';
import { workerPrompt } from './prompt.js';
import { firstStep } from './resume.js';

/** Runs one Issue until it is integrated, needs a human, or the run stops. */
export async function runIssue(ports: IssueLoopPorts, record: IssueRecord, slots: AgentSlots): Promise<IssueEnd> {
  const run: Run = { ports, record, slots, failures: 0, logs: [] };
  try {
    return await loop(run);
  } catch (error) {
    // The branch was moved: what was not recorded there is saved where the escalation is published.
    if (record.lost !== null) return handOver(run, record.lost);
    ports.folders.leave(record.issue.id);
    // A slot that was waited for is refused with the signal's own reason.
    if ([ports.signal, ports.noMore].some((signal) => signal.aborted && error === signal.reason)) return 'stopped';
    throw error;
  }
}

function handOver(run: Run, lost: string): Promise<'needs-human'> {
  const why = 'its branch is not as giro left it';
  return escalate(run, { cause: 'operation-failures', why, findings: [{ message: lost }] });
}

async function loop(run: Run): Promise<IssueEnd> {
  const { ports, record } = run;
  let step = await firstStep(run);
  for (;;) {
    switch (step) {
      case 'attempt':
        step = await attempt(run);
        break;
      case 'judge':
        step = await judge(run);
        break;
      case 'integrate':
        step = await integrate(run);
        break;
      case 'integrated':
        ports.folders.release(record.issue.id);
        return step;
      case 'needs-human':
      case 'stopped':
        ports.folders.leave(record.issue.id);
        return step;
      default:
        return unreachable(step);
    }
  }
}

async function attempt(run: Run): Promise<Step> {
  const { ports, record } = run;
  const spent = attemptsAllowed(run) - record.budgetUsed <= 0;
  if (spent) return escalate(run, { cause: 'budget-spent', why: 'no attempt is left', findings: lastFinding(record) });
  if (ports.noMore.aborted) return 'stopped';
  const worked = await whenOpen(run, () => work(run));
  if (worked === null) return 'stopped';
  if (worked.kind === 'refused') return overBudget(run, worked.refusal, lastFinding(record));
  if (worked.kind === 'unprepared') return operation(run, worked, { tail: '', findings: [] });
  return takeBack(run, worked);
}

/** Gives its slot back while agents are parked, so that whoever needs none goes on. */
async function whenOpen<T>({ ports, slots }: Run, act: () => Promise<T>): Promise<T> {
  for (;;) {
    const worked = await slots.agent(async () => (ports.parking.isClosed ? null : { value: await act() }));
    if (worked !== null) return worked.value;
    await ports.parking.over(ports.noMore);
  }
}

type Worked =
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'unprepared'; readonly reason: string }
  | {
      readonly kind: 'worked';
      readonly attempt: number;
      readonly base: Oid;
      readonly outcome: WorkerOutcome;
    };

/** Runs inside an agent's slot: record, prepare, drive. */
async function work(run: Run): Promise<Worked | null> {
  const { ports, record } = run;
  const call = { role: 'worker', driver: ports.driver.name, issue: record.issue.id } as const;
  const asked = await ports.budget.ask(call, ports.noMore);
  if (asked.kind === 'stopped') return null;
  if (asked.kind === 'refused') return asked;
  try {
    return await workWith(run, asked.ticket);
  } finally {
    asked.ticket.close(null);
  }
}

async function workWith(run: Run, ticket: Ticket): Promise<Worked> {
  const { ports, record } = run;
  if (record.commit === null) await record.bringOnto(ports.tip());
  const conflicts = record.conflicts;
  const { findings } = record;
  const { answers } = record.story;
  const recorded = await record.recordAttempt(ports.driver.name);
  const prepared = await ports.folders.prepare(record.issue.id, recorded.commit, recorded.files);
  if (!prepared.ok) return { kind: 'unprepared', reason: failureText(prepared.failure) };
  const folder = prepared.value;
  const log = ports.logFile(record.issue.id, recorded.attempt);
  run.logs = [log];
  ports.emit({
    type: 'attempt.started',
    issue: record.issue.id,
    attempt: recorded.attempt,
    driver: ports.driver.name,
    slot: folder.slot.number,
    base: recorded.base,
    worktree: folder.folder,
    log,
  });
  const timeoutMs = Math.min(ports.policy.budget.attemptTimeoutMs, ticket.timeLeftMs ?? Infinity);
  const outcome = await drive(run, { attempt: recorded.attempt, folder, log, findings, answers, conflicts, timeoutMs });
  ticket.close(outcome.ended.kind === 'could-not-start' ? null : outcome);
  // Still inside the slot: whoever gets it next must know.
  if (outcome.result.kind === 'usage-limit') park(ports, { ...outcome.result, failures: run.failures + 1 });
  return { kind: 'worked', attempt: recorded.attempt, base: recorded.base, outcome };
}

async function drive(
  run: Run,
  request: {
    readonly attempt: number;
    readonly folder: WorkFolder;
    readonly log: string;
    readonly findings: string;
    readonly answers: readonly string[];
    readonly conflicts: readonly string[];
    readonly timeoutMs: number;
  },
): Promise<WorkerOutcome> {
  const { ports, record } = run;
  const { issue } = record;
  const { attempt, folder } = request;
  const envelopeFile = ports.envelopeFile(issue.id, attempt, folder);
  const call: DriverRequest = {
    role: 'worker',
    spec: ports.spec.slug,
    issue: issue.id,
    gate: null,
    attempt,
    prompt: workerPrompt({
      issue,
      spec: ports.spec,
      attempt: record.budgetUsed,
      budget: attemptsAllowed(run),
      gates: dueGates(ports.policy.gates, 'issue', issue.gates),
      findings: request.findings,
      answers: request.answers,
      conflicts: request.conflicts,
    }),
    folder: folder.folder,
    environment: ports.environment({ issue: issue.id, attempt, folder, envelopeFile }),
    envelopeFile,
    logFile: request.log,
    timeoutMs: request.timeoutMs,
    graceMs: ports.policy.limits.graceMs,
    signal: ports.signal,
  };
  return ports.driver.run(call, workerContract);
}

/** Commits what the worker left (L2), then decides what it means. */
async function takeBack(run: Run, worked: Extract<Worked, { kind: 'worked' }>): Promise<Step> {
  const { ports, record } = run;
  const { outcome } = worked;
  const { result } = outcome;
  const before = await record.trees();
  const taken = await ports.folders.takeBack(record.issue, worked.base);
  const code = taken.code ?? before.code;
  const empty = code === before.baseCode;
  sayLeaked(run, taken.findings);
  const judged = result.kind === 'finished' && taken.code !== null && !empty;
  const line = workNote(taken, outcome);
  const isNew = judged || (taken.code !== null && taken.code !== before.shown);
  const overruled = judged ? await overruledBy(run, code) : [];
  const findings = judged ? [...taken.findings, ...overruled] : [];
  const overrules = overruled.some((finding) => !record.story.accepted.has(findingId(finding)));
  const commit = isNew ? await record.commitWork({ code, line, gated: judged, findings, overrules }) : null;
  ports.emit({
    type: 'attempt.finished',
    issue: record.issue.id,
    attempt: worked.attempt,
    result: judged ? 'committed' : shownResult(result),
    ended: outcome.ended,
    durationMs: outcome.durationMs,
    ...(line.usage === undefined ? {} : { usage: line.usage }),
    commit,
    ...taken.size,
    ...('reason' in result
      ? { reason: result.reason }
      : empty && !judged
        ? { reason: taken.code === null ? 'what it left cannot be taken' : 'nothing was changed' }
        : {}),
  });
  if (judged) return 'judge';
  const unchanged = taken.code !== null && empty;
  return unjudged(run, outcome, { findings: taken.findings, unchanged, ...(isNew ? {} : { line }) });
}

const overruledRule = 'overruled';

/** Whoever resolves a conflict keeps what landed. */
async function overruledBy({ ports, record }: Run, code: Oid): Promise<readonly Finding[]> {
  const work = { spec: ports.spec.slug, issue: record.issue };
  const message = 'the conflict was settled by one side, and what landed there is dropped: keep both';
  return (await record.overruled(code)).map((file) => guardFinding(work, { rule: overruledRule, file, message }));
}

function shownResult({ kind }: WorkerResult): 'failed' | 'operation' | 'stopped' {
  if (kind === 'finished') return 'failed';
  return kind === 'usage-limit' ? 'operation' : kind;
}

/** What an attempt that is not judged left; `line`: it is not in History yet. */
interface Left {
  readonly findings: readonly Finding[];
  readonly unchanged: boolean;
  readonly line?: WorkNote;
}

async function unjudged(run: Run, outcome: WorkerOutcome, left: Left): Promise<Step> {
  const { record, ports } = run;
  const { result, tail } = outcome;
  switch (result.kind) {
    case 'stopped':
      await record.recordVerdict({ verdict: 'stopped', gates: [], findings: left.findings, ...lineOf(left) });
      return 'stopped';
    case 'operation':
    case 'usage-limit':
      return operation(run, result, { ...left, tail });
    case 'failed':
      return red(run, { ...left, findings: [{ message: result.reason, detail: tail }, ...left.findings] });
    case 'finished': {
      const stray = left.unchanged ? await ports.strayFiles() : [];
      const nothing = left.unchanged ? [{ ...nothingChanged, detail: tail }] : [];
      const strayed = stray.map((file) => ({
        file,
        message: "changed in the user's checkout during the run, outside the worktree; giro does not touch it",
      }));
      return red(run, { ...left, findings: [...nothing, ...strayed, ...left.findings] });
    }
    default:
      return unreachable(result);
  }
}

function lineOf({ line }: Pick<Left, 'line'>): Pick<Left, 'line'> {
  return line === undefined ? {} : { line };
}

async function red(run: Run, left: Omit<Left, 'unchanged'>): Promise<Step> {
  const { record, ports } = run;
  const { findings } = left;
  await record.recordVerdict({ verdict: 'fail', gates: [], findings, ...lineOf(left) });
  const judged = { issue: record.issue.id, attempt: record.attempt, verdict: 'fail', findings } as const;
  ports.emit({ type: 'attempt.judged', ...judged });
  run.failures = 0;
  return afterRed(run, findings);
}

/** An operation broke: retried with backoff, or when it says that it can be had again; never charged to the worker. */
async function operation(
  run: Run,
  broken: { readonly reason: string; readonly until?: string },
  left: Omit<Left, 'unchanged'> & { readonly tail: string },
): Promise<Step> {
  const { record, ports } = run;
  const { reason } = broken;
  const finding: Finding = { message: reason, ...(left.tail === '' ? {} : { detail: left.tail }) };
  const findings = [finding, ...left.findings];
  await record.recordVerdict({ verdict: 'operation', gates: [], findings, ...lineOf(left) });
  run.failures += 1;
  if (run.failures >= ports.policy.budget.failures) {
    const why = `${String(run.failures)} operation failures in a row`;
    return escalate(run, { cause: 'operation-failures', why, findings: [finding] });
  }
  const inMs = pauseMs(ports, { failures: run.failures, until: broken.until });
  ports.emit({ type: 'issue.retrying', issue: record.issue.id, reason, inMs, failures: run.failures });
  await ports.clock.sleep(inMs, ports.noMore);
  return 'attempt';
}

async function judge(run: Run): Promise<Step> {
  const { ports, record } = run;
  if (ports.signal.aborted) return 'stopped';
  const { code } = await record.trees();
  const { accepted } = record.story;
  const isAccepted = (finding: Finding): boolean => accepted.has(findingId(finding));
  const own = record.workFindings.filter((finding) => !isAccepted(finding));
  const ownWaived = record.workFindings.filter(isAccepted);
  const verdict = await ports.budget.judging(record.issue.id, () => verify(run, code), gatesMs);
  if (verdict?.gates.some((gate) => gate.cause === 'cancelled') === true) return unfinished(run, verdict);
  const findings = [...own, ...(verdict?.findings ?? [])];
  const gates = verdict === null ? [] : gateNotes(verdict, accepted);
  const waived = [...waivedBy(ownWaived), ...(verdict?.waived ?? [])];
  const told = waived.length === 0 ? {} : { waived };
  const { attempt, issue } = record;
  if (own.length === 0 && verdict?.passed !== false) {
    await record.recordVerdict({ verdict: 'pass', code, gates, findings: [], waived });
    ports.emit({ type: 'attempt.judged', issue: issue.id, attempt, verdict: 'pass', findings: [], ...told });
    return 'integrate';
  }
  if (verdict !== null) run.logs = [...run.logs, ...redLogs(verdict)];
  const broken = own.length === 0 && verdict !== null && onlyBroken(verdict, accepted);
  const outcome = broken ? 'operation' : 'fail';
  await record.recordVerdict({ verdict: outcome, code, gates, findings: [], waived });
  ports.emit({ type: 'attempt.judged', issue: issue.id, attempt, verdict: outcome, findings, ...told });
  run.failures = 0;
  if (broken) return escalate(run, { cause: 'cannot-run-here', why: 'a gate cannot run here', findings });
  // The next attempt is shown the same conflicts again.
  if (own.some(({ rule }) => rule === overruledRule)) await record.bringOnto(ports.tip());
  return afterRed(run, findings);
}

/** `null`: no gate is due before the lane, which always has one. */
async function verify(run: Run, code: Oid): Promise<Verdict | null> {
  const { ports, record } = run;
  const gates = dueGates(ports.policy.gates, 'issue', record.issue.gates);
  if (gates.length === 0) return null;
  return ports.verifier.verify({
    scope: 'issue',
    issue: record.issue.id,
    gates,
    codeTree: code,
    attempt: record.attempt,
    subject: record.commit === null ? null : { commit: record.commit, base: record.base },
    accepted: record.story.accepted,
    signal: ports.signal,
  });
}

async function integrate(run: Run): Promise<Step> {
  const { ports, record } = run;
  if (ports.signal.aborted) return 'stopped';
  const answer = await ports.land(record);
  switch (answer.kind) {
    case 'landed':
      return 'integrated';
    case 'stopped':
      return notJudged(run);
    case 'held':
      return 'needs-human';
    case 'rejected':
      run.logs = [...run.logs, ...(answer.logs ?? [])];
      // The findings of gates stand behind their gates.
      await record.recordRejection({ ...answer, findings: answer.gates.length > 0 ? [] : answer.findings });
      await record.bringOnto(answer.tip);
      // Nothing that a worker could repair: the merged tree was not judged at all.
      if (answer.broken) {
        return escalate(run, {
          cause: 'cannot-run-here',
          why: 'a gate cannot run on the merged tree',
          findings: answer.findings,
        });
      }
      return afterRed(run, answer.findings);
    default:
      return unreachable(answer);
  }
}

function failureText(failure: { readonly kind: string; readonly message?: string }): string {
  return failure.message ?? failure.kind;
}

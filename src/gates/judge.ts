/**
 * One gate that a judge decides (DESIGN 8).
 *
 * 1. Each call is a fresh context in a fresh folder; a second call knows nothing of the first but what was wrong with the envelope.
 * 2. Nothing counts but the envelope. Without a valid one there is one more call, then the gate is `errored`.
 * 3. A judge that changed what it was to look at has no verdict.
 * 4. The time limit of the gate holds for all its calls together; waiting for a call is not part of it.
 * 5. A call that broke for want of what is around it (a program, a login, a usage limit) is not the one that rule 2 grants: it is
 *    made again after a pause, as a worker's would be, and no slot is held meanwhile.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { JudgeEnvelope } from '../drivers/judge.js';
import type { DriverOutcome, EnvelopeContract } from '../drivers/driver.js';
import { formatLimit } from '../platform/duration.js';
import { hashFile } from '../platform/hash.js';
import { printable } from '../platform/text.js';
import type { JudgedGate } from '../policy.js';
import type { Usage } from '../usage.js';
import { gateFinding, type Red } from './finding.js';
import type { GateVerdict, VerifierPorts, VerifyRequest } from './gate.js';
import { judgePrompt } from './judge-prompt.js';
import { judgeFindings } from './judge-finding.js';
import type { Brief, JudgePorts, ReadingCheckout } from './judging.js';
import { blankVerdict, cancelledVerdict, notRun } from './run.js';

/** What one judgement takes. */
export interface Judgement {
  readonly ports: Pick<VerifierPorts, 'graceMs' | 'clock' | 'emit' | 'slots'>;
  readonly judges: JudgePorts;
  readonly request: VerifyRequest;
  readonly gate: JudgedGate;
  readonly brief: Brief;
  readonly logFile: string;
}

/** Brings the gate to a verdict. */
export async function judge(judgement: Judgement): Promise<GateVerdict> {
  const { gate, judges, request, ports } = judgement;
  const spent: Spent = { durationMs: 0, usage: null };
  let mistake: string | null = null;
  let begins = true;
  for (let failures = 0; ;) {
    const last = await callInSlot(judgement, { mistake, begins, failures, spent });
    const hasTime = spent.durationMs < gate.timeoutMs && !isStopped(request);
    if (last.kind === 'broken') failures += 1;
    if (last.kind === 'broken' && hasTime && failures < judges.failures) {
      const { reason, inMs } = last;
      const { scope, issue } = request;
      ports.emit({ type: 'gate.retrying', scope, gate: gate.name, issue, reason, inMs, failures });
      await ports.clock.sleep(inMs, request.signal);
      begins = true;
    } else if (last.kind === 'unreadable' && hasTime && mistake === null) {
      [mistake, failures, begins] = [last.mistake, 0, false];
    } else {
      const said = last.kind === 'broken' && failures > 1 ? { ...last, reason: inARow(last.reason, failures) } : last;
      const verdict = await verdictOf(judgement, said);
      return { ...verdict, ...spent, logHash: verdict.log === null ? null : await hashFile(verdict.log) };
    }
  }
}

function inARow(reason: string, times: number): string {
  return `${reason}, ${String(times)} times in a row`;
}

/** What the calls of a gate took together. */
interface Spent {
  durationMs: number;
  usage: Usage | null;
}

interface Try {
  readonly mistake: string | null;
  /** True: it is told that the gate starts. */
  readonly begins: boolean;
  /** How many calls have broken in a row before. */
  readonly failures: number;
  readonly spent: Spent;
}

/** Makes one call when there is room for it, and adds to what was spent. */
async function callInSlot(judgement: Judgement, { mistake, begins, failures, spent }: Try): Promise<Call> {
  const { ports, judges, request, gate, logFile: log } = judgement;
  const { scope, issue, codeTree: tree } = request;
  const run = async (): Promise<Call | null> => {
    if (isStopped(request)) return { kind: 'stopped', usage: null };
    if (judges.parking.isClosed) return null;
    const { name: driver } = judges.driver;
    if (begins) ports.emit({ type: 'gate.started', scope, gate: gate.name, issue, tree, log, driver });
    const startedAt = ports.clock.monotonic();
    const last = await call(judgement, { mistake, failures, timeoutMs: gate.timeoutMs - spent.durationMs });
    spent.durationMs += Math.round(ports.clock.monotonic() - startedAt);
    spent.usage = sum(spent.usage, last.usage);
    // Still inside the slot: whoever gets it next must know.
    if (last.kind === 'broken' && last.isLimit) park(judgement, last);
    return last;
  };
  for (;;) {
    await judges.parking.over(request.signal);
    const last = await ports.slots(run, request.scope !== 'issue');
    if (last !== null) return last;
  }
}

function park({ ports, judges }: Judgement, { reason, inMs }: Extract<Call, { kind: 'broken' }>): void {
  if (!judges.parking.park(inMs)) return;
  const over = new Date(ports.clock.now() + inMs).toISOString();
  const message = `${reason}; ${judges.driver.name} is not called before ${over}`;
  ports.emit({ type: 'run.notice', level: 'warning', message });
}

/** What one call came to. */
type Call = {
  readonly usage: Usage | null;
} & (
  | {
      readonly kind: 'said';
      readonly envelope: JudgeEnvelope;
      readonly outcome: DriverOutcome<JudgeEnvelope>;
      readonly promptHash: string;
    }
  /** There is no valid envelope; another call may give one. */
  | {
      readonly kind: 'unreadable';
      /** Only what is wrong with the envelope's form, never a word of what was said. */
      readonly mistake: string;
      readonly reason: string;
      readonly outcome: DriverOutcome<JudgeEnvelope>;
      readonly promptHash: string;
    }
  /** What is around the judge broke. */
  | {
      readonly kind: 'broken';
      readonly reason: string;
      /** How long to wait before it is called again. */
      readonly inMs: number;
      /** A usage limit, which holds for every call of this driver. */
      readonly isLimit: boolean;
      readonly outcome: DriverOutcome<JudgeEnvelope>;
      readonly promptHash: string;
    }
  | {
      readonly kind: 'changed';
      readonly changes: readonly string[];
      readonly outcome: DriverOutcome<JudgeEnvelope>;
      readonly promptHash: string;
    }
  | { readonly kind: 'timed-out'; readonly outcome: DriverOutcome<JudgeEnvelope>; readonly promptHash: string }
  | { readonly kind: 'no-checkout'; readonly message: string; readonly tail: string }
  | { readonly kind: 'stopped' }
);

interface Turn {
  readonly mistake: string | null;
  readonly failures: number;
  readonly timeoutMs: number;
}

async function call(judgement: Judgement, turn: Turn): Promise<Call> {
  const { judges, brief, request } = judgement;
  if (isStopped(request)) return { kind: 'stopped', usage: null };
  const called = await judges.withReading(brief.tree, (checkout) => inCheckout(judgement, turn, checkout));
  if (called.ok) return called.value;
  if (isStopped(request)) return { kind: 'stopped', usage: null };
  const { message, tail } = called.failure;
  return { kind: 'no-checkout', message, tail, usage: null };
}

async function inCheckout(judgement: Judgement, turn: Turn, checkout: ReadingCheckout): Promise<Call> {
  const { gate, brief, judges, request } = judgement;
  const { spec, issue, diff } = brief;
  const { mistake } = turn;
  const prompt = judgePrompt({ gate, spec, issue, diff, schema: judges.contract.schema, mistake });
  const told = noting(judges.contract);
  const outcome = await judges.driver.run(driverRequest(judgement, { prompt, checkout, turn }), told.contract);
  const { result, ended, usage } = outcome;
  if (result.kind === 'stopped' || isStopped(request)) return { kind: 'stopped', usage };
  const promptHash = createHash('sha256').update(prompt).digest('hex');
  const called = { outcome, usage, promptHash };
  const changes = await checkout.changes();
  if (changes.length > 0) return { kind: 'changed', changes, ...called };
  if (ended.kind === 'timed-out') return { kind: 'timed-out', ...called };
  if (result.kind === 'finished' && ended.kind === 'exited') {
    return { kind: 'said', envelope: result.envelope, ...called };
  }
  if (result.kind === 'operation' || result.kind === 'usage-limit') {
    const { reason, until } = result;
    const inMs = judges.pauseMs(turn.failures + 1, until);
    return { kind: 'broken', reason, inMs, isLimit: result.kind === 'usage-limit', ...called };
  }
  const reason = result.kind === 'finished' ? 'it gave its envelope, but did not exit' : result.reason;
  return { kind: 'unreadable', mistake: told.mistake() ?? 'there was no valid envelope', reason, ...called };
}

function isStopped({ signal }: VerifyRequest): boolean {
  return signal.aborted;
}

/** Keeps what was wrong with the form of the envelope that was read last. */
function noting<T>(contract: EnvelopeContract<T>): {
  readonly contract: EnvelopeContract<T>;
  readonly mistake: () => string | null;
} {
  let mistake: string | null = null;
  const parse: EnvelopeContract<T>['parse'] = (value) => {
    const parsed = contract.parse(value);
    mistake = parsed.ok ? null : parsed.failure;
    return parsed;
  };
  return { contract: { ...contract, parse }, mistake: () => mistake };
}

function driverRequest(
  { judges, gate, request, ports, logFile }: Judgement,
  { prompt, checkout, turn }: { readonly prompt: string; readonly checkout: ReadingCheckout; readonly turn: Turn },
): Parameters<JudgePorts['driver']['run']>[0] {
  const { issue, attempt, signal } = request;
  const { slot, folder } = checkout;
  // Not in the folder of the run: nothing that a judge is given leads to a transcript of a worker.
  const envelopeFile = join(slot.temporary, 'envelope.json');
  return {
    role: 'judge',
    spec: judges.spec,
    issue,
    gate: gate.name,
    attempt: attempt ?? 0,
    prompt,
    folder,
    environment: {
      ...judges.environment(gate),
      GIRO_ROLE: 'judge',
      GIRO_GATE: gate.name,
      ...(issue === null ? {} : { GIRO_ISSUE: issue }),
      ...(attempt === null ? {} : { GIRO_ATTEMPT: String(attempt) }),
      GIRO_ENVELOPE: envelopeFile,
      GIRO_SLOT: String(slot.number),
      GIRO_PORT_BASE: String(slot.portBase),
      TMPDIR: slot.temporary,
    },
    envelopeFile,
    logFile,
    timeoutMs: turn.timeoutMs,
    graceMs: ports.graceMs,
    signal,
  };
}

async function verdictOf(judgement: Judgement, last: Call): Promise<GateVerdict> {
  const { gate, judges, brief, logFile: log } = judgement;
  switch (last.kind) {
    case 'stopped':
      return cancelledVerdict(gate);
    case 'no-checkout': {
      const what = `did not run: ${last.message}`;
      return notRun(gate, { cause: 'errored', finding: gateFinding(gate.name, what, last.tail) });
    }
    case 'said': {
      const { envelope, outcome, promptHash } = last;
      const by = { driver: judges.driver.name, model: outcome.model, promptHash };
      const said = { ...blankVerdict(gate), ended: outcome.ended, log, judge: by };
      if (envelope.verdict === 'pass') return { ...said, verdict: 'pass' };
      return { ...said, cause: 'failed', findings: await judgeFindings(gate.name, envelope.findings, brief) };
    }
    case 'changed':
    case 'timed-out':
    case 'broken':
    case 'unreadable': {
      const { cause, finding } = redOf(gate, last);
      const by = { driver: judges.driver.name, model: last.outcome.model, promptHash: last.promptHash };
      return { ...blankVerdict(gate), ended: last.outcome.ended, log, judge: by, cause, findings: [finding] };
    }
  }
}

/** Nothing of this is about the work, so nothing of it is a worker's to repair. */
function redOf(
  gate: JudgedGate,
  last: Extract<Call, { kind: 'changed' | 'timed-out' | 'broken' | 'unreadable' }>,
): Red {
  const { tail } = last.outcome;
  const errored = (what: string): Red => ({ cause: 'errored', finding: gateFinding(gate.name, what, tail) });
  switch (last.kind) {
    case 'changed': {
      const [file] = last.changes;
      const listed = last.changes.slice(0, 10).map(printable).join(', ');
      const red = errored(`has no valid verdict: the judge changed its checkout, which is only for reading: ${listed}`);
      return file === undefined ? red : { ...red, finding: { ...red.finding, file: printable(file) } };
    }
    case 'timed-out':
      return errored(`has no valid verdict: the judge timed out after ${formatLimit(gate.timeoutMs)}`);
    case 'broken':
    case 'unreadable':
      return errored(`has no valid verdict: ${last.reason}; this says nothing about the work`);
  }
}

/** Of two calls the sum, unless one of them is unknown. */
function sum(first: Usage | null, second: Usage | null): Usage | null {
  if (first === null || second === null) return first ?? second;
  const add = (one: number | null, two: number | null): number | null =>
    one === null || two === null ? null : one + two;
  return { costUsd: add(first.costUsd, second.costUsd), tokens: add(first.tokens, second.tokens) };
}

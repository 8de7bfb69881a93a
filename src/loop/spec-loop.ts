/**
 * The Spec loop: plan what has no Issues, run every Issue that can run, validate the tip, and plan what is missing, until
 * it ends with proof or with a hand raised (DESIGN 5). Its actor is "run the Issues", its verifier is *validate*, its
 * findings become gap Issues.
 *
 * S0 Nothing is paid for on a base whose gates are red, unless the person allows it.
 * S1 A red validation is recorded before anything is planned for it; one that is recorded for this code is not paid again.
 * S2 `[budget] rounds` red validations since a person answered last, or the same one twice running, end it.
 */
import type { Emit } from '../event.js';
import { unreachable } from '../failure.js';
import type { AcceptedIds, Verdict, Verifier, VerifyRequest } from '../gates/gate.js';
import { acceptableOf, dueGates, noneAccepted } from '../gates/gate.js';
import type { Finding, GateNote, IssueId, IssueState, Oid, SpecSlug, Waived } from '../issue.js';
import { packetLines } from '../packet.js';
import type { Policy } from '../policy.js';
import type { Budgeting } from './budget.js';
import { onlyBroken, redLogs } from './decide.js';
import { gateNotes } from './notes.js';
import { specPacket } from './packet.js';
import type { PlanOutcome, PlanRequest, SpecAsks } from './plan-loop.js';

/** How a Spec ended. */
export type SpecEnd =
  | { readonly kind: 'proof'; readonly tip: Oid }
  | {
      readonly kind: 'needs-human';
      /** What the gates of the Spec found; empty when they were not asked. */
      readonly validate: readonly Finding[];
      /** What the Spec as a whole asks; `null`: only its Issues do. */
      readonly asks: SpecQuestion | null;
    }
  | { readonly kind: 'held'; readonly message: string }
  | {
      readonly kind: 'stopped';
      /** Which budget of the run is reached; absent: somebody stopped it. */
      readonly reason?: string;
    };

/** Why the work of other Specs could not be taken along. */
export type AlongEnd =
  { readonly kind: 'asks'; readonly asks: SpecAsks } | Extract<SpecEnd, { kind: 'held' | 'stopped' }>;

/** What the Spec as a whole asks, in one line, and why. */
export interface SpecQuestion {
  readonly cause: SpecAsks['cause'];
  readonly question: string;
}

/** What the base came to, before anything is paid for. */
export type BaselineOutcome =
  { readonly kind: 'sound' } | { readonly kind: 'escalated'; readonly asks: SpecAsks } | { readonly kind: 'stopped' };

/** What the Spec loop needs. */
export interface SpecLoopPorts {
  readonly spec: SpecSlug;
  readonly title: string;
  readonly policy: Policy;
  readonly verifier: Verifier;
  readonly budget: Pick<Budgeting, 'refused'>;
  readonly signal: AbortSignal;
  /** Aborted with `signal`, or before it: no agent is started any more. */
  readonly noMore: AbortSignal;
  readonly emit: Emit;
  readonly tip: () => Oid;
  /** The user's commit that the integration branch was made from. */
  readonly base: Oid;
  /** The code tree of the tip. */
  readonly tipCode: () => Promise<Oid>;
  /** Takes along the proven work of what the Spec depends on; `null`: it is there. */
  readonly takeAlong: () => Promise<AlongEnd | null>;
  /** Takes along what moved on the person's branch before the whole is judged; `null`: it is there, or is to stay away. */
  readonly takeBase: () => Promise<AlongEnd | null>;
  /** Judges the code that the work starts from. */
  readonly baseline: () => Promise<BaselineOutcome>;
  /** Runs every Issue that can run; resolves when none is left that could. */
  readonly runIssues: () => Promise<void>;
  /** The durable state of each Issue now. */
  readonly states: () => ReadonlyMap<IssueId, IssueState>;
  readonly plan: (request: PlanRequest) => Promise<PlanOutcome>;
  /** The red validation of this code that nothing is planned for yet; `null`: there is none. */
  readonly openGap: (code: Oid) => Promise<PlanRequest | null>;
  /** Which round a red validation would end, and whether it says what the one before it said. */
  readonly round: (red: { readonly gates: readonly GateNote[]; readonly code: Oid }) => Promise<RedRound>;
  /** Writes how the Spec stands on the integration branch. */
  readonly finish: (end: SpecFinish) => Promise<SpecWritten>;
  /** Only this Issue is asked for; `null`: the whole Spec. */
  readonly only: IssueId | null;
  /** The run before this one ended asking. */
  readonly asked: boolean;
  /** Ids of the findings that a person accepted for the Spec, or for the one Issue that is asked for. */
  readonly accepted: () => Promise<AcceptedIds>;
  /** Shows the path of a log as people read it. */
  readonly shown: (path: string) => string;
}

/** A round that ends red. */
export interface RedRound {
  /** Counted from 1 since a person answered last. */
  readonly round: number;
  readonly same: boolean;
}

/** How a Spec stands, as it is to be written. */
export interface SpecFinish {
  /** `active`: its gaps are planned next. */
  readonly state: 'done' | 'needs-human' | 'active';
  readonly gates: readonly GateNote[];
  readonly code: Oid;
  /** `null`: it did not come to validation. */
  readonly validated: 'pass' | 'fail' | null;
  /** Reds that do not block, by name. */
  readonly waived: readonly Waived[];
  /** The packet of what the Spec as a whole asks. */
  readonly escalation: { readonly cause: SpecAsks['cause']; readonly packet: readonly string[] } | null;
}

/** The new tip, or why nothing can be written now. */
export type SpecWritten =
  | { readonly kind: 'recorded'; readonly tip: Oid }
  | { readonly kind: 'held'; readonly message: string }
  /** The tip is not the one that was judged any more. */
  | { readonly kind: 'stale'; readonly message: string };

/** Judgements of the tip before giving up: somebody else keeps moving it. */
const maxValidations = 8;

/** Runs a Spec to its end. */
export async function runSpec(ports: SpecLoopPorts): Promise<SpecEnd> {
  const along = await ports.takeAlong();
  if (along !== null) return along.kind === 'asks' ? asking(ports, along.asks) : along;
  if (hasWork(ports)) {
    const base = await ports.baseline();
    if (base.kind === 'stopped') return base;
    if (base.kind === 'escalated') return asking(ports, base.asks);
  }
  if (ports.states().size === 0) {
    const first = await planned(ports, { request: { round: 0, gaps: '' }, findings: [] });
    if (first !== null) return first;
  }
  for (let late = 0; ;) {
    await ports.runIssues();
    if (ports.signal.aborted || ports.budget.refused() !== null) return stopped(ports);
    const states = ports.states();
    if (!complete(states)) {
      if (ports.noMore.aborted && hasOpen(states)) return { kind: 'stopped' };
      if (ports.only !== null && states.get(ports.only) === 'done') return verifyTip(ports);
      const end = await nothingLeft(ports);
      if (end.kind !== 'stale') return end;
      // A person answered in the last moment: there is something to run again.
      late += 1;
      if (late > maxValidations) return { kind: 'held', message: end.message };
      continue;
    }
    const base = await ports.takeBase();
    if (base !== null) return base.kind === 'asks' ? asking(ports, base.asks) : base;
    const judged = await validate(ports);
    if (judged.kind !== 'gaps') return judged;
    const end = await planned(ports, judged);
    if (end !== null) return end;
  }
}

/** Something is to be planned or worked on, and so to be paid for. */
function hasWork({ states, only }: SpecLoopPorts): boolean {
  const all = [...states()];
  return all.length === 0 || all.some(([id, state]) => isOpen(state) && (only === null || only === id));
}

function isOpen(state: IssueState): boolean {
  return state === 'ready' || state === 'in-progress';
}

/** Plans Issues; gives the end of the Spec when there are none to go on with. */
async function planned(ports: SpecLoopPorts, wanted: Omit<Gaps, 'kind'>): Promise<SpecEnd | null> {
  if (ports.noMore.aborted) return { kind: 'stopped' };
  const outcome = await ports.plan(wanted.request);
  switch (outcome.kind) {
    case 'planned':
      return null;
    case 'escalated':
      return asking(ports, outcome.asks, wanted.findings);
    case 'held':
      return outcome;
    case 'stopped':
      return stopped(ports);
    default:
      return unreachable(outcome);
  }
}

/** Nothing more is started: somebody stopped the run, or a budget has no room for the next call. */
async function stopped(ports: SpecLoopPorts): Promise<SpecEnd> {
  const refusal = ports.signal.aborted ? null : ports.budget.refused();
  if (refusal === null) return { kind: 'stopped' };
  const { scope, why } = refusal;
  if (scope === 'run') return { kind: 'stopped', reason: why };
  return asking(ports, { cause: 'budget-spent', why, findings: [{ message: why }], questions: [] });
}

/** What is to be planned next. */
interface Gaps {
  readonly kind: 'gaps';
  readonly request: PlanRequest;
  /** What validate found, as far as this run judged it itself. */
  readonly findings: readonly Finding[];
}

type Validated = SpecEnd | Gaps;

/** Runs the Spec's gates on the tip, and writes what came of it; again when somebody moved the tip meanwhile. */
async function validate(ports: SpecLoopPorts): Promise<Validated> {
  const open = ports.only === null ? await ports.openGap(await ports.tipCode()) : null;
  if (open !== null) return { kind: 'gaps', request: open, findings: [] };
  let message = '';
  for (let trial = 0; trial < maxValidations; trial += 1) {
    const judged = await judgeTip(ports, { scope: 'spec', gates: specGates(ports.policy) });
    if (judged === null) return stopped(ports);
    const { verdict } = judged;
    ports.emit({
      type: 'spec.validated',
      spec: ports.spec,
      tip: ports.tip(),
      verdict: verdict.passed ? 'pass' : 'fail',
      findings: verdict.findings,
    });
    const end = verdict.passed ? await proved(ports, judged) : await red(ports, judged);
    if (end.kind !== 'stale') return end;
    message = end.message;
  }
  return { kind: 'held', message };
}

/**
 * One Issue was asked for and is done: its proof is that the lane's gates hold at the tip. The Spec stays active, but for
 * what was asked about others before: that is still asked, so that naming the Spec answers it.
 */
async function verifyTip(ports: SpecLoopPorts): Promise<SpecEnd> {
  const judged = await judgeTip(ports, {
    scope: 'integration',
    gates: dueGates(ports.policy.gates, 'integration', []),
  });
  if (judged === null) return stopped(ports);
  const { verdict } = judged;
  if (!verdict.passed) return { kind: 'needs-human', validate: verdict.findings, asks: null };
  if (ports.asked && [...ports.states().values()].includes('needs-human')) await asking(ports, null);
  return { kind: 'proof', tip: ports.tip() };
}

interface Judged {
  readonly verdict: Verdict;
  readonly code: Oid;
  readonly accepted: AcceptedIds;
}

/** `null`: stopped. */
async function judgeTip(ports: SpecLoopPorts, due: Pick<VerifyRequest, 'scope' | 'gates'>): Promise<Judged | null> {
  const code = await ports.tipCode();
  const { signal, base } = ports;
  const subject = { commit: ports.tip(), base };
  const accepted = await ports.accepted();
  const request = { ...due, issue: null, codeTree: code, attempt: null, subject, accepted, signal };
  const verdict = await ports.verifier.verify(request);
  const isStopped = signal.aborted || verdict.gates.some((gate) => gate.cause === 'cancelled');
  return isStopped ? null : { verdict, code, accepted };
}

type Stale = Extract<SpecWritten, { kind: 'stale' }>;

async function proved(ports: SpecLoopPorts, { verdict, code, accepted }: Judged): Promise<SpecEnd | Stale> {
  const gates = gateNotes(verdict, accepted);
  const { waived } = verdict;
  const written = await ports.finish({ state: 'done', gates, code, validated: 'pass', waived, escalation: null });
  if (written.kind !== 'recorded') return written;
  ports.emit({ type: 'spec.state', spec: ports.spec, state: 'done', tip: written.tip });
  return { kind: 'proof', tip: written.tip };
}

/** Records a red round (S1), and decides whether its gaps are planned or a human is asked. */
async function red(ports: SpecLoopPorts, judged: Judged): Promise<Validated | Stale> {
  const { verdict, code, accepted } = judged;
  const gates = gateNotes(verdict, accepted);
  const round = await ports.round({ gates, code });
  const asks = afterRed(ports, judged, round);
  const end = { gates, code, validated: 'fail', waived: verdict.waived } as const;
  if (asks !== null) return escalate(ports, asks, { ...end, verdict, findings: verdict.findings });
  const written = await ports.finish({ ...end, state: 'active', escalation: null });
  if (written.kind !== 'recorded') return written;
  const open = await ports.openGap(code);
  if (open === null) throw new Error('a red validation was recorded and is not there');
  return { kind: 'gaps', request: open, findings: verdict.findings };
}

/** Decides after a red validation: `null` means another round (S2). */
function afterRed(ports: SpecLoopPorts, judged: Judged, { round, same }: RedRound): SpecAsks | null {
  const { verdict, accepted } = judged;
  const { findings } = verdict;
  const common = { findings, questions: [] };
  if (onlyBroken(verdict, accepted))
    return { ...common, cause: 'cannot-run-here', why: 'a gate of the Spec cannot run here' };
  // Whoever asks for one Issue did not ask for others.
  if (ports.only !== null) return { ...common, cause: 'validate-red', why: 'every Issue is integrated' };
  if (same) return { ...common, cause: 'same-findings', why: 'the gates found the same in two rounds running' };
  if (round < ports.policy.budget.rounds) return null;
  const rounds = `${String(round)} ${round === 1 ? 'round' : 'rounds'}`;
  return {
    ...common,
    cause: 'rounds-spent',
    why: `every Issue is integrated; ${rounds} of Issues and no round is left`,
  };
}

/** Only Issues ask, and nothing more can run. `stale`: one of them was answered meanwhile. */
async function nothingLeft(ports: SpecLoopPorts): Promise<SpecEnd | Stale> {
  return escalate(ports, null, { ...unjudged, code: await ports.tipCode(), findings: [] });
}

/** Something asks, and nothing more can run. `null`: only Issues ask. */
async function asking(
  ports: SpecLoopPorts,
  asks: SpecAsks | null,
  findings: readonly Finding[] = [],
): Promise<SpecEnd> {
  const code = await ports.tipCode();
  const all = asks === null ? null : { ...asks, findings: [...asks.findings, ...findings] };
  const ended = await escalate(ports, all, { ...unjudged, code, findings });
  return ended.kind === 'stale' ? { kind: 'held', message: ended.message } : ended;
}

const unjudged = { gates: [], validated: null, waived: [], verdict: null } as const;

async function escalate(
  ports: SpecLoopPorts,
  asks: SpecAsks | null,
  end: Omit<SpecFinish, 'state' | 'escalation'> & {
    readonly findings: readonly Finding[];
    /** `null`: the tip was not judged. */
    readonly verdict: Verdict | null;
  },
): Promise<SpecEnd | Stale> {
  const { spec, title } = ports;
  const { findings: validate, verdict, ...finish } = end;
  const acceptable = verdict === null ? noneAccepted : acceptableOf(verdict);
  const logs = verdict === null ? [] : redLogs(verdict).map(ports.shown);
  const packet = asks === null ? null : specPacket({ spec, title, ...asks, acceptable, logs });
  const escalation = asks === null || packet === null ? null : { cause: asks.cause, packet: packetLines(packet) };
  const written = await ports.finish({ ...finish, state: 'needs-human', escalation });
  if (written.kind !== 'recorded') return written;
  ports.emit({ type: 'spec.state', spec, state: 'needs-human', tip: written.tip });
  if (asks === null || packet === null) return { kind: 'needs-human', validate, asks: null };
  const { cause, findings } = asks;
  ports.emit({ type: 'spec.escalated', spec, cause, question: packet.question, findings });
  return { kind: 'needs-human', validate, asks: { cause, question: packet.question } };
}

/** Every Issue at rest in a good way, and at least one of them done: nothing to do is not proof. */
function complete(states: ReadonlyMap<IssueId, IssueState>): boolean {
  const all = [...states.values()];
  return all.includes('done') && all.every((state) => state === 'done' || state === 'wontfix');
}

/** Issues that could have gone on, had there been more time. */
function hasOpen(states: ReadonlyMap<IssueId, IssueState>): boolean {
  return [...states.values()].some((state) => state === 'ready' || state === 'in-progress');
}

/** The gates of the Spec; without any of its own, those that every landing passed, so that the tip is always judged. */
export function specGates(policy: Policy): ReturnType<typeof dueGates> {
  const own = dueGates(policy.gates, 'spec', []);
  return own.length > 0 ? own : dueGates(policy.gates, 'integration', []);
}

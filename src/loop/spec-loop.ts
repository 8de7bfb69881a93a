/**
 * The Spec loop: run every Issue that can run, then validate the tip, then end with proof or with a hand raised
 * (DESIGN 5). Its actor is "run the Issues", its verifier is *validate*.
 */
import type { Emit } from '../event.js';
import type { Verdict, Verifier, VerifyRequest } from '../gates/gate.js';
import { dueGates } from '../gates/gate.js';
import type { Finding, IssueId, IssueState, Oid, SpecSlug } from '../issue.js';
import type { Policy } from '../policy.js';
import { gateNotes } from './notes.js';
import type { GateNote } from './ports.js';

/** How a Spec ended. */
export type SpecEnd =
  | { readonly kind: 'proof'; readonly tip: Oid }
  | { readonly kind: 'needs-human'; readonly validate: readonly Finding[] }
  | { readonly kind: 'held'; readonly message: string }
  | { readonly kind: 'stopped' };

/** What the Spec loop needs. */
export interface SpecLoopPorts {
  readonly spec: SpecSlug;
  readonly policy: Policy;
  readonly verifier: Verifier;
  readonly signal: AbortSignal;
  readonly emit: Emit;
  readonly tip: () => Oid;
  /** The user's commit that the integration branch was made from. */
  readonly base: Oid;
  /** The code tree of the tip. */
  readonly tipCode: () => Promise<Oid>;
  /** Runs every Issue that can run; resolves when none is left that could. */
  readonly runIssues: () => Promise<void>;
  /** The durable state of each Issue now. */
  readonly states: () => ReadonlyMap<IssueId, IssueState>;
  /** Writes the Spec's end on the integration branch. */
  readonly finish: (end: SpecFinish) => Promise<SpecWritten>;
  /** Only this Issue is asked for; `null`: the whole Spec. */
  readonly only: IssueId | null;
}

/** How a Spec ends, as it is to be written. */
export interface SpecFinish {
  readonly state: 'done' | 'needs-human';
  readonly gates: readonly GateNote[];
  readonly code: Oid;
  /** `null`: it did not come to validation. */
  readonly validated: 'pass' | 'fail' | null;
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
  await ports.runIssues();
  if (ports.signal.aborted) return { kind: 'stopped' };
  const states = ports.states();
  if (complete(states)) return validate(ports);
  if (ports.only !== null && states.get(ports.only) === 'done') return verifyTip(ports);
  return asking(ports);
}

/** Runs the Spec's gates on the tip, and writes what came of it; again when somebody moved the tip meanwhile. */
async function validate(ports: SpecLoopPorts): Promise<SpecEnd> {
  let message = '';
  for (let round = 0; round < maxValidations; round += 1) {
    const judged = await judgeTip(ports, { scope: 'spec', gates: specGates(ports.policy) });
    if (judged === null) return { kind: 'stopped' };
    const { verdict } = judged;
    ports.emit({
      type: 'spec.validated',
      spec: ports.spec,
      tip: ports.tip(),
      verdict: verdict.passed ? 'pass' : 'fail',
      findings: verdict.findings,
    });
    const end = await finish(ports, judged);
    if (end.kind !== 'stale') return end;
    message = end.message;
  }
  return { kind: 'held', message };
}

/** One Issue was asked for and is done: its proof is that the lane's gates hold at the tip. The Spec stays active. */
async function verifyTip(ports: SpecLoopPorts): Promise<SpecEnd> {
  const judged = await judgeTip(ports, {
    scope: 'integration',
    gates: dueGates(ports.policy.gates, 'integration', []),
  });
  if (judged === null) return { kind: 'stopped' };
  const { verdict } = judged;
  return verdict.passed ? { kind: 'proof', tip: ports.tip() } : { kind: 'needs-human', validate: verdict.findings };
}

interface Judged {
  readonly verdict: Verdict;
  readonly code: Oid;
}

/** `null`: stopped. */
async function judgeTip(ports: SpecLoopPorts, due: Pick<VerifyRequest, 'scope' | 'gates'>): Promise<Judged | null> {
  const code = await ports.tipCode();
  const { signal, base } = ports;
  const subject = { commit: ports.tip(), base };
  const request = { ...due, issue: null, codeTree: code, attempt: null, subject, signal };
  const verdict = await ports.verifier.verify(request);
  return signal.aborted || verdict.gates.some((gate) => gate.cause === 'cancelled') ? null : { verdict, code };
}

async function finish(
  ports: SpecLoopPorts,
  judged: Judged,
): Promise<SpecEnd | Extract<SpecWritten, { kind: 'stale' }>> {
  const { verdict, code } = judged;
  const state = verdict.passed ? 'done' : 'needs-human';
  const validated = verdict.passed ? 'pass' : 'fail';
  const written = await ports.finish({ state, gates: gateNotes(verdict), code, validated });
  if (written.kind !== 'recorded') return written;
  ports.emit({ type: 'spec.state', spec: ports.spec, state, tip: written.tip });
  return verdict.passed ? { kind: 'proof', tip: written.tip } : { kind: 'needs-human', validate: verdict.findings };
}

async function asking(ports: SpecLoopPorts): Promise<SpecEnd> {
  const code = await ports.tipCode();
  const written = await ports.finish({ state: 'needs-human', gates: [], code, validated: null });
  if (written.kind !== 'recorded') return { kind: 'held', message: written.message };
  ports.emit({ type: 'spec.state', spec: ports.spec, state: 'needs-human', tip: written.tip });
  return { kind: 'needs-human', validate: [] };
}

/** Every Issue at rest in a good way, and at least one of them done: nothing to do is not proof. */
function complete(states: ReadonlyMap<IssueId, IssueState>): boolean {
  const all = [...states.values()];
  return all.includes('done') && all.every((state) => state === 'done' || state === 'wontfix');
}

/** The gates of the Spec; without any of its own, those that every landing passed, so that the tip is always judged. */
export function specGates(policy: Policy): ReturnType<typeof dueGates> {
  const own = dueGates(policy.gates, 'spec', []);
  return own.length > 0 ? own : dueGates(policy.gates, 'integration', []);
}

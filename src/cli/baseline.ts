/** The baseline of a run: the command gates on the code that the work starts from, before any agent. */
import type { Emit } from '../event.js';
import type { Verdict } from '../gates/gate.js';
import { isNamed } from '../gates/evidence.js';
import { judgeBaseline } from '../gates/baseline.js';
import type { Oid } from '../issue.js';
import { onlyBroken } from '../loop/decide.js';
import type { BaselineOutcome } from '../loop/spec-loop.js';
import { printable } from '../platform/text.js';
import type { Policy } from '../policy.js';
import { codeTree } from '../store/tree.js';
import type { Git } from '../worktree/git-types.js';
import type { Workshop } from './workshop.js';

/** What the baseline is made with. */
export interface BaselinePorts {
  readonly policy: Policy;
  readonly workshop: Pick<Workshop, 'verifier' | 'baseline'>;
  readonly git: Git;
  /** The Spec's base, and its tip now: a person may have repaired the one on the other. */
  readonly base: Oid;
  readonly tip: Oid;
  readonly signal: AbortSignal;
  readonly emit: Emit;
}

/** Judges the base; a red one stops the Spec, unless `[evidence] baseline = "allow"`. */
export async function judgeBase(ports: BaselinePorts): Promise<BaselineOutcome> {
  const { policy, workshop, signal } = ports;
  const [base, tip] = [await codeOf(ports.git, ports.base), await codeOf(ports.git, ports.tip)];
  const judge = (code: Oid): Promise<Verdict | null> =>
    judgeBaseline(workshop.verifier, { gates: policy.gates, code, signal });
  let verdict = await judge(base);
  if (verdict?.passed === false && tip !== base && policy.evidence.baseline === 'fail') verdict = await judge(tip);
  if (verdict === null) return { kind: 'sound' };
  if (signal.aborted || verdict.gates.some((gate) => gate.cause === 'cancelled')) return { kind: 'stopped' };
  workshop.baseline.set(verdict.gates);
  if (verdict.passed) return { kind: 'sound' };
  if (policy.evidence.baseline === 'fail') return { kind: 'escalated', asks: asksOf(verdict) };
  sayAllowed(ports, verdict);
  return { kind: 'sound' };
}

async function codeOf(git: Git, commit: Oid): Promise<Oid> {
  return codeTree(git, (await git.readCommit(commit)).tree);
}

function asksOf(verdict: Verdict): Extract<BaselineOutcome, { kind: 'escalated' }>['asks'] {
  const { findings } = verdict;
  const cause = onlyBroken(verdict) ? 'cannot-run-here' : 'baseline-red';
  return { cause, why: 'the gates ran on the base, before any agent', findings, questions: [] };
}

/** What is red already, and what that means for the work. */
function sayAllowed({ emit }: BaselinePorts, { gates }: Verdict): void {
  for (const { gate, verdict, evidence, findings } of gates) {
    if (verdict === 'pass') continue;
    const what = isNamed(evidence)
      ? `${evidence.failures.slice(0, 5).join(', ')}${evidence.failures.length > 5 ? ' and more' : ''}: only new failures count`
      : `${findings[0]?.message ?? ''}; it names no failed test, so it stays red for the work too`;
    const message = printable(`gate ${gate} is red on the base ([evidence] baseline = "allow"): ${what}`);
    emit({ type: 'run.notice', level: 'warning', message });
  }
}

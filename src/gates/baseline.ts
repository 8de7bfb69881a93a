/** What the command gates come to before any work: what is red already, and how many tests there are. */
import type { IssueId, Oid } from '../issue.js';
import type { CommandGate, GateDefinition } from '../policy.js';
import { isPassed, type GateVerdict, type Verdict, type Verifier } from './gate.js';

/** The verdicts of a run's baseline, once it is there. */
export interface Baseline {
  get(gate: string): GateVerdict | null;
  set(verdicts: readonly GateVerdict[]): void;
}

/** Creates an empty one: nothing is compared until it is set. */
export function createBaseline(): Baseline {
  const known = new Map<string, GateVerdict>();
  return {
    get: (gate) => known.get(gate) ?? null,
    set(verdicts) {
      for (const verdict of verdicts) known.set(verdict.gate, verdict);
    },
  };
}

/**
 * The gates that must be green before any work: the commands that every Issue has to pass. A gate that is due on the Spec
 * alone says what the Issues are to bring about, and may well be red until they have.
 */
function baselineGates(gates: readonly GateDefinition[]): readonly CommandGate[] {
  return gates.filter(
    (gate): gate is CommandGate =>
      gate.kind === 'command' && (gate.on.includes('issue') || gate.on.includes('integration')),
  );
}

/** Runs them on code as it is before any work; `null`: there are none. */
export async function judgeBaseline(
  verifier: Verifier,
  request: { readonly gates: readonly GateDefinition[]; readonly code: Oid; readonly signal: AbortSignal },
): Promise<Verdict | null> {
  const gates = baselineGates(request.gates);
  if (gates.length === 0) return null;
  const { code: codeTree, signal } = request;
  return verifier.verify({ scope: 'base', issue: null, gates, codeTree, attempt: null, subject: null, signal });
}

/** Says that a green gate ran fewer tests than before any work; `null`: it did not, or nobody knows. */
export function fewerTests(base: GateVerdict | null, verdict: GateVerdict, issue: IssueId | null): string | null {
  const [before, now] = [base?.evidence?.tests ?? null, verdict.evidence?.tests ?? null];
  if (before === null || now === null || now >= before || !isPassed({ gates: [verdict] })) return null;
  const where = issue === null ? '' : ` of ${issue}`;
  return `gate ${verdict.gate} ran ${String(now)} tests on the work${where}, ${String(before - now)} fewer than the ${String(before)} on the base`;
}

/** What `--dry-run` says of gates, planning and budgets. Pure. */
import { describeGate } from '../gates/definition.js';
import { formatLimit } from '../platform/duration.js';
import type { Policy } from '../policy.js';

/** Says who would plan, and how often the loops may try. */
export function planPreview(issues: number, { budget, roles }: Policy): readonly string[] {
  const rounds = budget.rounds === 1 ? '1 round' : `${String(budget.rounds)} rounds, gaps planned by ${roles.planner}`;
  return [
    ...(issues === 0 ? [`plan      there are no Issues yet: ${roles.planner} plans them first`] : []),
    `budget    ${String(budget.attempts)} attempts an Issue, ${formatLimit(budget.attemptTimeoutMs)} each; ${rounds}`,
  ];
}

/** Says what each gate does, when and for how long at most. */
export function gatePreview({ gates }: Policy): readonly string[] {
  return gates.map(
    (gate) =>
      `gate      ${gate.name}: ${describeGate(gate)}  (on ${gate.on.length === 0 ? 'request' : gate.on.join(', ')}; limit ${formatLimit(gate.timeoutMs)})`,
  );
}

/** What `--dry-run` says of gates, planning and budgets. Pure. */
import { describeGate } from '../gates/definition.js';
import { formatLimit } from '../platform/duration.js';
import type { Budget, Policy } from '../policy.js';
import { formatCost, formatTokens } from '../usage.js';

/** Says that a Spec without Issues would be planned, and by whom. */
export function planPreview(issues: number, { roles }: Policy): readonly string[] {
  return issues === 0 ? [`plan      there are no Issues yet: ${roles.planner} plans them first`] : [];
}

/** Says who would work, how often the loops may try, and what they may spend. */
export function runPreview(
  { budget, roles, limits }: Policy,
  { concurrency }: { readonly concurrency: number | null },
): readonly string[] {
  const rounds = budget.rounds === 1 ? '1 round' : `${String(budget.rounds)} rounds, gaps planned by ${roles.planner}`;
  const attempts = budget.attempts === 1 ? '1 attempt' : `${String(budget.attempts)} attempts`;
  const spending = limitsOf(budget);
  return [
    `driver    ${roles.worker}, ${String(concurrency ?? limits.agents)} at once`,
    `budget    ${attempts} an Issue, ${formatLimit(budget.attemptTimeoutMs)} each; ${rounds}`,
    ...(spending.length === 0 ? [] : [`          ${spending.join('; ')}`]),
  ];
}

/** What an Issue, a Spec and the run may spend, where a limit is set. */
function limitsOf({ issue, spec, run, unknownCost }: Budget): readonly string[] {
  const scopes = [
    ['an Issue', issue],
    ['a Spec', spec],
    ['the run', { ...run, timeMs: null }],
  ] as const;
  const limits = scopes.flatMap(([whose, { timeMs, tokens, costUsd }]) => {
    const parts = [
      ...(costUsd === null ? [] : [formatCost(costUsd)]),
      ...(tokens === null ? [] : [formatTokens(tokens)]),
      ...(timeMs === null ? [] : [formatLimit(timeMs)]),
    ];
    return parts.length === 0 ? [] : [`${whose} at most ${parts.join(', ')}`];
  });
  const isAllowed = limits.length > 0 && unknownCost === 'allow';
  return isAllowed ? [...limits, 'what is unknown is not counted'] : limits;
}

/** Says what each gate does, when and for how long at most. */
export function gatePreview({ gates }: Policy): readonly string[] {
  return gates.map(
    (gate) =>
      `gate      ${gate.name}: ${describeGate(gate)}  (on ${gate.on.length === 0 ? 'request' : gate.on.join(', ')}; limit ${formatLimit(gate.timeoutMs)})`,
  );
}

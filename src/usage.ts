/** What calls of models cost. Unknown is `null`, never 0. */

/** Money and tokens of one call, as its program reports them. */
export interface Usage {
  readonly costUsd: number | null;
  /** All tokens that were counted: read, written, and from caches. */
  readonly tokens: number | null;
}

/** The usage of a program that does not report any. */
export const unknownUsage: Usage = { costUsd: null, tokens: null };

/** One call as the ledger keeps it. */
export interface Charge {
  readonly role: 'worker' | 'judge' | 'planner';
  /** Name of the driver. */
  readonly driver: string;
  readonly usage: Usage;
}

/** What several calls come to. */
export interface Spending {
  readonly calls: number;
  /** Of the calls whose cost is known. */
  readonly costUsd: number;
  readonly unknownCosts: number;
  /** Of the calls whose tokens are known. */
  readonly tokens: number;
  readonly unknownTokens: number;
}

/** What one budget of money or tokens stands at. */
export interface BudgetStanding {
  /** As giro.toml calls it, such as `run-cost`. */
  readonly key: `${'issue' | 'spec' | 'run'}-${'cost' | 'tokens'}`;
  /** In US dollars, or in tokens; what is unknown counts as the budget counts it. */
  readonly spent: number;
  readonly limit: number;
  /** True: some calls are unknown and not counted. */
  readonly atLeast?: true;
}

/** What was spent, and what the budgets stand at. */
export interface SpentFacts {
  readonly sum: Spending;
  readonly budgets: readonly BudgetStanding[];
}

/** Before the first call. */
export const noSpending: Spending = { calls: 0, costUsd: 0, unknownCosts: 0, tokens: 0, unknownTokens: 0 };

/** Adds a call. */
export function addUsage(sum: Spending, { costUsd, tokens }: Usage): Spending {
  return {
    calls: sum.calls + 1,
    costUsd: sum.costUsd + (costUsd ?? 0),
    unknownCosts: sum.unknownCosts + (costUsd === null ? 1 : 0),
    tokens: sum.tokens + (tokens ?? 0),
    unknownTokens: sum.unknownTokens + (tokens === null ? 1 : 0),
  };
}

/** Shows money: at least two digits behind the point, at most four, never less than it is. */
export function formatCost(costUsd: number): string {
  // What adding up binary fractions leaves behind is not money.
  const parts = Math.max(costUsd > 0 ? 1 : 0, Math.ceil(costUsd * 10_000 - 1e-4));
  const [whole, rest] = [Math.trunc(parts / 10_000), String(parts % 10_000).padStart(4, '0')];
  return `$${String(whole)}.${rest.replace(/0{1,2}$/, '')}`;
}

/** Shows a count of tokens, never less than it is: `845 tokens`, `12.3k tokens`, `1.2M tokens`. */
export function formatTokens(tokens: number): string {
  if (tokens < 1000) return `${String(tokens)} tokens`;
  const tenths = Math.ceil(tokens / 100);
  if (tenths < 10_000) return `${(tenths / 10).toFixed(1)}k tokens`;
  return `${(Math.ceil(tokens / 100_000) / 10).toFixed(1)}M tokens`;
}

/** Shows the usage of one call as History does; `readUsage` reads it back. */
export function formatUsage({ costUsd, tokens }: Usage): readonly string[] {
  return [costUsd === null ? 'cost unknown' : formatCost(costUsd), ...(tokens === null ? [] : [formatTokens(tokens)])];
}

/** Reads what `formatUsage` wrote from the parts of a line; the last of its kind counts. `null`: no call is told there. */
export function readUsage(parts: readonly string[]): Usage | null {
  const cost = parts.findLast((part) => part === 'cost unknown' || costPattern.test(part));
  if (cost === undefined) return null;
  const tokens = tokensPattern.exec(parts.findLast((part) => tokensPattern.test(part)) ?? '');
  return {
    costUsd: cost === 'cost unknown' ? null : Number(cost.slice(1)),
    tokens: tokens === null ? null : Math.round(Number(tokens[1]) * (factors[tokens[2] ?? ''] ?? 1)),
  };
}

const costPattern = /^\$\d{1,12}\.\d{2,4}$/;
const tokensPattern = /^(\d{1,12}(?:\.\d)?)([kM]?) tokens$/;
const factors: Readonly<Record<string, number>> = { k: 1000, M: 1_000_000 };

/** Shows what several calls come to; empty when there was none. What is unknown is said. */
export function formatSpending(sum: Spending): string {
  if (sum.calls === 0) return '';
  const money = shownSum(formatCost(sum.costUsd), sum.unknownCosts, sum.calls) ?? 'cost unknown';
  const tokens = shownSum(formatTokens(sum.tokens), sum.unknownTokens, sum.calls);
  return [money, ...(tokens === null ? [] : [tokens])].join(' · ');
}

/** Shows what a budget stands at: `run-cost $0.62 of $20.00`. */
export function formatStanding({ key, spent, limit, atLeast }: BudgetStanding): string {
  const format = key.endsWith('-cost') ? formatCost : formatTokens;
  return `${key} ${atLeast === true ? 'at least ' : ''}${format(spent)} of ${format(limit)}`;
}

/** Shows what was spent, and of which budgets; empty when nobody knows of any and there is no budget. */
export function formatSpent({ sum, budgets }: SpentFacts): string {
  const shown = isUnknown(sum) ? [] : [formatSpending(sum)];
  return [...shown, ...budgets.map(formatStanding)].join(', ');
}

/** Says whether no call of a sum reported anything. */
export function isUnknown({ calls, unknownCosts, unknownTokens }: Spending): boolean {
  return unknownCosts === calls && unknownTokens === calls;
}

/** Adds up several sums. */
export function addSpending(left: Spending, right: Spending): Spending {
  return {
    calls: left.calls + right.calls,
    costUsd: left.costUsd + right.costUsd,
    unknownCosts: left.unknownCosts + right.unknownCosts,
    tokens: left.tokens + right.tokens,
    unknownTokens: left.unknownTokens + right.unknownTokens,
  };
}

function shownSum(shown: string, unknown: number, calls: number): string | null {
  if (unknown === calls) return null;
  return unknown === 0 ? shown : `at least ${shown}`;
}

/** What a call is counted at while it runs, as long as none of its kind cost more. */
export const leastCall: { readonly costUsd: number; readonly tokens: number } = { costUsd: 0.1, tokens: 10_000 };

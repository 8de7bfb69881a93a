/** Where the budgets of a Spec and of its Issues stand, for `giro status`. */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { IssueId } from '../issue.js';
import { systemClock } from '../platform/clock.js';
import { readIfExists } from '../platform/files.js';
import type { HistoryEntry } from '../store/history.js';
import { ledgerOf } from '../store/ledger.js';
import type { BudgetStanding } from '../usage.js';
import type { Terminal } from './show.js';

/** What each budget stands at; `null`: of the Spec. */
export type Standings = ReadonlyMap<IssueId | null, readonly BudgetStanding[]>;

/** Reads what giro.toml allows, only where it says anything of money or tokens; one that is wrong is said by a run. */
export async function standingsNow(
  { top, terminal }: { readonly top: string | null; readonly terminal: Terminal },
  histories: ReadonlyMap<IssueId | null, readonly HistoryEntry[]>,
): Promise<Standings> {
  const text = top === null ? null : await readIfExists(join(top, 'giro.toml'));
  if (top === null || text === null || !/(?:issue|spec)-(?:cost|tokens)/.test(text.toString('utf8'))) return new Map();
  // Loaded only here: a status is measured.
  const [{ readUserPolicy }, { RunBudget, SpecBudget }] = await Promise.all([
    import('./user-policy.js'),
    import('../loop/budget.js'),
  ]);
  const policy = await readUserPolicy({ top, own: terminal.env, processors: availableParallelism() });
  if (!policy.ok) return new Map();
  const unlimited = new RunBudget({ costUsd: null, tokens: null });
  const budget = new SpecBudget(policy.value.budget, {
    ...{ run: unlimited, clock: systemClock },
    charged: () => undefined,
  });
  for (const [of, history] of histories) budget.take(of, ledgerOf(history));
  return new Map([...histories.keys()].map((of) => [of, budget.standings(of)]));
}

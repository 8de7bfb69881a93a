/** The budgets of a run: what giro.toml and the command line allow, and what the Histories say was spent. */
import type { Emit } from '../event.js';
import { historyOf } from '../config/splice.js';
import { silentDriver, unknownHint } from '../config/budget-table.js';
import { failed, ok, type Failure, type Result } from '../failure.js';
import { SpecBudget } from '../loop/budget.js';
import type { Policy } from '../policy.js';
import { specsFolder } from '../spec.js';
import { entriesOf, readHistory } from '../store/history.js';
import { ledgerOf } from '../store/ledger.js';
import { readIssueText } from '../store/read.js';
import type { Git } from '../worktree/git-types.js';
import type { OpenedSpec } from './opening.js';
import type { Prepared } from './prepare.js';
import type { Shared } from './shared.js';

/** Opens the budgets of a Spec with what the integration branch tells; records of Issues in progress are taken over later. */
export async function openBudget(
  request: {
    readonly git: Git;
    readonly prepared: Prepared;
    readonly shared: Pick<Shared, 'clock' | 'spending'>;
    readonly emit: Emit;
  },
  opened: OpenedSpec,
): Promise<SpecBudget> {
  const { git, prepared, shared, emit } = request;
  const { spec } = prepared;
  const budget = new SpecBudget(prepared.policy.budget, {
    run: shared.spending,
    clock: shared.clock,
    charged: (charged) => {
      emit({ type: 'budget.charged', spec, ...charged });
    },
  });
  const text = await readIssueText(git, opened.tip, `${specsFolder}/${prepared.spec}/SPEC.md`);
  budget.take(null, ledgerOf(readHistory(text === null ? '' : historyOf(text))));
  for (const issue of opened.issues) budget.take(issue.id, ledgerOf(entriesOf(issue)));
  return budget;
}

/** What the run may spend: `--max-cost` tightens `[budget] run-cost`, and never loosens it. */
export function runLimit(policy: Policy, maxCost: number | null): Result<Policy['budget']['run'], Failure> {
  const { run, unknownCost } = policy.budget;
  if (maxCost === null) return ok(run);
  const inUse = { drivers: policy.drivers.byName, roles: policy.roles, gates: policy.gates };
  const silent = unknownCost === 'allow' ? null : silentDriver('cost', inUse);
  if (silent === null) return ok({ ...run, costUsd: Math.min(maxCost, run.costUsd ?? Infinity) });
  return failed({
    kind: 'usage',
    message: `--max-cost cannot hold: the ${silent.role} driver ${silent.name} does not report what a call cost`,
    hint: unknownHint('cost', silent.name),
  });
}

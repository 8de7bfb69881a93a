/**
 * The parts that rigs hand to what they test: the real ones, as `cli/` hands them in. While the mutation check runs, one of
 * them is weaker. Nothing in `src/` knows of this: a protection can only be missing where somebody hands in less.
 */
import { inject } from 'vitest';
import { withoutRecord as realWithoutRecord } from '../../src/config/splice.js';
import type { Driver } from '../../src/drivers/driver.js';
import { judgeContract as realJudgeContract } from '../../src/drivers/judge.js';
import { ok } from '../../src/failure.js';
import { passKey as realPassKey } from '../../src/gates/cache.js';
import { readEvidence as realReadEvidence } from '../../src/gates/evidence.js';
import { protectedRule } from '../../src/gates/guard-protected.js';
import { secretRule } from '../../src/gates/guard-secrets.js';
import { shrinkRule } from '../../src/gates/guard-shrink.js';
import { guardRules as realGuardRules } from '../../src/gates/guard.js';
import type { VerifierPorts } from '../../src/gates/gate.js';
import { draftPlan as realDraftPlan } from '../../src/loop/plan-draft.js';
import type { BaselineOutcome } from '../../src/loop/spec-loop.js';
import { lookForMarked } from '../../src/platform/marked.js';
import type { Budget } from '../../src/policy.js';
import type { OpenedGit } from '../../src/worktree/git-types.js';
import { forcedMoves, lateAttempts } from '../rig/weaker-git.js';
import type { Protection } from './protections.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** The protection that is off; absent in every other run of the tests. */
    weakened: string | null;
  }
}

const off = inject('weakened');

function part<T>(protection: Protection, real: T, weaker: (real: T) => T): T {
  return off === protection ? weaker(real) : real;
}

/** What takes the record of the engine out of what judges and planners read. */
export const withoutRecord = part('blindness', realWithoutRecord, () => (text) => text);

/** What counts as a word of a judge. */
export const judgeContract = part(
  'one verdict',
  part('unreadable verdict', realJudgeContract, (real) => {
    const pass = { verdict: 'pass' as const, findings: [] };
    const parse: typeof real.parse = (value) => {
      const parsed = real.parse(value);
      return parsed.ok ? parsed : ok(pass);
    };
    return { ...real, parse, absent: pass };
  }),
  (real) => ({ ...real, single: false }),
);

/** The program that judges, as its driver tells of it. The weaker one hears what is said besides. */
export const judgeDriver = part(
  'only the field',
  (driver: Driver) => driver,
  () => (driver) => ({
    name: driver.name,
    async run(request, contract) {
      const outcome = await driver.run(request, contract);
      const parsed = contract.parse({ verdict: 'pass', findings: [] });
      if (outcome.result.kind !== 'failed' || !parsed.ok || !/verdict: pass/i.test(outcome.tail)) return outcome;
      return { ...outcome, result: { kind: 'finished', envelope: parsed.value } };
    },
  }),
);

/** What a judge changed in the checkout that it reads. */
export const readingChanges = part(
  'judges only read',
  (look: () => Promise<readonly string[]>) => look(),
  () => () => Promise.resolve([]),
);

/** The budgets of giro.toml, as the ledger is handed them. */
export const ledgerBudget = part(
  'unknown cost',
  part(
    'budget asked first',
    (budget: Budget) => budget,
    () => (budget) => {
      const none = { timeMs: null, tokens: null, costUsd: null };
      return { ...budget, issue: none, spec: none, run: none };
    },
  ),
  () => (budget) => ({ ...budget, unknownCost: 'allow' }),
);

/** The rules that guard work. */
export const guardRules = (
  [
    ['protected paths', protectedRule],
    ['shrink', shrinkRule],
    ['secrets', secretRule],
  ] as const
).reduce((rules, [name, rule]) => part(name, rules, (all) => all.filter((one) => one !== rule)), realGuardRules);

/** What the output of a gate says that was tested. */
export const readEvidence = part('vacuous green', realReadEvidence, (real) => (output, isWhole) => {
  const evidence = real(output, isWhole);
  return evidence?.tests === 0 ? null : evidence;
});

/** What a gate rewrote in its checkout. */
export const changedFiles = part(
  'dirty gate',
  (look: () => Promise<readonly string[]>) => look(),
  () => () => Promise.resolve([]),
);

/** What the base of a Spec came to before any work. */
export const baselineOutcome = part(
  'baseline',
  (outcome: BaselineOutcome) => outcome,
  () => (outcome) => (outcome.kind === 'escalated' ? { kind: 'sound' } : outcome),
);

/** What of a red gate a person accepts by giro.toml. */
export const evidencePolicy = part(
  'flaky',
  (policy: VerifierPorts['evidence']) => policy,
  () => (policy) => ({ ...policy, flaky: 'warn' }),
);

/** Under which key a pass is remembered. */
export const passKey = part(
  'pass by definition',
  realPassKey,
  (real) => (subject) =>
    real({ ...subject, gate: subject.gate.kind === 'command' ? { ...subject.gate, run: '' } : subject.gate }),
);

type Checkpoint = () => Promise<void>;
type Recording = (checkpoint: Checkpoint, late: (checkpoint: Checkpoint) => void) => Promise<void>;

/** What becomes of the checkpoint that begins an attempt: it is made at once. `late` makes it when more is to be told. */
export const recordAttempt = part<Recording>(
  'recorded first',
  (checkpoint) => checkpoint(),
  () => (checkpoint, late) => {
    late(checkpoint);
    return Promise.resolve();
  },
);

/** What turns a planner's texts into Issues. */
export const draftPlan = part('plan checked', realDraftPlan, (real) => (texts, ground) => {
  const draft = real(texts, ground);
  return draft.kind === 'plan' ? draft : { kind: 'plan', issues: [] };
});

/** Where a branch is checked out. */
export const checkedOut = part(
  'branch of a person',
  (find: () => string | null) => find(),
  () => () => null,
);

/** Git as the gate checkouts are handed it. */
export const checkoutGit = part(
  'clean checkout',
  part(
    'dirty gate',
    (git: OpenedGit) => git,
    () => (git) => Object.assign(git, { changedFiles: () => Promise.resolve([]) }),
  ),
  () => (git) => Object.assign(git, { cleanFolder: () => Promise.resolve() }),
);

/** What finds the processes of a run. */
export const lookForMarks = part('marks', lookForMarked, () => () => ({ marked: [], above: [], strangers: [] }));

/** Git as the merge lane is handed it. */
export const laneGit = part(
  'compare-and-swap',
  (git: OpenedGit) => git,
  () => forcedMoves,
);

/** Git as the record of an Issue is handed it. */
export const journalGit = part(
  'recorded first',
  (git: OpenedGit) => git,
  () => lateAttempts,
);

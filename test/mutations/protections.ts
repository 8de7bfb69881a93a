/**
 * The protections that the mutation check switches off, one at a time (`npm run mutations`): for each the tests that must
 * fail without it, and the area, which holds the tests that may. What is weaker then stands in `parts.ts`.
 *
 * A test is written as `file > describe > test`; a shorter text means every test that begins with it.
 */

/** One protection, as the check needs to know it. */
export interface Protected {
  /** What holds while it is on. */
  readonly what: string;
  /** Tests that must fail without it; of a table every row. */
  readonly named: readonly string[];
  /** Where further tests may fail. */
  readonly area: readonly string[];
}

/** Every protection that is checked, by the name under which `parts.ts` switches it off. */
export const protections = {
  blindness: {
    what: 'judges and planners are shown no History and no checkpoint',
    named: ['test/store/reading.test.ts > what a judge reads has no History'],
    area: [],
  },
  'unreadable verdict': {
    what: 'a judge whose envelope is missing or wrong has not passed anything',
    named: [
      'test/drivers/roles.test.ts > the envelope of a judge: another word',
      'test/drivers/roles.test.ts > the envelope of a judge: no findings',
      'test/gates/judge.test.ts > a judge > without a readable verdict has not passed: another word',
    ],
    area: [
      'test/gates/judge.test.ts > a judge',
      'test/drivers/roles.test.ts > the envelope of a judge',
      'test/drivers/roles.test.ts > the scripted driver',
    ],
  },
  'only the field': {
    what: 'no prose of a judge is read, only the field of its envelope',
    named: ['test/gates/judge.test.ts > a judge > that says pass in words alone has said nothing'],
    area: [],
  },
  'judges only read': {
    what: 'a judge that changed what it was to look at has no verdict',
    named: ['test/gates/judge.test.ts > a judge > that changed its checkout has no verdict'],
    area: [],
  },
  'one verdict': {
    what: 'a judge that says two things has said nothing',
    named: [
      'test/drivers/roles.test.ts > the envelope of a judge: two that contradict each other',
      'test/gates/judge.test.ts > a judge > without a readable verdict has not passed: two that differ',
    ],
    area: ['test/drivers/roles.test.ts > the envelope of a judge', 'test/gates/judge.test.ts > a judge'],
  },
  'protected paths': {
    what: 'files that only a person changes are not changed by work',
    named: [
      'test/gates/guard.test.ts > protected > giro.toml and .worktreeinclude, new ones too',
      'test/gates/guard.test.ts > protected > [protect] paths, changed, added and deleted, whatever the Issue says',
    ],
    area: [
      'test/gates/guard.test.ts > protected',
      'test/gates/guard.test.ts > gate-file',
      'test/gates/guard.test.ts > a finding says the rule',
      'test/gates/guard.test.ts > rubrics and skills of judges',
    ],
  },
  shrink: {
    what: 'tests and assertions do not become fewer unseen',
    named: [
      'test/gates/guard-shrink.test.ts > javascript > a test that is removed',
      'test/gates/guard-shrink.test.ts > javascript > an assertion that is removed',
      'test/gates/guard-shrink.test.ts > javascript > a new skip',
    ],
    area: ['test/gates/guard-shrink.test.ts', 'test/gates/guard.test.ts > gate-file > a test file that a gate names'],
  },
  secrets: {
    what: 'work adds nothing that looks like a secret',
    named: ['test/gates/guard-secrets.test.ts > private key'],
    area: ['test/gates/guard-secrets.test.ts'],
  },
  'vacuous green': {
    what: 'a gate whose runner ran no test has not passed',
    named: ['test/gates/vacuous.test.ts > an exit with 0 > is no pass when the runner ran nothing'],
    area: ['test/gates/vacuous.test.ts'],
  },
  baseline: {
    what: 'nothing is paid for while the gates are red on the base',
    named: [
      'test/loop/spec-loop.test.ts > the base is judged before anything is paid for > and a red one ends the Spec',
      'test/loop/spec-loop.test.ts > the base is judged before anything is paid for > before a plan too',
    ],
    area: ['test/loop/spec-loop.test.ts > the base is judged before anything is paid for'],
  },
  flaky: {
    what: 'a gate that is red and then green on the same code has not passed, unless giro.toml says so',
    named: [
      'test/gates/settle.test.ts > a red gate is run once more on the same tree > and is flaky when it is green then',
    ],
    area: ['test/gates/settle.test.ts'],
  },
  'dirty gate': {
    what: 'a gate that rewrote tracked files has not passed',
    named: [
      'test/gates/verify.test.ts > a gate that rewrites tracked files > is dirty',
      'test/gates/verify.test.ts > a gate that rewrites tracked files > is not remembered as a pass',
      'test/worktree/checkout.test.ts > what a gate sees > comes with the tracked files that were rewritten since',
    ],
    area: ['test/gates/verify.test.ts > a gate that rewrites tracked files', 'test/worktree/checkout.test.ts'],
  },
  'clean checkout': {
    what: 'a gate sees the committed files only, and nothing of the gates before it',
    named: ['test/worktree/checkout.test.ts > the next user > gets the same folder with nothing of the last one in it'],
    area: ['test/worktree/checkout.test.ts > the next user'],
  },
  'pass by definition': {
    what: 'a pass holds only for a gate that demands the same',
    named: ['test/gates/cache.test.ts > a key changes with the tree, the command'],
    area: ['test/gates/verify.test.ts > a pass'],
  },
  marks: {
    what: 'what a run left running is found by its mark and ended',
    named: [
      'test/cli/leftovers.test.ts > what a giro that is gone left running > is ended before the next run begins',
      'test/cli/leftovers.test.ts > what a giro that is gone left running > is ended by giro stop',
      'test/cli/leftovers.test.ts > what a run leaves running > is ended with it',
      'test/cli/leftovers.test.ts > what a run leaves running > in a folder is ended before',
    ],
    area: ['test/cli/leftovers.test.ts'],
  },
  'recorded first': {
    what: 'an attempt is written down before its agent starts',
    named: [
      'test/loop/issue-loop.test.ts > an attempt > is recorded before it runs',
      'test/loop/issue-loop.test.ts > a branch that somebody moved > before its attempt is recorded no agent starts',
      'test/store/journal.test.ts > the next run finds an Issue > interrupted, when its attempt was recorded',
    ],
    area: ['test/loop/issue-loop.test.ts', 'test/store/journal.test.ts'],
  },
  'budget asked first': {
    what: 'no model is called when its call does not fit the budgets of Issue and Spec',
    named: [
      'test/loop/budget.test.ts > a call is made only when it fits > at what the largest of its kind took',
      'test/loop/budget.test.ts > what earlier runs spent > counts, and so does a call that was cut off',
    ],
    area: ['test/loop/budget.test.ts', 'test/loop/issue-loop.test.ts > a budget'],
  },
  'unknown cost': {
    what: 'a call of unknown cost counts as it was reserved, never as nothing',
    named: [
      'test/loop/budget.test.ts > unknown is never nothing > it counts as the largest that was seen',
      'test/loop/budget.test.ts > what earlier runs spent > counts, and so does a call that was cut off',
    ],
    area: ['test/loop/budget.test.ts'],
  },
  'compare-and-swap': {
    what: 'the integration branch moves only from the tip on which the merge was verified',
    named: ['test/worktree/lane.test.ts > M5 a tip that somebody moved > while gates ran'],
    area: ['test/worktree/lane.test.ts > M5', 'test/worktree/lane.test.ts > a docs-only commit'],
  },
  'branch of a person': {
    what: 'a branch that is checked out somewhere is not moved',
    named: [
      'test/worktree/lane.test.ts > M4 a branch that is checked out > is not moved',
      'test/worktree/lane.test.ts > M4 a branch that is checked out > gets no docs-only commit either',
    ],
    area: ['test/worktree/lane.test.ts > M4', 'test/worktree/lane.test.ts > a stop'],
  },
  'plan checked': {
    what: 'a plan that cannot be run is not written',
    named: [
      'test/loop/plan-loop.test.ts > what cannot be a plan > goes back once, with the reasons',
      'test/loop/plan-loop.test.ts > what cannot be a plan > is not asked for a third time',
    ],
    area: ['test/loop/plan-loop.test.ts'],
  },
} as const satisfies Record<string, Protected>;

/** Names of protections. */
export type Protection = keyof typeof protections;

/**
 * Run whatever is off, beside the files of the area: no test of theirs may fail but those of the area. They are quick, and of
 * every kind of rig that is handed such parts.
 */
export const bystanders: readonly string[] = [
  'test/drivers/envelope.test.ts',
  'test/drivers/roles.test.ts',
  'test/gates/cache.test.ts',
  'test/gates/gate.test.ts',
  'test/gates/guard.test.ts',
  'test/loop/issue-loop.test.ts',
  'test/loop/plan-loop.test.ts',
  'test/store/reading.test.ts',
];

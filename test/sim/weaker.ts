/** Engines that miss one thing. For each the simulation must find a seed, or it proves nothing. */
import { verdictOf } from '../../src/gates/gate.js';
import { blankVerdict } from '../../src/gates/run.js';
import { forcedMoves, lateAttempts } from '../rig/weaker-git.js';
import { wholeParts, type Parts } from './simulate.js';
import type { World } from './world.js';

/** One thing that is missing. */
interface Weaker {
  readonly what: string;
  /** How a seed says what came of it. */
  readonly found: RegExp;
  readonly parts: Parts;
}

const pass = { verdict: 'pass', ended: { kind: 'exited', code: 0 } } as const;

/** All of them. */
export const weaker: readonly Weaker[] = [
  {
    what: 'the tip moves to code that no gate was asked about',
    found: /no gate passed|the tip is red/,
    parts: {
      ...wholeParts,
      verifier: (verifier) => ({
        verify: async (request) =>
          request.scope === 'integration'
            ? verdictOf(request.gates.map((gate) => ({ ...blankVerdict(gate), ...pass })))
            : verifier.verify(request),
      }),
    },
  },
  {
    what: 'the tip moves, though somebody else moved it',
    found: /does not stand on the one before/,
    parts: { ...wholeParts, git: forcedMoves },
  },
  {
    what: 'an attempt is recorded after its agent started',
    found: /is not recorded and its agent starts/,
    parts: { ...wholeParts, git: lateAttempts },
  },
  {
    what: 'a crash gives the attempt back',
    found: /is started twice|is taken for theirs/,
    parts: { ...wholeParts, crashed: forgetAttempts },
  },
  {
    what: 'a dependency is not seen',
    found: /starts while .* \(O2\)/,
    parts: { ...wholeParts, checkout: (_, text) => text.replace(/^depends-on: .*\n/m, '') },
  },
  {
    what: 'a lease is not seen',
    found: /starts while .* holds/,
    parts: { ...wholeParts, checkout: (_, text) => text.replace(/^(touches|resources): .*\n/gm, '') },
  },
  {
    what: 'one agent too many',
    found: /more than \d+ \(O4\)/,
    parts: { ...wholeParts, agents: (limit) => limit + 1 },
  },
  {
    what: 'one gate too many',
    found: /gates at once/,
    parts: { ...wholeParts, gates: (limit) => limit + 1 },
  },
  {
    what: 'one attempt too many',
    found: /used \d+ attempts/,
    parts: {
      ...wholeParts,
      policy: (policy) => ({ ...policy, budget: { ...policy.budget, attempts: policy.budget.attempts + 1 } }),
    },
  },
  {
    what: 'an Issue asks while attempts are left',
    found: /asks without a reason: budget-spent/,
    parts: {
      ...wholeParts,
      policy: (policy) => ({
        ...policy,
        budget: { ...policy.budget, attempts: Math.max(1, policy.budget.attempts - 1) },
      }),
    },
  },
  {
    what: 'a usage limit is forgotten',
    found: /the account is used up/,
    parts: {
      ...wholeParts,
      parking: (parking) => Object.assign(parking, { park: () => false, over: () => Promise.resolve() }),
    },
  },
  {
    what: 'an Issue that asks is not shown so',
    found: /waits without a reason|asks|\(views\)/,
    parts: {
      ...wholeParts,
      event: (body) => (body.type === 'issue.escalated' ? { ...body, question: '' } : body),
    },
  },
];

/** What began and had no result is gone from the branches. */
function forgetAttempts(world: World): void {
  const { store } = world;
  for (const { id } of world.script.issues) {
    const branch = store.readRef(world.branchOf(id));
    if (branch === null) continue;
    const newest = world.factsAt(branch, id)?.entries.at(-1);
    if (newest === undefined || newest.attempt === null || newest.verdict !== null) continue;
    const before = store.commit(branch).parents[0] ?? null;
    store.moveRef(world.branchOf(id), newest.attempt === 1 ? null : before, branch);
  }
}

/** What one seed makes happen: the graph, what workers and gates do, how each run is cut off, and what people do. */
import { parseIssueId, type IssueId } from '../../src/issue.js';
import type { Fault } from './process.js';
import { Chance } from './random.js';

/** One Issue of the world. */
export interface ScriptedIssue {
  readonly id: IssueId;
  readonly dependsOn: readonly IssueId[];
  readonly touches: readonly string[];
  readonly resources: readonly string[];
  readonly maxAttempts: number | null;
  /** A file that others change too: whoever lands second has a conflict. */
  readonly shared: string | null;
  /** Green alone, and red together with this one. */
  readonly against: IssueId | null;
}

/** What a worker does in one attempt. */
export type Play =
  | 'good'
  /** Another mistake each time. */
  | 'bad'
  /** The same mistake again. */
  | 'same'
  | 'nothing'
  | 'blocked'
  /** Says so, and is done nevertheless. */
  | 'blocked-good'
  | 'operation'
  | 'limit'
  | 'failed'
  | 'timeout'
  /** Leaves something that cannot be taken. */
  | 'untaken'
  /** Settles a conflict by its own side. */
  | 'overrule'
  /** There is no folder for it. */
  | 'unprepared';

/** How one gate ends beside what the code deserves. */
export type GateMood = 'honest' | 'flaky' | 'errored' | 'cannot-run-here';

/** What a person does about an Issue that asks. */
export type Answer = 'run again' | 'answer' | 'edit' | 'commit' | 'worktree' | 'wontfix';

/** Everything that a seed decides. */
export interface Script {
  readonly seed: number;
  readonly chance: Chance;
  readonly issues: readonly ScriptedIssue[];
  readonly agents: number;
  readonly gates: number;
  readonly budget: {
    readonly attempts: number;
    readonly failures: number;
    readonly noProgress: number;
    readonly blocked: number;
    readonly rounds: number;
  };
  /** Gap Issues without which the Spec is red. */
  readonly gaps: number;
  /** Runs that are cut off. */
  readonly faults: number;
}

/** From this life of an Issue, or run of giro, on all goes well. */
const calm = { life: 3, run: 9 } as const;

/** Draws the world of a seed. */
export function scriptOf(seed: number): Script {
  const chance = new Chance(seed);
  const size = sizeOf(chance);
  const gaps = chance.is(0.15, 'gaps') ? chance.whole(1, 2, 'gap count') : 0;
  const ids = Array.from({ length: size }, (_, index) => idOf(index + 1));
  return {
    seed,
    chance,
    issues: ids.map((id, index) => issueOf(chance, { id, index, ids })),
    agents: chance.whole(1, 4, 'agents'),
    gates: chance.whole(1, 3, 'gates'),
    budget: {
      attempts: chance.whole(1, 4, 'attempts'),
      failures: chance.whole(1, 3, 'failures'),
      noProgress: chance.whole(2, 3, 'no progress'),
      blocked: chance.whole(1, 2, 'blocked'),
      rounds: gaps > 0 ? chance.whole(2, 3, 'rounds') : 1,
    },
    gaps,
    faults: chance.is(0.2, 'undisturbed') ? 0 : chance.whole(1, 5, 'faults'),
  };
}

function sizeOf(chance: Chance): number {
  switch (chance.pick({ small: 78, middle: 20, large: 2 }, 'size')) {
    case 'small':
      return chance.whole(1, 5, 'issues');
    case 'middle':
      return chance.whole(6, 12, 'issues');
    case 'large':
      return chance.whole(13, 60, 'issues');
  }
}

function issueOf(
  chance: Chance,
  { id, index, ids }: { readonly id: IssueId; readonly index: number; readonly ids: readonly IssueId[] },
): ScriptedIssue {
  const before = ids.slice(0, index);
  const share = Math.min(0.5, 1.2 / Math.max(1, index));
  const other = ids[chance.whole(0, ids.length - 1, 'against', id)];
  return {
    id,
    dependsOn: before.filter((one) => chance.is(share, 'depends', id, one)),
    touches: chance.is(0.2, 'touches', id) ? [`src/area-${String(chance.whole(1, 2, 'area', id))}/**`] : [],
    resources: chance.is(0.1, 'resources', id) ? ['database'] : [],
    maxAttempts: chance.is(0.1, 'max', id) ? chance.whole(1, 3, 'max attempts', id) : null,
    shared: chance.is(0.25, 'shared', id) ? `shared-${String(chance.whole(1, 2, 'shared file', id))}.txt` : null,
    against: other !== undefined && other !== id && chance.is(0.15, 'is against', id) ? other : null,
  };
}

/** The id of the Issue with a number. */
function idOf(number: number): IssueId {
  const id = parseIssueId(`${String(number).padStart(2, '0')}-i`);
  if (id === undefined) throw new Error('not an id');
  return id;
}

/** What the worker of an attempt does. `life`: how often a person answered for the Issue before. */
export function playOf({ chance }: Script, at: { readonly issue: IssueId; attempt: number; life: number }): Play {
  if (at.life >= calm.life) return 'good';
  const luck = at.life === 0 ? 60 : 130;
  const ill = { bad: 14, same: 4, nothing: 3, blocked: 4, 'blocked-good': 1, operation: 5, limit: 2, failed: 3 };
  const odd = { timeout: 1, untaken: 1, overrule: 3, unprepared: 1 };
  return chance.pick<Play>({ good: luck, ...ill, ...odd }, 'play', at.issue, at.attempt);
}

/** How the n-th run of the gates on a tree goes. `run`: the life of giro. */
export function moodOf({ chance }: Script, at: { tree: string; nth: number; run: number }): GateMood {
  if (at.run >= calm.run) return 'honest';
  return chance.pick<GateMood>({ honest: 1000, flaky: 25, errored: 8, 'cannot-run-here': 8 }, 'mood', at.tree, at.nth);
}

/** How long a worker takes. */
export function agentMs({ chance }: Script, issue: IssueId, attempt: number): number {
  return chance.is(0.15, 'quick', issue, attempt)
    ? chance.whole(0, 50, 'agent', issue, attempt)
    : chance.whole(500, longestAgentMs, 'agent', issue, attempt);
}

/** The most that a worker takes, and what it may take at most. */
const longestAgentMs = 40_000;
export const agentLimitMs = 60_000;
/** The most that the gates take. */
export const longestGateMs = 8_000;
/** The longest pause that a usage limit asks for. */
export const longestLimitMs = 120_000;

/** How a run of giro is cut off. */
export function faultOf(script: Script, run: number): Fault {
  const { chance, faults, issues } = script;
  if (run >= faults) return { kind: 'none' };
  const ms = Math.floor(chance.share('when', run) ** 2 * 60_000 * (1 + issues.length / 2));
  switch (chance.pick({ crash: 55, 'crash-at': 20, stop: 12, 'no-more': 8, none: 5 }, 'fault', run)) {
    case 'crash': {
      const most = 30 + 30 * issues.length;
      const step = 1 + Math.floor(chance.share('step', run) ** 1.5 * most);
      return { kind: 'crash', step, after: chance.is(0.5, 'after', run) };
    }
    case 'crash-at':
      return { kind: 'crash-at', ms };
    case 'stop':
      return { kind: 'stop', ms };
    case 'no-more':
      return { kind: 'no-more', ms };
    case 'none':
      return { kind: 'none' };
  }
}

/** What a person does about an Issue that asks, before a run. */
export function answerOf({ chance }: Script, at: { readonly issue: IssueId; readonly run: number }): Answer {
  const weights = { 'run again': 50, answer: 20, edit: 10, commit: 8, worktree: 7, wontfix: 3 };
  return chance.pick<Answer>(weights, 'answer', at.issue, at.run);
}

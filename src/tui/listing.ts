/** The rows of the list and the counts of the header, as they follow from the Issues. */
import { unreachable } from '../failure.js';
import type { IssueId } from '../issue.js';
import type { IssueView, RunState } from '../state.js';

/** The Issues of a run by id. */
export type Issues = RunState['issues'];

/** One row of the list: the heading of a wave or an Issue. */
export type Entry =
  | { readonly kind: 'wave'; readonly wave: number; readonly done: number; readonly total: number }
  | { readonly kind: 'issue'; readonly view: IssueView };

/** How many Issues stand where. */
export interface Counts {
  readonly total: number;
  readonly done: number;
  readonly wontfix: number;
  readonly needsHuman: number;
  /** Between their first attempt and integration. */
  readonly running: number;
  readonly ready: number;
  readonly waiting: number;
}

/** Everything about the list that does not depend on what is looked at. */
export interface Listing {
  readonly entries: readonly Entry[];
  readonly order: readonly IssueId[];
  /** Index in `entries`. */
  readonly rowOf: ReadonlyMap<IssueId, number>;
  readonly needsHuman: ReadonlySet<IssueId>;
  readonly counts: Counts;
  readonly widestId: number;
}

const known = new WeakMap<Issues, Listing>();

/** Lists Issues by wave, in their own order within each; the answer for one map is remembered. */
export function listingOf(issues: Issues): Listing {
  const before = known.get(issues);
  if (before !== undefined) return before;
  const listing = list(issues);
  known.set(issues, listing);
  return listing;
}

function list(issues: Issues): Listing {
  const waves = new Map<number, IssueView[]>();
  for (const view of issues.values()) {
    const wave = waves.get(view.wave);
    if (wave === undefined) waves.set(view.wave, [view]);
    else wave.push(view);
  }
  const entries: Entry[] = [];
  const rowOf = new Map<IssueId, number>();
  let widestId = 0;
  for (const [wave, views] of [...waves].sort(([left], [right]) => left - right)) {
    const done = views.filter((view) => view.progress.kind === 'done').length;
    entries.push({ kind: 'wave', wave, done, total: views.length });
    for (const view of views) {
      rowOf.set(view.id, entries.length);
      entries.push({ kind: 'issue', view });
      widestId = Math.max(widestId, view.id.length);
    }
  }
  const needsHuman = new Set([...issues.values()].filter(needsAnswer).map((view) => view.id));
  return { entries, order: [...rowOf.keys()], rowOf, needsHuman, counts: countsOf(issues), widestId };
}

function needsAnswer(view: IssueView): boolean {
  return view.progress.kind === 'needs-human';
}

function countsOf(issues: Issues): Counts {
  const counts = { total: issues.size, done: 0, wontfix: 0, needsHuman: 0, running: 0, ready: 0, waiting: 0 };
  for (const view of issues.values()) counts[placeOf(view, issues)]++;
  return counts;
}

function placeOf(view: IssueView, issues: Issues): Exclude<keyof Counts, 'total'> {
  switch (view.progress.kind) {
    case 'done':
      return 'done';
    case 'wontfix':
      return 'wontfix';
    case 'needs-human':
      return 'needsHuman';
    case 'idle':
      return isReady(view, issues) ? 'ready' : 'waiting';
    case 'waits-for-lease':
      return 'waiting';
    case 'working':
    case 'judging':
    case 'between':
    case 'retrying':
    case 'integrating':
      return 'running';
    default:
      return unreachable(view.progress);
  }
}

/** The same as `issueStatus` says, which would also look for the root cause: too much for a count. */
function isReady(view: IssueView, issues: Issues): boolean {
  return view.dependsOn.every((id) => (issues.get(id)?.progress.kind ?? 'done') === 'done');
}

/** Which Issues start now, and what the others wait for: pure decisions. */
import { unreachable } from '../failure.js';
import { compareIssueIds } from '../issue.js';
import type { IssueId } from '../issue.js';
import { rootCause } from '../state.js';
import type { IssueView } from '../state.js';
import { Leases, sharedBy } from './overlap.js';
import type { Claim } from './overlap.js';

/** An Issue that has not started in this run. */
export interface Candidate {
  readonly id: IssueId;
  /** Its longest remaining path. */
  readonly priority: number;
  /** It has work in progress from an earlier run. */
  readonly resuming: boolean;
  readonly claim: Claim;
}

/** An Issue that has left its agent and may soon be integrated. */
export interface Landing {
  readonly claim: Claim;
  /** When it is no longer worth waiting for. */
  readonly until: number;
  /** What would be ready if it landed now. */
  readonly releases: readonly Candidate[];
}

/** What a plan is made from. */
export interface PlanRequest {
  /** Slots that are free or about to be. */
  readonly free: number;
  /** Every Issue whose dependencies are all integrated and that has not started, best first. */
  readonly ready: Iterable<Candidate>;
  /** Priorities of the running Issues that wait for a slot again, best first. */
  readonly retries: readonly number[];
  readonly landings: readonly Landing[];
  readonly leases: Pick<Leases, 'isFree' | 'isFreeWithout'>;
}

/** What to do now. */
export interface Plan {
  /** In this order. */
  readonly start: readonly Candidate[];
  /** When to plan again if nothing happens: something ready was held back until then for a landing. */
  readonly heldUntil: number | null;
}

/** Sorts candidates: longest remaining path, then work in progress, then number. */
export function compareCandidates(left: Candidate, right: Candidate): number {
  return (
    right.priority - left.priority ||
    Number(right.resuming) - Number(left.resuming) ||
    compareIssueIds(left.id, right.id)
  );
}

/**
 * Decides which Issues start now.
 *
 * Free slots go down one list: running Issues that wait for a slot again, what is ready, and what a landing is about
 * to release, by priority and in this order when equal. What is released soon takes its slot and its leases as if it
 * were here, so that nothing less critical takes them in the last moment. One whose lease is held is passed over.
 */
export function plan(request: PlanRequest): Plan {
  const expected = expectedOf(request);
  const retries = request.retries.values();
  const claimed = new Leases();
  const start: Candidate[] = [];
  let free = request.free;
  let retry = retries.next();
  let heldUntil = Infinity;
  let next = 0;
  let somethingWaits = false;
  for (const candidate of request.ready) {
    for (; retry.done !== true && retry.value >= candidate.priority; retry = retries.next()) free -= 1;
    for (; free > 0; next += 1) {
      const soon = expected[next];
      if (soon === undefined || soon.candidate.priority <= candidate.priority) break;
      if (!claimed.isFree(soon.candidate.claim)) continue;
      claimed.take(soon.candidate.claim);
      heldUntil = Math.min(heldUntil, soon.until);
      free -= 1;
    }
    if (free <= 0 || !request.leases.isFree(candidate.claim) || !claimed.isFree(candidate.claim)) {
      somethingWaits = true;
      if (free <= 0) break;
      continue;
    }
    claimed.take(candidate.claim);
    start.push(candidate);
    free -= 1;
  }
  return { start, heldUntil: somethingWaits && heldUntil < Infinity ? heldUntil : null };
}

/** What landings are about to release, best first; nothing while retries wait, since those take any free slot. */
function expectedOf(request: PlanRequest): readonly { readonly candidate: Candidate; readonly until: number }[] {
  if (request.free <= 0 || request.retries.length > 0) return [];
  return request.landings
    .flatMap(({ claim, until, releases }) =>
      releases
        .filter((candidate) => request.leases.isFreeWithout(candidate.claim, claim))
        .map((candidate) => ({ candidate, until })),
    )
    .sort((left, right) => compareCandidates(left.candidate, right.candidate));
}

/** Why an Issue that could run is not running. */
export type WaitingFor =
  /** `on` is the root cause, not the next link of the chain. */
  | { readonly kind: 'dependency'; readonly on: IssueId; readonly needsHuman: boolean }
  /** `name` is the glob or resource of the holder. */
  | { readonly kind: 'lease'; readonly on: IssueId; readonly name: string }
  | { readonly kind: 'slot' };

/** Names what an Issue waits for; `null` when it is in progress or at rest. */
export function waitingFor(
  id: IssueId,
  issues: ReadonlyMap<IssueId, IssueView>,
  claims: ReadonlyMap<IssueId, Claim>,
): WaitingFor | null {
  if (issues.get(id)?.progress.kind !== 'idle') return null;
  const root = rootCause(issues, id);
  if (root !== undefined) return { kind: 'dependency', on: root.on, needsHuman: root.needsHuman };
  const claim = claims.get(id);
  for (const [holder, view] of issues) {
    const held = claims.get(holder);
    if (holder === id || claim === undefined || held === undefined || !holdsLeases(view)) continue;
    const name = sharedBy(held, claim);
    if (name !== undefined) return { kind: 'lease', on: holder, name };
  }
  return { kind: 'slot' };
}

/** Leases are held from the first dispatch until the Issue is at rest. */
function holdsLeases(view: IssueView): boolean {
  switch (view.progress.kind) {
    case 'idle':
    case 'waits-for-lease':
    case 'done':
    case 'needs-human':
    case 'wontfix':
      return false;
    case 'working':
    case 'judging':
    case 'between':
    case 'retrying':
    case 'integrating':
      return true;
    default:
      return unreachable(view.progress);
  }
}

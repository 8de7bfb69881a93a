/** Cycles of a graph that is known to have some. */
import { compareIssueIds } from '../issue.js';
import type { IssueId } from '../issue.js';

interface Edges {
  readonly id: IssueId;
  readonly dependsOn: readonly IssueId[];
}

/** Finds one shortest cycle for each knot of Issues that wait for each other, as a path from its smallest id back to it. */
export function findCycles(nodes: readonly Edges[]): readonly (readonly IssueId[])[] {
  const forward = new Map(nodes.map((node) => [node.id, node.dependsOn]));
  return knots(forward)
    .map((knot) => shortestCycle([...knot].sort(compareIssueIds), forward))
    .sort((left, right) => compareIssueIds(left[0], right[0]));
}

/** Strongly connected components of more than one Issue (Kosaraju, without recursion). */
function knots(forward: ReadonlyMap<IssueId, readonly IssueId[]>): readonly (readonly IssueId[])[] {
  const backward = new Map<IssueId, IssueId[]>([...forward.keys()].map((id) => [id, []]));
  for (const [id, targets] of forward) for (const target of targets) backward.get(target)?.push(id);
  const assigned = new Set<IssueId>();
  const found: IssueId[][] = [];
  for (const root of finishOrder(forward).reverse()) {
    if (assigned.has(root)) continue;
    assigned.add(root);
    const knot = [root];
    // The list grows while it is walked: this is the breadth-first queue.
    for (const id of knot) {
      for (const source of backward.get(id) ?? []) {
        if (assigned.has(source)) continue;
        assigned.add(source);
        knot.push(source);
      }
    }
    if (knot.length > 1) found.push(knot);
  }
  return found;
}

/** Issues in the order in which a depth-first walk leaves them. */
function finishOrder(forward: ReadonlyMap<IssueId, readonly IssueId[]>): IssueId[] {
  const seen = new Set<IssueId>();
  const order: IssueId[] = [];
  for (const root of forward.keys()) {
    if (seen.has(root)) continue;
    seen.add(root);
    const path = [{ id: root, rest: (forward.get(root) ?? []).values() }];
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const step = top.rest.next();
      if (step.done === true) {
        order.push(top.id);
        path.pop();
      } else if (!seen.has(step.value)) {
        seen.add(step.value);
        path.push({ id: step.value, rest: (forward.get(step.value) ?? []).values() });
      }
    }
  }
  return order;
}

/** Shortest way from the first Issue of a knot back to itself. */
function shortestCycle(
  knot: readonly IssueId[],
  forward: ReadonlyMap<IssueId, readonly IssueId[]>,
): readonly [IssueId, ...IssueId[]] {
  const [start] = knot;
  if (start === undefined) throw new Error('a knot has at least two Issues');
  const inside = new Set(knot);
  const cameFrom = new Map<IssueId, IssueId>();
  const queue = [start];
  for (const id of queue) {
    for (const next of forward.get(id) ?? []) {
      if (next === start) return [start, ...wayTo(id, start, cameFrom), start];
      if (!inside.has(next) || cameFrom.has(next)) continue;
      cameFrom.set(next, id);
      queue.push(next);
    }
  }
  throw new Error(`no cycle through ${start}`);
}

function wayTo(end: IssueId, start: IssueId, cameFrom: ReadonlyMap<IssueId, IssueId>): readonly IssueId[] {
  const way: IssueId[] = [];
  for (let id: IssueId | undefined = end; id !== undefined && id !== start; id = cameFrom.get(id)) way.push(id);
  return way.reverse();
}

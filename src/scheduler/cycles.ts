/** Cycles of a graph that is known to have some. */

interface Edges<Id> {
  readonly id: Id;
  readonly dependsOn: readonly Id[];
}

/** Finds one shortest cycle for each knot of those that wait for each other, as a path from its smallest id back to it. */
export function findCycles<Id extends string>(
  nodes: readonly Edges<Id>[],
  compare: (left: Id, right: Id) => number,
): readonly (readonly Id[])[] {
  const forward = new Map(nodes.map((node) => [node.id, node.dependsOn]));
  return knots(forward)
    .map((knot) => shortestCycle([...knot].sort(compare), forward))
    .sort((left, right) => compare(left[0], right[0]));
}

/** Strongly connected components of more than one (Kosaraju, without recursion). */
function knots<Id extends string>(forward: ReadonlyMap<Id, readonly Id[]>): readonly (readonly Id[])[] {
  const backward = new Map<Id, Id[]>([...forward.keys()].map((id) => [id, []]));
  for (const [id, targets] of forward) for (const target of targets) backward.get(target)?.push(id);
  const assigned = new Set<Id>();
  const found: Id[][] = [];
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

/** The order in which a depth-first walk leaves the nodes. */
function finishOrder<Id extends string>(forward: ReadonlyMap<Id, readonly Id[]>): Id[] {
  const seen = new Set<Id>();
  const order: Id[] = [];
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

/** Shortest way from the first of a knot back to itself. */
function shortestCycle<Id extends string>(
  knot: readonly Id[],
  forward: ReadonlyMap<Id, readonly Id[]>,
): readonly [Id, ...Id[]] {
  const [start] = knot;
  if (start === undefined) throw new Error('a knot has at least two');
  const inside = new Set(knot);
  const cameFrom = new Map<Id, Id>();
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

function wayTo<Id extends string>(end: Id, start: Id, cameFrom: ReadonlyMap<Id, Id>): readonly Id[] {
  const way: Id[] = [];
  for (let id: Id | undefined = end; id !== undefined && id !== start; id = cameFrom.get(id)) way.push(id);
  return way.reverse();
}

/** The order of the Specs of a backlog, as pure functions: dependencies, then value. */
import type { SpecSlug } from '../issue.js';
import { findCycles } from './cycles.js';

/** One Spec as the order sees it. */
export interface BacklogNode {
  readonly id: SpecSlug;
  readonly dependsOn: readonly SpecSlug[];
  /** Higher comes first; `null` comes last. */
  readonly value: number | null;
}

/** Why Specs cannot be put in order. */
export type BacklogProblem =
  | { readonly kind: 'unknown'; readonly spec: SpecSlug; readonly on: SpecSlug }
  | { readonly kind: 'self'; readonly spec: SpecSlug }
  /** `a, b, c, a`: each depends on the next; starts at the first by name. */
  | { readonly kind: 'cycle'; readonly path: readonly SpecSlug[] };

/** Finds everything that keeps Specs from being put in order. `known`: what else may be depended on. */
export function checkBacklog(nodes: readonly BacklogNode[], known: ReadonlySet<SpecSlug>): readonly BacklogProblem[] {
  const own = new Set(nodes.map((node) => node.id));
  const edges = nodes.flatMap((node): readonly BacklogProblem[] =>
    node.dependsOn.flatMap((on): readonly BacklogProblem[] => {
      if (on === node.id) return [{ kind: 'self', spec: node.id }];
      return own.has(on) || known.has(on) ? [] : [{ kind: 'unknown', spec: node.id, on }];
    }),
  );
  const inside = nodes.map(({ id, dependsOn }) => ({
    id,
    dependsOn: dependsOn.filter((on) => on !== id && own.has(on)),
  }));
  return [...edges, ...findCycles(inside, byName).map((path) => ({ kind: 'cycle', path }) as const)];
}

/**
 * Puts Specs in order: each after those it depends on; of those that could come next the one of the highest value, then
 * by name. Takes what `checkBacklog` accepts; what it depends on outside of the list is taken as there.
 */
export function orderBacklog<Node extends BacklogNode>(nodes: readonly Node[]): readonly Node[] {
  const left = new Set([...nodes].sort(byValue));
  const placed = new Set<SpecSlug>();
  const own = new Set(nodes.map((node) => node.id));
  const order: Node[] = [];
  while (left.size > 0) {
    const next = [...left].find(({ dependsOn }) => dependsOn.every((on) => placed.has(on) || !own.has(on)));
    if (next === undefined) throw new Error('these Specs depend on each other in a circle');
    left.delete(next);
    placed.add(next.id);
    order.push(next);
  }
  return order;
}

function byValue(left: BacklogNode, right: BacklogNode): number {
  if (left.value !== right.value) return (right.value ?? -Infinity) > (left.value ?? -Infinity) ? 1 : -1;
  return byName(left.id, right.id);
}

function byName(left: SpecSlug, right: SpecSlug): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

/**
 * The dependency graph of one Spec, as pure functions. `checkGraph` is asked before anything runs; `buildGraph` takes
 * only what it accepted. Nothing here recurses: a chain of 10,000 Issues must not overflow the stack.
 */
import { compareIssueIds, issueNumber } from '../issue.js';
import type { IssueId, IssueState } from '../issue.js';
import { findCycles } from './cycles.js';
import { nearestIds } from './nearest.js';

/** One Issue as the graph sees it. */
export interface GraphNode {
  readonly id: IssueId;
  /** Resolved and deduplicated ids. */
  readonly dependsOn: readonly IssueId[];
}

/** The checked graph of one Spec. */
export interface Graph {
  readonly nodes: ReadonlyMap<IssueId, GraphNode>;
  /** Lists the Issues that directly depend on this one, by number. */
  dependents(id: IssueId): readonly IssueId[];
  /** Tells the depth of an Issue, from 1. */
  wave(id: IssueId): number;
  /** Issues by depth, each wave by number; for seeing, not a barrier. */
  readonly waves: readonly (readonly IssueId[])[];
  /** Computes for each Issue its longest remaining path, itself included. */
  criticalPath(estimate: (id: IssueId) => number): ReadonlyMap<IssueId, number>;
}

/** Why a set of Issues cannot be scheduled. */
export type GraphProblem =
  | { readonly kind: 'unknown'; readonly issue: IssueId; readonly id: string; readonly nearest: readonly IssueId[] }
  /** `a, b, c, a`: each depends on the next; starts at the smallest id. */
  | { readonly kind: 'cycle'; readonly path: readonly IssueId[] }
  | { readonly kind: 'self'; readonly issue: IssueId }
  | { readonly kind: 'wontfix'; readonly issue: IssueId; readonly id: IssueId }
  | { readonly kind: 'duplicate-number'; readonly issues: readonly IssueId[] };

/** One Issue as `checkGraph` needs it. */
export interface CheckedIssue extends GraphNode {
  readonly state: IssueState;
}

/** An Issue with its edges as references, since a look-up by name for every edge is most of the cost at 10,000 Issues. */
interface Vertex {
  readonly node: GraphNode;
  /** Place in the order by number. */
  readonly rank: number;
  readonly dependents: Vertex[];
  unmet: number;
}

/** Finds everything that keeps these Issues from being scheduled; empty exactly when all can be. */
export function checkGraph(issues: readonly CheckedIssue[]): readonly GraphProblem[] {
  const sorted = sortById(issues);
  const states = new Map(sorted.map((issue) => [issue.id, issue.state]));
  return [
    ...duplicateNumbers(sorted),
    ...sorted.flatMap((issue) => edgeProblems(issue, states)),
    ...findCycles(leftByPeeling(sorted), compareIssueIds).map((path) => ({ kind: 'cycle', path }) as const),
  ];
}

/** Builds the graph of Issues that `checkGraph` accepts; a cycle here is a bug and throws. */
export function buildGraph(nodes: readonly GraphNode[]): Graph {
  const vertices = link(sortById(nodes));
  const waves = peel(vertices);
  const order = waves.flat();
  if (order.length < vertices.length) throw new Error('buildGraph was given a cycle: checkGraph comes first');
  const byId = new Map(vertices.map((vertex) => [vertex.node.id, vertex]));
  const waveOf = new Map(waves.flatMap((wave, index) => wave.map(({ node }) => [node.id, index + 1] as const)));
  return {
    nodes: new Map(vertices.map(({ node }) => [node.id, node])),
    dependents: (id) => known(byId, id).dependents.map(({ node }) => node.id),
    wave: (id) => known(waveOf, id),
    waves: waves.map((wave) => wave.map(({ node }) => node.id)),
    criticalPath: (estimate) => longestPaths(order, estimate),
  };
}

function longestPaths(order: readonly Vertex[], estimate: (id: IssueId) => number): ReadonlyMap<IssueId, number> {
  const longest = new Map<IssueId, number>();
  for (const { node, dependents } of order.toReversed()) {
    let after = 0;
    for (const dependent of dependents) after = Math.max(after, known(longest, dependent.node.id));
    longest.set(node.id, estimate(node.id) + after);
  }
  return longest;
}

/** Ties each Issue to those that depend on it, which come out by number because the nodes are. */
function link(sorted: readonly GraphNode[]): readonly Vertex[] {
  const vertices = sorted.map((node, rank): Vertex => ({ node, rank, dependents: [], unmet: 0 }));
  const byId = new Map(vertices.map((vertex) => [vertex.node.id, vertex]));
  for (const vertex of vertices) {
    for (const id of vertex.node.dependsOn) {
      const dependency = byId.get(id);
      if (dependency === undefined) continue;
      dependency.dependents.push(vertex);
      vertex.unmet += 1;
    }
  }
  return vertices;
}

/** Takes away, wave by wave, every Issue all of whose known dependencies were taken away before. */
function peel(vertices: readonly Vertex[]): readonly (readonly Vertex[])[] {
  const waves: Vertex[][] = [];
  let wave = vertices.filter(({ unmet }) => unmet === 0);
  while (wave.length > 0) {
    waves.push(wave);
    const next: Vertex[] = [];
    for (const { dependents } of wave) {
      for (const dependent of dependents) {
        dependent.unmet -= 1;
        if (dependent.unmet === 0) next.push(dependent);
      }
    }
    wave = next.sort((left, right) => left.rank - right.rank);
  }
  return waves;
}

/** What no order can reach: the Issues of cycles and everything behind them, without edges to anything else. */
function leftByPeeling(sorted: readonly GraphNode[]): readonly GraphNode[] {
  const once = [...new Map(sorted.map((node) => [node.id, node])).values()];
  const vertices = link(
    once.map(({ id, dependsOn }) =>
      dependsOn.includes(id) ? { id, dependsOn: dependsOn.filter((other) => other !== id) } : { id, dependsOn },
    ),
  );
  peel(vertices);
  // A vertex that peeling reached has nothing unmet.
  const left = vertices.filter(({ unmet }) => unmet > 0).map(({ node }) => node);
  const ids = new Set(left.map((node) => node.id));
  return left.map(({ id, dependsOn }) => ({ id, dependsOn: dependsOn.filter((other) => ids.has(other)) }));
}

function edgeProblems(issue: CheckedIssue, states: ReadonlyMap<IssueId, IssueState>): readonly GraphProblem[] {
  // What is over waits for nothing, so only an Issue that is still to come is harmed by a `wontfix`.
  const isOver = issue.state === 'done' || issue.state === 'wontfix';
  return issue.dependsOn.flatMap((id): readonly GraphProblem[] => {
    if (id === issue.id) return [{ kind: 'self', issue: id }];
    const state = states.get(id);
    if (state === undefined) {
      return [{ kind: 'unknown', issue: issue.id, id, nearest: nearestIds(id, [...states.keys()]) }];
    }
    return state === 'wontfix' && !isOver ? [{ kind: 'wontfix', issue: issue.id, id }] : [];
  });
}

function duplicateNumbers(sorted: readonly GraphNode[]): readonly GraphProblem[] {
  const byNumber = new Map<number, IssueId[]>();
  for (const { id } of sorted) {
    const same = byNumber.get(issueNumber(id));
    if (same === undefined) byNumber.set(issueNumber(id), [id]);
    else same.push(id);
  }
  return [...byNumber.values()]
    .filter((issues) => issues.length > 1)
    .map((issues) => ({ kind: 'duplicate-number', issues }));
}

function sortById<T extends { readonly id: IssueId }>(nodes: readonly T[]): readonly T[] {
  // Numbers are read once each, not again at every comparison.
  const numbered = nodes.map((node) => ({ node, number: issueNumber(node.id) }));
  numbered.sort((left, right) => left.number - right.number || compareIssueIds(left.node.id, right.node.id));
  return numbered.map(({ node }) => node);
}

function known<T>(map: ReadonlyMap<IssueId, T>, id: IssueId): T {
  const value = map.get(id);
  if (value === undefined) throw new Error(`no such Issue: ${id}`);
  return value;
}

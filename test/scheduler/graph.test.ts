import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { IssueId, IssueState } from '../../src/issue.js';
import { buildGraph, checkGraph } from '../../src/scheduler/graph.js';
import type { GraphNode, GraphProblem } from '../../src/scheduler/graph.js';
import { acyclic, anyGraph, id, letter, nodes } from './issues.js';

const check = (
  issues: readonly GraphNode[],
  states: Partial<Record<string, IssueState>> = {},
): readonly GraphProblem[] => checkGraph(issues.map((issue) => ({ ...issue, state: states[issue.id] ?? 'ready' })));

describe('checkGraph', () => {
  test('a cycle beside an unrelated Issue is shown as a path that starts at its smallest id', () => {
    expect(check(nodes('b: c, c: a, a: b, d'))).toEqual([
      { kind: 'cycle', path: ['1-a', '2-b', '3-c', '1-a'].map(id) },
    ]);
  });

  test('each knot of Issues is shown once, by a shortest cycle, and what only waits behind it is not', () => {
    const problems = check(nodes('a: b, b: c a, c: a, d: c, e: f, f: e, g: d e'));
    expect(problems).toEqual([
      { kind: 'cycle', path: ['1-a', '2-b', '1-a'].map(id) },
      { kind: 'cycle', path: ['5-e', '6-f', '5-e'].map(id) },
    ]);
  });

  test('ids are compared by number: 9 is smaller than 10', () => {
    const path = ['9-z', '10-a', '9-z'].map(id);
    const pair = [
      { id: id('10-a'), dependsOn: [id('9-z')] },
      { id: id('9-z'), dependsOn: [id('10-a')] },
    ];
    expect(check(pair)).toEqual([{ kind: 'cycle', path }]);
  });

  test('an Issue that depends on itself is said to, and is no cycle', () => {
    expect(check(nodes('a: a, b: a'))).toEqual([{ kind: 'self', issue: letter('a') }]);
  });

  test('an unknown id comes with what was probably meant', () => {
    const issues = [
      { id: id('01-schema'), dependsOn: [] },
      { id: id('02-api'), dependsOn: [] },
      { id: id('03-ui'), dependsOn: [id('02-apii'), id('07-shcema'), id('9-entirely-else'), id('17-x')] },
      { id: id('17-schemas'), dependsOn: [] },
    ];
    expect(check(issues)).toEqual([
      { kind: 'unknown', issue: '03-ui', id: '02-apii', nearest: ['02-api'] },
      { kind: 'unknown', issue: '03-ui', id: '07-shcema', nearest: ['01-schema'] },
      { kind: 'unknown', issue: '03-ui', id: '9-entirely-else', nearest: [] },
      { kind: 'unknown', issue: '03-ui', id: '17-x', nearest: ['17-schemas'] },
    ]);
  });

  test('two Issues with one number are reported together, however the number is written', () => {
    const issues = ['010-a', '10-b', '1-c'].map((own) => ({ id: id(own), dependsOn: [] }));
    expect(check(issues)).toEqual([{ kind: 'duplicate-number', issues: ['010-a', '10-b'] }]);
  });

  test('a dependency on a wontfix Issue is a problem for what is still to come only', () => {
    const states = { '1-a': 'wontfix', '3-c': 'done', '4-d': 'wontfix' } as const;
    expect(check(nodes('a, b: a, c: a, d: a'), states)).toEqual([
      { kind: 'wontfix', issue: letter('b'), id: letter('a') },
    ]);
  });

  test('all problems are reported, not the first', () => {
    const kinds = check([...nodes('a: b z, b: a, c: c, d: e, e'), { id: id('3-again'), dependsOn: [] }], {
      '5-e': 'wontfix',
    }).map(({ kind }) => kind);
    expect(kinds.sort()).toEqual(['cycle', 'duplicate-number', 'self', 'unknown', 'wontfix']);
  });

  test('exactly the acyclic graphs are accepted, and every path it shows is a cycle', () => {
    fc.assert(
      fc.property(anyGraph(9), (graph) => {
        const problems = check(graph);
        expect(problems.length === 0).toBe(canBeOrdered(graph));
        const edges = new Map(graph.map((node) => [node.id, node.dependsOn]));
        const knotsSeen = new Set<IssueId>();
        for (const problem of problems) {
          if (problem.kind !== 'cycle') continue;
          const { path } = problem;
          expect(path.at(-1)).toBe(path[0]);
          path.slice(1).forEach((next, index) => {
            expect(edges.get(path[index] ?? next)).toContain(next);
          });
          for (const member of new Set(path)) {
            expect(knotsSeen.has(member), 'one cycle a knot').toBe(false);
            knotsSeen.add(member);
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  test('every Issue of a cycle is in a knot that one path stands for', () => {
    fc.assert(
      fc.property(anyGraph(8), (graph) => {
        const reach = reachable(graph);
        const paths = check(graph).flatMap((problem) => (problem.kind === 'cycle' ? [problem.path] : []));
        const knots = new Set(
          graph
            .filter(({ id: own }) => [...(reach.get(own) ?? [])].some((to) => to !== own && reach.get(to)?.has(own)))
            .map(({ id: own }) =>
              graph
                .map((other) => other.id)
                .filter((to) => to === own || (reach.get(own)?.has(to) && reach.get(to)?.has(own)))
                .join(),
            ),
        );
        expect(paths.length).toBe(knots.size);
        // Ids come in order, so that a knot is named by its smallest.
        expect(paths.map(([first]) => first).sort()).toEqual([...knots].map((knot) => knot.split(',')[0]).sort());
      }),
      { numRuns: 500 },
    );
  });
});

describe('buildGraph', () => {
  test('waves are depths from 1, and dependents are direct and by number', () => {
    const graph = buildGraph(nodes('d: b c, c: a, b: a, e, a'));
    expect(graph.waves).toEqual([['1-a', '5-e'], ['2-b', '3-c'], ['4-d']]);
    expect(graph.wave(letter('d'))).toBe(3);
    expect(graph.dependents(letter('a'))).toEqual(['2-b', '3-c']);
    expect([...graph.nodes.keys()]).toEqual(['1-a', '2-b', '3-c', '4-d', '5-e']);
    expect(buildGraph(nodes('a, b, c: b, d: a')).waves).toEqual([
      ['1-a', '2-b'],
      ['3-c', '4-d'],
    ]);
  });

  test('the critical path is the longest remaining one, by estimate and not by hops', () => {
    const graph = buildGraph(nodes('a, b: a, c: b, d: a'));
    const took = new Map([
      [letter('a'), 1],
      [letter('b'), 2],
      [letter('c'), 3],
      [letter('d'), 10],
    ]);
    expect(Object.fromEntries(graph.criticalPath((own) => took.get(own) ?? 0))).toEqual({
      '1-a': 11,
      '2-b': 5,
      '3-c': 3,
      '4-d': 10,
    });
  });

  test('waves and critical paths are those of a naive oracle', () => {
    fc.assert(
      fc.property(acyclic(12), fc.array(fc.nat(9), { minLength: 12, maxLength: 12 }), (graph, weights) => {
        const weight = (own: IssueId): number => weights[Number.parseInt(own, 10) - 1] ?? 0;
        const byId = new Map(graph.map((node) => [node.id, node]));
        const depth = (own: IssueId): number =>
          1 + Math.max(0, ...(byId.get(own)?.dependsOn ?? []).map((dependency) => depth(dependency)));
        const path = (own: IssueId): number =>
          weight(own) +
          Math.max(0, ...graph.filter((node) => node.dependsOn.includes(own)).map((node) => path(node.id)));
        const built = buildGraph(graph);
        const longest = built.criticalPath(weight);
        for (const { id: own } of graph) {
          expect(built.wave(own)).toBe(depth(own));
          expect(built.waves[depth(own) - 1]).toContain(own);
          expect(longest.get(own)).toBe(path(own));
        }
        expect(built.waves.flat().length).toBe(graph.length);
      }),
      { numRuns: 300 },
    );
  });

  test('a cycle is a bug of the caller', () => {
    expect(() => buildGraph(nodes('a: b, b: a'))).toThrow('checkGraph comes first');
  });
});

describe('10,000 Issues', () => {
  const many = Array.from({ length: 10_000 }, (_, index) => id(`${String(index + 1)}-issue`));
  const withEdges = (edges: (index: number) => readonly (IssueId | undefined)[]): GraphNode[] =>
    many.map((own, index) => ({ id: own, dependsOn: edges(index).filter((other) => other !== undefined) }));

  test('a chain that long does not overflow the stack, nor does a ring', () => {
    const chain = withEdges((index) => [many[index - 1]]);
    expect(check(chain)).toEqual([]);
    expect(buildGraph(chain).wave(id('10000-issue'))).toBe(10_000);
    expect(
      buildGraph(chain)
        .criticalPath(() => 1)
        .get(id('1-issue')),
    ).toBe(10_000);
    const [problem] = check(withEdges((index) => [many[(index + 1) % many.length]]));
    expect(problem?.kind === 'cycle' && problem.path.length).toBe(10_001);
  });

  test('building a graph of three edges each costs less than 30 ms of processor time', () => {
    const graph = withEdges((index) => [index - 1, index - 7, index - 29].map((other) => many[other]));
    // The best of several: other programs share the machine, and the first runs are not compiled yet.
    const costs = Array.from({ length: 12 }, () => {
      const before = process.cpuUsage();
      buildGraph(graph);
      const used = process.cpuUsage(before);
      return (used.user + used.system) / 1000;
    });
    expect(Math.min(...costs)).toBeLessThan(30);
  });
});

function canBeOrdered(graph: readonly GraphNode[]): boolean {
  const placed = new Set<IssueId>();
  let before = -1;
  while (placed.size > before) {
    before = placed.size;
    for (const node of graph) if (node.dependsOn.every((other) => placed.has(other))) placed.add(node.id);
  }
  return placed.size === graph.length;
}

function reachable(graph: readonly GraphNode[]): ReadonlyMap<IssueId, ReadonlySet<IssueId>> {
  const reach = new Map(graph.map((node) => [node.id, new Set(node.dependsOn)]));
  for (let round = 0; round < graph.length; round += 1) {
    for (const set of reach.values())
      for (const middle of [...set]) for (const to of reach.get(middle) ?? []) set.add(to);
  }
  return reach;
}

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseSpecSlug, type SpecSlug } from '../../src/issue.js';
import { checkBacklog, orderBacklog, type BacklogNode } from '../../src/scheduler/backlog.js';

function slug(name: string): SpecSlug {
  const parsed = parseSpecSlug(name);
  if (parsed === undefined) throw new Error(name);
  return parsed;
}

const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map(slug);

/** Specs in an arbitrary order, some of them in circles unless each may only depend on those before it. */
const backlogs = (acyclic: boolean): fc.Arbitrary<readonly BacklogNode[]> =>
  fc
    .tuple(
      ...names.map((id, index) =>
        fc.record({
          id: fc.constant(id),
          dependsOn: fc.subarray(names.filter((other, at) => (acyclic ? at < index : other !== id))),
          value: fc.option(fc.integer({ min: -2, max: 2 })),
        }),
      ),
    )
    .chain((nodes) => fc.shuffledSubarray(nodes, { minLength: nodes.length }));

const worth = ({ value }: BacklogNode): number => value ?? -Infinity;

test('each Spec comes after those it depends on, and of what could come next the highest value, then the name', () => {
  fc.assert(
    fc.property(backlogs(true), (nodes) => {
      const order = orderBacklog(nodes);
      expect([...order].map(({ id }) => id).sort()).toEqual(names);
      const placed = new Set<SpecSlug>();
      for (const node of order) {
        const could = nodes.filter(({ id, dependsOn }) => !placed.has(id) && dependsOn.every((on) => placed.has(on)));
        expect(could.map(({ id }) => id)).toContain(node.id);
        const best = Math.max(...could.map(worth));
        expect(worth(node)).toBe(best);
        const equal = could.filter((other) => worth(other) === best).map(({ id }) => id);
        expect(node.id).toBe(equal.sort()[0]);
        placed.add(node.id);
      }
    }),
  );
});

test('what is accepted can be ordered, and what is not names a circle that is one', () => {
  fc.assert(
    fc.property(backlogs(false), (nodes) => {
      const problems = checkBacklog(nodes, new Set());
      if (problems.length === 0) {
        expect(orderBacklog(nodes)).toHaveLength(nodes.length);
        return;
      }
      expect(() => orderBacklog(nodes)).toThrow('circle');
      for (const problem of problems) {
        if (problem.kind !== 'cycle') throw new Error(problem.kind);
        expect(problem.path[0]).toBe(problem.path.at(-1));
        for (const [at, id] of problem.path.slice(0, -1).entries())
          expect(nodes.find((node) => node.id === id)?.dependsOn).toContain(problem.path[at + 1]);
      }
    }),
  );
});

test('a name that nobody has, and a Spec that depends on itself, are named', () => {
  const [a, b, c] = ['a', 'b', 'c'].map(slug);
  if (a === undefined || b === undefined || c === undefined) throw new Error('names');
  expect(checkBacklog([{ id: a, dependsOn: [a, b, c], value: null }], new Set([b]))).toEqual([
    { kind: 'self', spec: a },
    { kind: 'unknown', spec: a, on: c },
  ]);
});

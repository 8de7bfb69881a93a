import fc from 'fast-check';
import { parseIssueId } from '../../src/issue.js';
import type { IssueId } from '../../src/issue.js';

/** Makes an id of a text that is one. */
export function id(text: string): IssueId {
  const parsed = parseIssueId(text);
  if (parsed === undefined) throw new Error(`not an Issue id: ${text}`);
  return parsed;
}

/** `a` becomes `1-a`, `b` becomes `2-b`: short names for small graphs. */
export function letter(name: string): IssueId {
  return id(`${String(name.charCodeAt(0) - 96)}-${name}`);
}

/** Reads `b: a, c: a b` into nodes; what is only depended on becomes a node too unless `strict`. */
export function nodes(text: string): { readonly id: IssueId; readonly dependsOn: readonly IssueId[] }[] {
  return text.split(',').map((part) => {
    const [name = '', dependencies = ''] = part.trim().split(':');
    return { id: letter(name), dependsOn: dependencies.trim().split(' ').filter(Boolean).map(letter) };
  });
}

/** Any acyclic graph, whose numbers say nothing about its order. */
export function acyclic(
  maxSize: number,
): fc.Arbitrary<{ readonly id: IssueId; readonly dependsOn: readonly IssueId[] }[]> {
  return fc
    .integer({ min: 1, max: maxSize })
    .chain((size) =>
      fc.record({
        numbers: fc.shuffledSubarray(
          Array.from({ length: size }, (_, index) => index + 1),
          { minLength: size, maxLength: size },
        ),
        edges: fc.array(fc.tuple(fc.nat(size - 1), fc.nat(size - 1)), { maxLength: size * 2 }),
      }),
    )
    .map(({ numbers, edges }) => {
      const ids = numbers.map((number) => id(`${String(number)}-issue`));
      return ids.map((own, index) => ({
        id: own,
        dependsOn: [
          ...new Set(edges.filter(([from, to]) => to === index && from < to).flatMap(([from]) => ids[from] ?? [])),
        ],
      }));
    });
}

/** Any graph at all, self-dependencies and cycles included, on `size` Issues. */
export function anyGraph(
  maxSize: number,
): fc.Arbitrary<{ readonly id: IssueId; readonly dependsOn: readonly IssueId[] }[]> {
  return fc
    .integer({ min: 1, max: maxSize })
    .chain((size) => fc.array(fc.uniqueArray(fc.nat(size - 1), { maxLength: 2 }), { minLength: size, maxLength: size }))
    .map((edges) =>
      edges.map((targets, index) => ({
        id: id(`${String(index + 1)}-issue`),
        dependsOn: targets.map((target) => id(`${String(target + 1)}-issue`)),
      })),
    );
}

import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseOid } from '../../src/issue.js';
import type { TreeEntry, TreeTarget } from '../../src/worktree/git-types.js';
import { decodeTree, encodeTree, nameObject, treeMode } from '../../src/worktree/objects.js';
import { compareTrees, findEntry, foldersOf, sorted, spliceTree } from '../../src/worktree/tree-bytes.js';
import { makeRepository } from '../rig/repository.js';

const width = { sha1: 40, sha256: 64 } as const;

/** Names that lie around each other in git's order, a folder as if its name ended in `/`; one is no text. */
const name = fc.constantFrom('a', 'a-', 'a.b', 'a0', 'ab', 'b', 'ä', 'z z', 'f\udcff', '40000', '0'.repeat(30));

function targets(hash: 'sha1' | 'sha256'): fc.Arbitrary<TreeTarget> {
  return fc.record({
    mode: fc.constantFrom('100644', '100755', '120000', treeMode, '160000'),
    // Every byte may be in a name of an object, also those that end a mode or a name.
    oid: fc.constantFrom('20', '00', '2f', 'a1').map((byte) => parseOid(byte.repeat(width[hash] / 2))),
  });
}

function trees(hash: 'sha1' | 'sha256'): fc.Arbitrary<ReadonlyMap<string, TreeTarget>> {
  return fc.array(fc.tuple(name, targets(hash)), { maxLength: 9 }).map((entries) => new Map(entries));
}

function edits(hash: 'sha1' | 'sha256'): fc.Arbitrary<ReadonlyMap<string, TreeTarget | null>> {
  return fc.array(fc.tuple(name, fc.option(targets(hash))), { maxLength: 5 }).map((entries) => new Map(entries));
}

function entriesOf(tree: ReadonlyMap<string, TreeTarget>): readonly TreeEntry[] {
  return [...tree].map(([entry, target]) => ({ ...target, name: entry }));
}

describe.each(['sha1', 'sha256'] as const)('a tree edited as bytes (%s)', (hash) => {
  test('is the tree that the edited entries encode to', () => {
    fc.assert(
      fc.property(trees(hash), edits(hash), (tree, changes) => {
        const after = new Map(tree);
        for (const [entry, target] of changes) {
          if (target === null) after.delete(entry);
          else after.set(entry, target);
        }
        const spliced = spliceTree(encodeTree(entriesOf(tree)), hash, changes);
        expect(spliced.toString('latin1')).toBe(encodeTree(entriesOf(after)).toString('latin1'));
      }),
      { numRuns: 500 },
    );
  });

  test('has at each name what the decoded one has', () => {
    fc.assert(
      fc.property(trees(hash), name, (tree, looked) => {
        const bytes = encodeTree(entriesOf(tree));
        expect(findEntry(bytes, hash, looked)).toEqual(tree.get(looked) ?? null);
        expect(foldersOf(bytes, hash)).toEqual(decodeTree(bytes, hash).filter(({ mode }) => mode === treeMode));
      }),
    );
  });

  test('differs from another at the names where the entries differ', () => {
    fc.assert(
      fc.property(trees(hash), trees(hash), (was, is) => {
        const found = compareTrees(encodeTree(entriesOf(was)), encodeTree(entriesOf(is)), hash);
        const expected = [...new Set([...was.keys(), ...is.keys()])]
          .map((entry) => ({ name: entry, was: was.get(entry), is: is.get(entry) }))
          .filter((change) => change.was?.oid !== change.is?.oid || change.was?.mode !== change.is?.mode);
        const inOrder = (changes: typeof expected): typeof expected =>
          changes.toSorted((left, right) => (left.name < right.name ? -1 : 1));
        expect(inOrder([...found])).toEqual(inOrder(expected));
      }),
      { numRuns: 300 },
    );
  });

  test('of another tool that sorts otherwise is put in order first', () => {
    fc.assert(
      fc.property(trees(hash), fc.boolean(), (tree, backwards) => {
        const lines = entriesOf(tree).map((entry) => encodeTree([entry]));
        const bytes = Buffer.concat(backwards ? lines.toReversed() : lines);
        expect(sorted(bytes, hash).equals(encodeTree(entriesOf(tree)))).toBe(true);
      }),
    );
  });

  test('that is damaged is said to be so', () => {
    const bytes = encodeTree([{ mode: '100644', name: 'a', oid: parseOid('a1'.repeat(width[hash] / 2)) }]);
    for (let length = 1; length < bytes.length; length += 1)
      expect(() => sorted(bytes.subarray(0, length), hash)).toThrow('damaged tree object');
  });
});

test('edited trees have the names that git gives them', async () => {
  const repository = await makeRepository();
  const mktree = (entries: readonly TreeEntry[]): string => {
    const kind = { [treeMode]: 'tree', '160000': 'commit' } as Readonly<Record<string, string>>;
    const lines = entries.map((entry) => `${entry.mode} ${kind[entry.mode] ?? 'blob'} ${entry.oid}\t${entry.name}\0`);
    const args = ['-C', repository.path, 'mktree', '-z', '--missing'];
    return execFileSync('git', args, { input: lines.join(''), encoding: 'utf8' }).trim();
  };
  const text = fc.constantFrom('a', 'a-', 'a.b', 'a0', 'ab', 'b', 'ä', 'z z');
  const target = targets('sha1').filter(({ oid }) => !/^0+$/.test(oid));
  const tree = fc.array(fc.tuple(text, target), { maxLength: 6 });
  fc.assert(
    fc.property(tree, tree, (before, changes) => {
      const start = encodeTree(entriesOf(new Map(before)));
      const edited = spliceTree(start, 'sha1', new Map(changes));
      const after = entriesOf(new Map([...before, ...changes]));
      expect(nameObject('sha1', 'tree', edited)).toBe(mktree(after));
    }),
    { numRuns: 60 },
  );
});

import { expect, test } from 'vitest';
import { parseOid, type Oid } from '../../src/issue.js';
import type { TreeEntry } from '../../src/worktree/git-types.js';
import { namesOf } from '../../src/worktree/tree-names.js';

function oidOf(number: number): Oid {
  return parseOid(number.toString(16).padStart(40, 'a'));
}

/** Trees of a thousand files and one folder each, which notes what is asked. */
function thousands(): { readonly asked: Oid[]; readTree(tree: Oid): Promise<readonly TreeEntry[]> } {
  const asked: Oid[] = [];
  const files = Array.from({ length: 1_000 }, (_, at) => ({ mode: '100644', name: `f${String(at)}`, oid: oidOf(at) }));
  return {
    asked,
    readTree: (tree) => {
      asked.push(tree);
      return Promise.resolve([...files, { mode: '040000', name: 'd', oid: tree }]);
    },
  };
}

test('what a tree holds is told from its folders, and read once while it is among the last', async () => {
  const git = thousands();
  const tree = oidOf(1_000_001);
  const found = await namesOf(git, tree);
  expect(found.folders).toEqual(new Map([['d', tree]]));
  expect([found.others.size, found.others.has('f7'), found.others.has('d')]).toEqual([1_000, true, false]);
  expect(await namesOf(git, tree)).toBe(found);
  expect(git.asked).toEqual([tree]);
});

test('of a large tree not everything is kept: what was asked for longest ago is read again', async () => {
  const git = thousands();
  const trees = Array.from({ length: 20 }, (_, at) => oidOf(2_000_000 + at));
  for (const tree of trees) await namesOf(git, tree);
  for (const tree of [...trees].reverse()) await namesOf(git, tree);
  expect(git.asked.slice(0, 20)).toEqual(trees);
  expect(git.asked.slice(20).length).toBeGreaterThan(0);
  expect(git.asked.slice(20)).toEqual([...trees].reverse().slice(16));
});

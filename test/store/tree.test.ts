import { expect, test } from 'vitest';
import { codeTree, joinTree, specsTree, withFiles } from '../../src/store/tree.js';
import { makeRepository, openRepository, treeOf } from '../rig/repository.js';

test('a tree is its code and its docs/specs, and nothing else of docs goes with them', async () => {
  const git = await openRepository(await makeRepository());
  const files = { 'a.txt': 'a', 'docs/guide.md': 'g', 'docs/specs/s1/SPEC.md': 's' };
  const tree = await treeOf(git, files);
  const code = await codeTree(git, tree);
  expect((await git.listTree(code)).map((file) => file.path)).toEqual(['a.txt', 'docs/guide.md']);
  expect(await codeTree(git, code)).toBe(code);
  expect(await joinTree(git, code, await specsTree(git, tree))).toBe(tree);
  expect(await joinTree(git, tree, null)).toBe(code);
  expect(await specsTree(git, code)).toBeNull();
});

test('a file named docs/specs is no folder of Specs', async () => {
  const git = await openRepository(await makeRepository());
  const tree = await treeOf(git, { 'docs/specs': 'a file' });
  expect(await specsTree(git, tree)).toBeNull();
});

test('files are written, replaced and removed, and empty folders vanish', async () => {
  const git = await openRepository(await makeRepository());
  const tree = await treeOf(git, { 'docs/specs/s1/SPEC.md': 's', 'a.txt': 'a' });
  const changed = await withFiles(
    git,
    tree,
    new Map([
      ['docs/specs/s1/SPEC.md', null],
      ['b/c.txt', Buffer.from('c')],
    ]),
  );
  expect((await git.listTree(changed)).map((file) => file.path)).toEqual(['a.txt', 'b/c.txt']);
});

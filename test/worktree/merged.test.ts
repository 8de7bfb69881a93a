import { beforeEach, describe, expect, test } from 'vitest';
import { parseOid, type Oid } from '../../src/issue.js';
import type { StandsOn } from '../../src/worktree/admin.js';
import type { Git } from '../../src/worktree/git-types.js';
import { mergedThere } from '../../src/worktree/merged.js';
import { commitOf, makeRepository, openRepository, treeOf } from '../rig/repository.js';

describe('what a person merged in a worktree', () => {
  let git: Git;
  let base: Oid;
  let landed: Oid;
  let own: Oid;
  let ownCommit: Oid;
  const before = { 'line.txt': 'base', 'other.txt': 'base' };

  beforeEach(async () => {
    const repository = await makeRepository();
    git = await openRepository(repository);
    base = await commitOf(git, before);
    landed = await commitOf(git, { 'line.txt': 'theirs', 'other.txt': 'theirs' }, base);
    ownCommit = await commitOf(git, { ...before, 'line.txt': 'mine' }, base);
    own = (await git.readCommit(ownCommit)).tree;
  });

  async function merged(stands: StandsOn, files: Readonly<Record<string, string>>): Promise<Oid | null> {
    const codeOf = async (commit: Oid): Promise<Oid> => (await git.readCommit(commit)).tree;
    return mergedThere(git, { stands, base, tip: landed, own, code: await treeOf(git, files), codeOf });
  }

  test('is what its newest commit merged', async () => {
    const files = { 'line.txt': 'mine', 'other.txt': 'theirs' };
    const merge = await commitOf(git, files, ownCommit, landed);
    // One side was taken whole: that is a person's word, since the commit is exactly these files.
    expect(await merged({ head: merge, merging: [] }, files)).toBe(landed);
  });

  test('is what a merge that goes on takes in', async () => {
    const stands = { head: ownCommit, merging: [landed] };
    expect(await merged(stands, { 'line.txt': 'both', 'other.txt': 'theirs' })).toBe(landed);
  });

  test('is nothing when there is none', async () => {
    expect(await merged({ head: ownCommit, merging: [] }, { ...before, 'line.txt': 'more' })).toBeNull();
    expect(await merged({ head: null, merging: [] }, before)).toBeNull();
  });

  test.each([
    ['as the branch has it', { 'line.txt': 'mine', 'other.txt': 'theirs' }],
    ['as it was before it landed', { 'line.txt': 'both', 'other.txt': 'base' }],
  ])('is nothing when HEAD was moved and a file that landed is %s', async (_how, files) => {
    expect(await merged({ head: landed, merging: [] }, files)).toBeNull();
    expect(await merged({ head: ownCommit, merging: [landed] }, files)).toBeNull();
  });

  test('is nothing that is not on the integration branch, or nowhere', async () => {
    const files = { 'line.txt': 'far', 'other.txt': 'far' };
    const elsewhere = await commitOf(git, files, base);
    expect(await merged({ head: ownCommit, merging: [elsewhere] }, files)).toBeNull();
    expect(await merged({ head: ownCommit, merging: [parseOid('1'.repeat(40))] }, files)).toBeNull();
  });
});

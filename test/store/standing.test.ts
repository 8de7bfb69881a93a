import { describe, expect, test } from 'vitest';
import type { Oid } from '../../src/issue.js';
import { forksOf } from '../../src/store/standing.js';
import { integrationRef, issueRef } from '../../src/store/refs.js';
import { issueId, issueText, makeSpec, spec, specFiles, type SpecRig } from './rig.js';

const ids = ['01-first', '02-merged', '03-conflict', '04-landed', '05-by-hand', '06-both'];

/** One branch of each kind: begun, brought onto a newer tip, resolving, contained, with a person's commits and merges. */
async function branchesOfAllKinds(): Promise<{ readonly rig: SpecRig; readonly branches: ReadonlyMap<string, Oid> }> {
  const rig = await makeSpec({ files: specFiles(Object.fromEntries(ids.map((id) => [id, issueText()]))) });
  const begin = async (id: string): Promise<Oid> => (await (await rig.journal(id)).recordAttempt('claude')).commit;
  for (const id of ids) await begin(id);
  await rig.commitOn(issueRef(spec, issueId('05-by-hand')), { 'mine.txt': 'mine\n' });
  await rig.land({ 'landed.txt': 'one\n' });
  const merged = await rig.journal('02-merged');
  await merged.bringOnto(await rig.tip());
  await merged.recordAttempt('claude');
  const { git, clock } = rig;
  const merge = async (ref: string, other: Oid): Promise<void> => {
    const mine = await git.readRef(ref);
    if (mine === null) throw new Error(ref);
    const { tree } = await git.readCommit(mine);
    const commit = await git.writeCommit({ tree, parents: [mine, other], message: 'merge', at: clock.now() });
    expect((await git.moveRef(ref, commit, mine)).ok).toBe(true);
  };
  await merge(issueRef(spec, issueId('06-both')), await rig.tip());
  const landed = await rig.branch('04-landed');
  if (landed !== null) await merge(integrationRef(spec), landed);
  await rig.land({ 'later.txt': 'two\n' });
  const found = await Promise.all(ids.map(async (id): Promise<[string, Oid | null]> => [id, await rig.branch(id)]));
  return { rig, branches: new Map(found.filter((entry): entry is [string, Oid] => entry[1] !== null)) };
}

describe('where branches leave the integration branch', () => {
  test('is told for all at once as git tells it for each', async () => {
    const { rig, branches } = await branchesOfAllKinds();
    const { git } = rig;
    const tip = await rig.tip();
    const before = git.processes();
    const forks = await forksOf(git, [...branches.values()], tip);
    expect(git.processes() - before).toBe(1);
    expect(forks.size).toBe(ids.length);
    const unclear: string[] = [];
    for (const [id, branch] of branches) {
      const fork = forks.get(branch);
      expect([id, fork?.contained]).toEqual([id, await git.isAncestor(branch, tip)]);
      if (fork?.base === null) unclear.push(id);
      else expect([id, fork?.base]).toEqual([id, await git.mergeBase(branch, tip)]);
    }
    // What a person merged is left to git.
    expect(unclear).toEqual(['06-both']);
  });

  test('is left to git for each when one of them does not exist', async () => {
    const { rig, branches } = await branchesOfAllKinds();
    const nowhere = 'a'.repeat(40) as Oid;
    expect(await forksOf(rig.git, [...branches.values(), nowhere], await rig.tip())).toEqual(new Map());
    expect(await forksOf(rig.git, [], await rig.tip())).toEqual(new Map());
  });
});

import { expect, test } from 'vitest';
import { parseOid } from '../../src/issue.js';
import { notesRef, readNote, writeNotes } from '../../src/store/notes.js';
import { makeSpec } from './rig.js';

test('git reads the notes that giro writes, and giro those that git wrote; a note that is there stays', async () => {
  const { repository, git } = await makeSpec();
  const first = parseOid(await repository.head());
  await repository.write('b.txt', 'b\n');
  await repository.commit('second');
  const second = parseOid(await repository.head());
  await repository.git('notes', '--ref=giro', 'add', '-m', 'by hand', second);

  const written = await writeNotes(
    git,
    new Map([
      [first, () => 'a proof\n'],
      [second, () => 'another\n'],
    ]),
    1_700_000_000_000,
  );

  expect(written).toEqual({ ok: true, value: 1 });
  expect(await repository.git('notes', '--ref=giro', 'show', first)).toBe('a proof');
  expect(await readNote(git, first)).toBe('a proof\n');
  expect(await readNote(git, second)).toBe('by hand\n');
  const before = await repository.git('rev-parse', notesRef);
  expect(await writeNotes(git, new Map([[first, () => 'a proof\n']]), 1_700_000_000_000)).toEqual({
    ok: true,
    value: 0,
  });
  expect(await repository.git('rev-parse', notesRef)).toBe(before);
});

test('notes below folders are found, as git keeps them when there are many', async () => {
  const { repository, git } = await makeSpec();
  const head = parseOid(await repository.head());
  const blob = await git.writeBlob('deep\n');
  const path = `${head.slice(0, 2)}/${head.slice(2, 4)}/${head.slice(4)}`;
  const tree = await git.editTree(git.emptyTree, new Map([[path, { mode: '100644', oid: blob }]]));
  const commit = await git.writeCommit({ tree, parents: [], message: 'notes\n', at: 1_700_000_000_000 });
  await git.moveRef(notesRef, commit, null);
  expect(await readNote(git, head)).toBe('deep\n');
});

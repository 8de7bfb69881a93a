import { expect, test } from 'vitest';
import { crashText } from '../../src/cli/crash-text.js';
import { parseIssueId, parseOid, parseSpecSlug } from '../../src/issue.js';
import { GitError } from '../../src/worktree/git-types.js';
import { saveCommit } from '../../src/worktree/salvage.js';

test('work that could not be saved is no bug: what keeps it from being saved, and how to go on', async () => {
  const [spec, issue] = [parseSpecSlug('s1'), parseIssueId('01-a')];
  if (spec === undefined || issue === undefined) throw new Error('not names');
  const refusing = {
    listRefs: () => Promise.resolve(new Map()),
    moveRef: (ref: string) =>
      Promise.resolve({ ok: false, failure: { kind: 'ref-refused', ref, message: 'it is locked' } } as const),
  };
  const thrown: unknown = await saveCommit(refusing, { spec, issue }, parseOid('a'.repeat(40))).catch(
    (error: unknown) => error,
  );
  expect(crashText(thrown)).toBe(
    'giro: cannot save work as refs/giro/salvage/s1/01-a/1: it is locked\n  nothing was removed; when that is mended, the same command goes on',
  );
  expect(crashText(new Error('x'))).toContain('this is a bug of giro');
});

test.each([
  [Object.assign(new Error("ENOSPC: no space left on device, write '/x'"), { code: 'ENOSPC' }), 'the disk is full'],
  [
    new Error('not stored', { cause: Object.assign(new Error('EROFS'), { code: 'EROFS' }) }),
    'the file system is read-only',
  ],
  [new GitError(['add'], 128, 'error: x\nfatal: write error: No space left on device'), 'the disk is full'],
  [Object.assign(new Error('spawn EMFILE'), { code: 'EMFILE' }), 'too many open files'],
])('trouble of the machine is no bug: %s', (error, what) => {
  const text = crashText(error);
  expect(text).toContain(`giro: ${what}: `);
  expect(text).toContain('then run the same command again; what was recorded is kept');
  expect(text).not.toContain('bug');
});

test('words in the name of a file are no trouble', () => {
  expect(crashText(new GitError(['add'], 128, "fatal: cannot add 'No space left on device' twice"))).toContain('bug');
});

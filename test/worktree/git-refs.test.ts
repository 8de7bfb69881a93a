import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { ok } from '../../src/failure.js';
import { parseOid, type Oid } from '../../src/issue.js';
import type { Conversation } from '../../src/platform/plumbing.js';
import type { WhileAlone } from '../../src/platform/short-lock.js';
import { ProcessRefs, RefMover } from '../../src/worktree/git-refs.js';
import type { Git } from '../../src/worktree/git-types.js';
import { commitOf, makeRepository, openRepository } from '../rig/repository.js';

const exec = promisify(execFile);
const done = { ok: true, value: undefined };
const branch = 'refs/heads/giro/s1';

async function twoCommits(git: Git): Promise<readonly [Oid, Oid]> {
  return [await commitOf(git, { a: '1' }), await commitOf(git, { a: '2' })];
}

/** Ends the git of this process that runs a command, as a full memory would. */
async function endGit(command: string): Promise<void> {
  const { stdout } = await exec('pgrep', ['-P', String(process.pid), '-f', `git.* ${command}`]);
  for (const pid of stdout.trim().split('\n').map(Number)) process.kill(pid, 'SIGKILL');
}

describe('moving a ref', () => {
  test('makes, moves and removes it, each time only from the value its caller knows', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const [one, two] = await twoCommits(git);
    expect(await git.moveRef(branch, one, null)).toEqual(done);
    expect(await git.moveRef(branch, two, one)).toEqual(done);
    expect(await git.moveRef(branch, one, one)).toEqual({
      ok: false,
      failure: { kind: 'ref-moved', ref: branch, expected: one, actual: two },
    });
    expect(await git.moveRef(branch, one, null)).toMatchObject({
      failure: { kind: 'ref-moved', expected: null, actual: two },
    });
    expect(await git.moveRef(branch, null, one)).toMatchObject({ failure: { kind: 'ref-moved', actual: two } });
    expect(await repository.git('rev-parse', branch)).toBe(two);
    expect(await git.moveRef(branch, null, two)).toEqual(done);
    expect(await git.readRef(branch)).toBeNull();
    expect(await git.moveRef(branch, null, null)).toEqual(done);
    expect(await git.moveRef(branch, one, two)).toMatchObject({ failure: { kind: 'ref-moved', actual: null } });
  });

  test('has one winner among many at once', async () => {
    const git = await openRepository(await makeRepository());
    const commits = await Promise.all(Array.from({ length: 20 }, (_, at) => commitOf(git, { a: String(at) })));
    const results = await Promise.all(commits.map((commit) => git.moveRef(branch, commit, null)));
    expect(results.filter((result) => result.ok)).toHaveLength(1);
    expect(await git.readRef(branch)).toBe(commits[results.findIndex((result) => result.ok)]);
  });

  test('has one winner among many processes at once', async () => {
    const repository = await makeRepository();
    const engines = await Promise.all(Array.from({ length: 4 }, () => openRepository(repository)));
    const results = await Promise.all(
      engines.map(async (git, at) => git.moveRef(branch, await commitOf(git, { a: String(at) }), null)),
    );
    expect(results.filter((result) => result.ok)).toHaveLength(1);
    expect(results.filter((result) => !result.ok && result.failure.kind === 'ref-moved')).toHaveLength(3);
  });

  test.each([
    'refs/heads/main',
    'refs/heads/giro',
    'refs/heads/girox/s1',
    'refs/tags/giro/s1',
    'refs/heads/giro/../main',
    'refs/heads/giro//s1',
    'refs/heads/giro/s1.lock',
    'refs/heads/giro/.s1',
    'refs/heads/giro/s1\nupdate refs/heads/main',
    'refs/heads/giro/s 1',
    'giro/s1',
    'HEAD',
  ])('of anybody else is a bug and changes nothing: %j', async (ref) => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const before = await repository.fingerprint();
    await expect(git.moveRef(ref, await commitOf(git, { a: '1' }), null)).rejects.toThrow(/not a (full )?ref/);
    expect(await repository.fingerprint()).toBe(before);
  });

  test('never goes through a symbolic ref to another branch', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const head = git.user.head;
    await repository.git('symbolic-ref', branch, 'refs/heads/main');
    expect(await git.moveRef(branch, await commitOf(git, { a: '1' }), head)).toMatchObject({
      failure: { kind: 'ref-refused', message: expect.stringContaining('symbolic ref to refs/heads/main') as unknown },
    });
    expect(await git.readRef(branch)).toBeNull();
    expect(await git.readRef('refs/heads/main')).toBe(head);
  });

  test('that a file of the same name forbids is refused in words of git, both ways round (C019)', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const [one] = await twoCommits(git);
    await repository.git('branch', 'giro');
    expect(await git.moveRef(branch, one, null)).toMatchObject({
      failure: { kind: 'ref-refused', message: expect.stringContaining("'refs/heads/giro' exists") as unknown },
    });
    await repository.git('branch', '-D', 'giro');
    await repository.git('branch', 'giro/s1/old');
    expect(await git.moveRef(branch, one, null)).toMatchObject({
      failure: { kind: 'ref-refused', message: expect.stringContaining('refs/heads/giro/s1/old') as unknown },
    });
    expect(await git.moveRef('refs/heads/giro/s2', one, null)).toEqual(done);
  });

  test('whose lock is held is refused with the name of the lock, and works again without it (C064)', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const [one] = await twoCommits(git);
    const lock = join(repository.path, '.git', `${branch}.lock`);
    await mkdir(dirname(lock), { recursive: true });
    await writeFile(lock, '');
    expect(await git.moveRef(branch, one, null)).toMatchObject({
      failure: { kind: 'ref-refused', ref: branch, message: expect.stringContaining(lock) as unknown },
    });
    expect(await git.readRef(branch)).toBeNull();
    expect((await git.listRefs('refs/heads/giro/')).size).toBe(0);
    await rm(lock);
    expect(await git.moveRef(branch, one, null)).toEqual(done);
  });

  test('to a commit that does not exist is refused', async () => {
    const git = await openRepository(await makeRepository());
    const absent = parseOid('1'.repeat(40));
    expect(await git.moveRef(branch, absent, null)).toMatchObject({ failure: { kind: 'ref-refused' } });
  });

  test('works after its git was ended from outside', async () => {
    const git = await openRepository(await makeRepository());
    const [one, two] = await twoCommits(git);
    expect(await git.moveRef(branch, one, null)).toEqual(done);
    await endGit('update-ref');
    expect(await git.moveRef(branch, two, one)).toEqual(done);
    expect(await git.readRef(branch)).toBe(two);
  });
});

test('a move that git confirmed is done, even when somebody moves the ref on in the next moment', async () => {
  const [one, two, three] = ['1', '2', '3'].map((digit) => parseOid(digit.repeat(40))) as [Oid, Oid, Oid];
  const answers = ['start: ok', 'prepare: ok', 'commit: ok'];
  const written: string[] = [];
  const conversation: Conversation = {
    write: (data) => void written.push(String(data)),
    readLine: () => Promise.resolve(answers.shift() ?? null),
    readBytes: () => Promise.reject(new Error('not asked')),
    readUntil: () => Promise.reject(new Error('not asked')),
    close: () => Promise.resolve(),
    stderrTail: () => '',
  };
  const read = () => Promise.resolve({ oid: written.length === 0 ? one : three });
  const alone: WhileAlone = async (work) => ok(await work());
  const mover = new RefMover(() => Promise.resolve(conversation), read, alone);
  expect(await mover.move(branch, two, one)).toEqual(done);
  expect(written).toEqual([`start\noption no-deref\nupdate ${branch} ${two} ${one}\nprepare\ncommit\n`]);
});

describe('reading refs', () => {
  test('finds them loose, packed, and both', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const [one, two] = await twoCommits(git);
    await git.moveRef(branch, one, null);
    await git.moveRef('refs/heads/giro/s2', one, null);
    await repository.git('pack-refs', '--all');
    expect(await git.readRef(branch)).toBe(one);
    await git.moveRef(branch, two, one);
    expect([...(await git.listRefs('refs/heads/giro/'))]).toEqual([
      [branch, two],
      ['refs/heads/giro/s2', one],
    ]);
    await repository.git('pack-refs', '--all');
    expect(await git.readRef(branch)).toBe(two);
    expect(await git.moveRef('refs/heads/giro/s2', null, one)).toEqual(done);
    expect([...(await git.listRefs('refs/heads/giro'))]).toEqual([[branch, two]]);
    expect(await git.readRef('refs/heads/giro')).toBeNull();
    expect([...(await git.listRefs('refs/heads/nothing/'))]).toEqual([]);
  });

  test('does not take a folder, a lock or a longer name for a ref below a prefix', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    await repository.git('branch', 'giro-issue/s1/01-a');
    await repository.git('branch', 'giro-issue/s10/01-a');
    for (const storage of ['loose', 'packed']) {
      if (storage === 'packed') await repository.git('pack-refs', '--all');
      expect([...(await git.listRefs('refs/heads/giro-issue/s1/')).keys()]).toEqual(['refs/heads/giro-issue/s1/01-a']);
    }
  });

  test('says of a damaged ref which file it is', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const path = join(repository.path, '.git', branch);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, '');
    await expect(git.readRef(branch)).rejects.toThrow(path);
  });

  test('through a process gives the same, whatever the storage of refs is', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    await git.moveRef(branch, git.user.head, null);
    await repository.git('symbolic-ref', 'refs/heads/giro/link', 'refs/heads/main');
    const refs = new ProcessRefs(async ({ args }) => {
      return { code: 0, stdout: Buffer.from(await repository.git(...args)), stderr: '' };
    });
    expect(await refs.list('refs/heads/giro/')).toEqual(await git.listRefs('refs/heads/giro/'));
    expect(await refs.read(branch)).toEqual({ oid: git.user.head });
    expect(await refs.read('refs/heads/giro/link')).toEqual({ symbolic: 'refs/heads/main' });
    expect(await refs.read('refs/heads/giro')).toBeNull();
  });
});

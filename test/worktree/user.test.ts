import { chmod, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { commitOf, makeRepository, openRepository } from '../rig/repository.js';

describe('what the person has not committed', () => {
  test('is everything that differs: staged, edited, removed, renamed, new, in a new folder', async () => {
    const repository = await makeRepository({ files: { a: 'a', b: 'b', c: 'c', 'ü x': 'u', '.gitignore': '*.log\n' } });
    const git = await openRepository(repository);
    expect(await git.user.uncommitted()).toEqual([]);
    await repository.write('a', 'edited');
    await repository.write('staged', 's');
    await repository.git('add', 'staged');
    await rm(join(repository.path, 'b'));
    await repository.git('mv', 'c', 'd');
    await chmod(join(repository.path, 'ü x'), 0o755);
    await repository.write('new folder/x', 'x');
    await repository.write('new folder/y.log', 'ignored');
    const before = await repository.fingerprint();
    expect(await git.user.uncommitted()).toEqual(['a', 'b', 'c', 'd', 'new folder/x', 'staged', 'ü x']);
    expect(await repository.fingerprint()).toBe(before);
  });

  test('is told whatever the config hides', async () => {
    const repository = await makeRepository();
    await repository.git('config', 'status.showUntrackedFiles', 'no');
    await repository.git('config', 'status.relativePaths', 'true');
    await repository.write('new', 'x');
    expect(await (await openRepository(repository)).user.uncommitted()).toEqual(['new']);
  });

  test('does not count what the checkout is set up not to tell apart', async () => {
    const repository = await makeRepository({ files: { a: 'a' } });
    await repository.git('config', 'core.fileMode', 'false');
    await chmod(join(repository.path, 'a'), 0o755);
    expect(await (await openRepository(repository)).user.uncommitted()).toEqual([]);
  });

  test('is seen in the same second with the same size, and not for a file only touched', async () => {
    const repository = await makeRepository({ files: { a: '1', b: 'b' } });
    const git = await openRepository(repository);
    await repository.write('a', '2');
    await repository.write('b', 'b');
    expect(await git.user.uncommitted()).toEqual(['a']);
  });

  test('is compared with the commit the person is on now', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    await repository.write('a', 'a');
    expect(await git.user.uncommitted()).toEqual(['a']);
    await repository.commit('a');
    expect(await git.user.uncommitted()).toEqual([]);
  });

  test('of a linked worktree is that of this worktree; of a bare repository there is none', async () => {
    const repository = await makeRepository();
    const linked = join(repository.folder, 'linked');
    await repository.git('worktree', 'add', '-q', '-b', 'other', linked);
    await repository.write('in-main', 'x');
    await writeFile(join(linked, 'in-linked'), 'x');
    expect(await (await openRepository(repository, linked)).user.uncommitted()).toEqual(['in-linked']);
    const bare = join(repository.folder, 'bare.git');
    await repository.git('clone', '-q', '--bare', repository.path, bare);
    expect(await (await openRepository(repository, bare)).user.uncommitted()).toEqual([]);
  });

  test('is found with a split index too', async () => {
    const repository = await makeRepository({ files: { a: 'a' } });
    await repository.git('update-index', '--split-index');
    await repository.write('a', 'edited');
    expect(await (await openRepository(repository)).user.uncommitted()).toEqual(['a']);
  });
});

describe('where the checkouts of a repository are', () => {
  test('is read from its files: the main one first, then linked ones with branch and commit', async () => {
    const repository = await makeRepository();
    const head = await repository.head();
    const [linked, detached] = ['linked', 'detached'].map((name) => join(repository.folder, name)) as [string, string];
    await repository.git('worktree', 'add', '-q', '-b', 'other', linked);
    await repository.git('worktree', 'add', '-q', '--detach', detached);
    const git = await openRepository(repository, linked);
    const started = git.processes();
    expect(await git.user.headsOfWorktrees()).toEqual([
      { path: repository.path, ref: 'refs/heads/main', head },
      { path: detached, ref: null, head },
      { path: linked, ref: 'refs/heads/other', head },
    ]);
    expect(git.processes()).toBe(started);
  });

  test('has a branch without a commit, and packed branches', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    await repository.git('pack-refs', '--all');
    expect(await git.user.headsOfWorktrees()).toMatchObject([{ ref: 'refs/heads/main', head: git.user.head }]);
    await repository.git('symbolic-ref', 'HEAD', 'refs/heads/unborn');
    expect(await git.user.headsOfWorktrees()).toMatchObject([{ ref: 'refs/heads/unborn', head: null }]);
  });
});

test('what landed on a ref is drawn for a person, with the names of branches', async () => {
  const repository = await makeRepository();
  const git = await openRepository(repository);
  const side = await commitOf(git, { a: '1' }, git.user.head);
  const merge = await git.writeCommit({
    tree: git.emptyTree,
    parents: [git.user.head, side],
    message: 'joined',
    at: 0,
  });
  await git.moveRef('refs/heads/giro/s1', merge, null);
  const drawn = (await git.user.logGraph('refs/heads/giro/s1')).replace(/[0-9a-f]{7,}/g, '0000000');
  expect(drawn).toBe('* 0000000 (giro/s1) joined\n* 0000000 (HEAD -> main) start\n');
  expect(await git.user.logGraph('refs/heads/giro/absent')).toBe('');
});

test('the version of git is the one giro runs', async () => {
  const git = await openRepository(await makeRepository());
  expect(await git.user.gitVersion()).toBe(git.version);
});

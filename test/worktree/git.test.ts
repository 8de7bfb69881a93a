import { chmod, chown, mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Failure, Result } from '../../src/failure.js';
import { gitCandidates, isNewEnough, parseVersion } from '../../src/worktree/git-environment.js';
import { createRepository, describeRepository, openGit } from '../../src/worktree/git.js';
import type { OpenedGit } from '../../src/worktree/git-types.js';
import { makeRepository, openRepository, type TestRepository } from '../rig/repository.js';

function tryOpen(repository: TestRepository, folder: string): Promise<Result<OpenedGit>> {
  return openGit({ folder, own: repository.own, runFolder: null });
}

async function failureOf(repository: TestRepository, folder: string): Promise<Failure> {
  const opened = await tryOpen(repository, folder);
  if (opened.ok) throw new Error('opened');
  return opened.failure;
}

describe('opening', () => {
  test('a folder that is a file, or is not there, is refused', async () => {
    const repository = await makeRepository({ files: { 'a.txt': 'a' } });
    const at = (name: string): string => join(repository.path, name);
    expect(await failureOf(repository, at('a.txt'))).toMatchObject({ message: `${at('a.txt')} is not a folder` });
    expect(await failureOf(repository, at('b.txt'))).toMatchObject({ message: `${at('b.txt')} does not exist` });
    const described = await describeRepository({ folder: at('b.txt'), own: repository.own });
    expect(described).toMatchObject({ failure: { message: `${at('b.txt')} does not exist` } });
  });

  test('from a folder deep inside finds the top level, the branch and the commit', async () => {
    const repository = await makeRepository({ files: { 'a/b/c.txt': 'c' }, branch: 'feature/x' });
    const git = await openRepository(repository, join(repository.path, 'a', 'b'));
    expect(git.user).toMatchObject({ topLevel: repository.path, branch: 'feature/x', head: await repository.head() });
    expect(git).toMatchObject({ commonDir: join(repository.path, '.git'), hash: 'sha1' });
    expect(git.version).toMatch(/^\d+\.\d+/);
  });

  test('through a symbolic link names the real folders (C024)', async () => {
    const repository = await makeRepository();
    const link = join(repository.folder, 'link');
    await symlink(repository.path, link);
    expect((await openRepository(repository, link)).user.topLevel).toBe(repository.path);
  });

  test('in a linked worktree is on its branch, with the refs of the whole repository', async () => {
    const repository = await makeRepository();
    const linked = join(repository.folder, 'linked');
    await repository.git('worktree', 'add', '-q', '-b', 'other', linked);
    const git = await openRepository(repository, linked);
    expect(git.user).toMatchObject({ topLevel: linked, branch: 'other' });
    expect(git.commonDir).toBe(join(repository.path, '.git'));
    expect(await git.readRef('refs/heads/main')).toBe(await repository.head());
  });

  test('on a detached HEAD has no branch', async () => {
    const repository = await makeRepository();
    await repository.git('checkout', '-q', '--detach');
    expect((await openRepository(repository)).user).toMatchObject({ branch: null, head: await repository.head() });
  });

  test('of a bare repository works, without a top level', async () => {
    const repository = await makeRepository();
    const bare = join(repository.folder, 'bare.git');
    await repository.git('clone', '-q', '--bare', repository.path, bare);
    expect((await openRepository(repository, bare)).user).toMatchObject({ topLevel: null, branch: 'main' });
  });

  test('is not led away by GIT_DIR and the like in its own environment (C078)', async () => {
    const repository = await makeRepository();
    const other = await makeRepository({ files: { other: 'other' } });
    const hostile = {
      GIT_DIR: join(other.path, '.git'),
      GIT_WORK_TREE: other.path,
      GIT_INDEX_FILE: '/x',
      GIT_CEILING_DIRECTORIES: '/',
    };
    const opened = await openGit({ folder: repository.path, own: { ...repository.own, ...hostile }, runFolder: null });
    expect(opened).toMatchObject({ ok: true, value: { user: { topLevel: repository.path } } });
  });

  test('for reading only starts one process, and leaves nothing behind', async () => {
    const repository = await makeRepository();
    const opened = await tryOpen(repository, repository.path);
    if (!opened.ok) throw new Error('not opened');
    expect(opened.value.processes()).toBe(1);
    await opened.value.readRef('refs/heads/main');
    await opened.value.listRefs('refs/heads/');
    expect(opened.value.processes()).toBe(1);
    await opened.value.readCommit(opened.value.user.head);
    expect(opened.value.processes()).toBe(2);
    await opened.value.close();
    expect((await readdir(repository.folder)).sort()).toEqual(['home', 'repo']);
  });
});

describe('what keeps giro from opening a repository is said with its fix', () => {
  test('no repository', async () => {
    const repository = await makeRepository();
    expect(await failureOf(repository, repository.home)).toMatchObject({
      kind: 'environment',
      message: `${repository.home} is not in a git repository`,
      hint: expect.stringContaining('git init') as unknown,
    });
  });

  test('no such folder', async () => {
    const repository = await makeRepository();
    expect(await failureOf(repository, join(repository.path, 'absent'))).toMatchObject({ kind: 'environment' });
  });

  test('no commit yet', async () => {
    const repository = await makeRepository({ files: null });
    expect(await failureOf(repository, repository.path)).toMatchObject({
      message: 'this repository has no commit yet',
      hint: expect.stringContaining('git commit') as unknown,
    });
  });

  test("git's own folder", async () => {
    const repository = await makeRepository();
    expect(await failureOf(repository, join(repository.path, '.git', 'info'))).toMatchObject({
      message: expect.stringContaining("inside git's own folder") as unknown,
    });
  });

  test('a config git cannot read', async () => {
    const repository = await makeRepository();
    await writeFile(join(repository.path, '.git', 'config'), '[core\n');
    expect(await failureOf(repository, repository.path)).toMatchObject({
      message: expect.stringContaining('bad config line 1') as unknown,
    });
  });

  test('a repository of another user, until the person trusts it', async () => {
    const repository = await makeRepository();
    // Only root can give folders away; for anybody else the repository stays trusted.
    const isRoot = process.getuid?.() === 0;
    if (isRoot) for (const folder of ['', '.git']) await chown(join(repository.path, folder), 4711, 4711);
    const opened = await tryOpen(repository, repository.path);
    expect(opened.ok).toBe(!isRoot);
    if (!opened.ok) {
      expect(opened.failure).toMatchObject({
        message: `the repository ${repository.path} belongs to another user, so git does not read it`,
        hint: expect.stringContaining(`safe.directory '${repository.path}'`) as unknown,
      });
    }
    await writeFile(join(repository.home, '.gitconfig'), `[safe]\n\tdirectory = ${repository.path}\n`);
    const git = await openRepository(repository);
    expect(await git.moveRef('refs/heads/giro/s', git.user.head, null)).toEqual({ ok: true, value: undefined });
    expect(await git.readCommit(git.user.head)).toMatchObject({ message: 'start\n' });
    expect(await git.user.uncommitted()).toEqual([]);
  });
});

describe('finding git', () => {
  test('looks on a fixed path first and never inside the repository', () => {
    const path = '/repo/node_modules/.bin:bin::/opt/tools/bin';
    expect(gitCandidates(path, (folder) => !folder.startsWith('/repo'))).toEqual([
      '/usr/bin/git',
      '/bin/git',
      '/usr/local/bin/git',
      '/opt/homebrew/bin/git',
      '/opt/tools/bin/git',
    ]);
  });

  test.each([
    ['git version 2.39.5 (Apple Git-154)', '2.39.5', true],
    ['git version 2.38.0', '2.38.0', true],
    ['git version 2.38', '2.38', true],
    ['git version 2.37.9', '2.37.9', false],
    ['git version 1.99', '1.99', false],
    ['git version 3.0.0.rc1', '3.0.0', true],
    ['nonsense', '0', false],
  ])('reads %j as %s: %s', (text, version, enough) => {
    expect(parseVersion(text)).toBe(version);
    expect(isNewEnough(version)).toBe(enough);
  });
});

test('a run folder may be used again, and a repository that moved away is no reason to crash', async () => {
  const repository = await makeRepository();
  const first = await openRepository(repository);
  await first.readCommit(first.user.head);
  const second = await openRepository(repository);
  expect(await second.listTree(second.user.head)).toHaveLength(1);
  await first.close();
  await rm(repository.path, { recursive: true });
  await mkdir(repository.path);
  await second.close();
});

test('a repository made for somebody who tries giro has everything in one commit, and opens', async () => {
  const { folder: parent, own } = await makeRepository();
  const folder = join(parent, 'fresh');
  await mkdir(folder);
  await writeFile(join(folder, 'a.txt'), 'a');
  expect(await createRepository({ folder, own, message: 'first' })).toEqual({ ok: true, value: undefined });
  const opened = await openGit({ folder, own, runFolder: null });
  if (!opened.ok) throw new Error('not opened');
  expect(opened.value.user).toMatchObject({ topLevel: folder, branch: 'main' });
  expect((await opened.value.listTree(opened.value.user.head)).map(({ path }) => path)).toEqual(['a.txt']);
  expect(await opened.value.user.uncommitted()).toEqual([]);
  await opened.value.close();
});

describe('describing a repository before anything runs', () => {
  function describeAt(
    repository: TestRepository,
    folder: string,
    own = repository.own,
  ): ReturnType<typeof describeRepository> {
    return describeRepository({ folder, own });
  }

  test('gives its root, from a folder inside and through a link, and whether there is a commit', async () => {
    const repository = await makeRepository({ files: { 'a/b/c.txt': 'c' } });
    const hooksFolder = join(repository.path, '.git/hooks');
    const value = { root: repository.path, isRepository: true, hooksFolder, hasCommit: true };
    expect(await describeAt(repository, repository.path)).toEqual({ ok: true, value });
    const link = join(repository.folder, 'link');
    await symlink(join(repository.path, 'a'), link);
    expect(await describeAt(repository, link)).toEqual({ ok: true, value });
    const empty = await makeRepository({ files: null });
    expect(await describeAt(empty, empty.path)).toMatchObject({ ok: true, value: { hasCommit: false } });
  });

  test('knows the hooks folder of a linked worktree, and that of core.hooksPath, in whichever config it is', async () => {
    const repository = await makeRepository({ files: { 'a/x': '' } });
    const linked = join(repository.folder, 'linked');
    await repository.git('worktree', 'add', '-q', '--detach', linked);
    expect(await describeAt(repository, linked)).toMatchObject({
      value: { root: linked, hooksFolder: join(repository.path, '.git/hooks') },
    });
    await writeFile(join(repository.home, '.gitconfig'), '[core]\nhooksPath = .githooks\n');
    const hooksFolder = join(repository.path, '.githooks');
    expect(await describeAt(repository, join(repository.path, 'a'))).toMatchObject({ value: { hooksFolder } });
    await repository.git('config', 'core.hooksPath', '~/hooks');
    const mine = join(repository.home, 'hooks');
    expect(await describeAt(repository, repository.path)).toMatchObject({ value: { hooksFolder: mine } });
  });

  test('does not run a git that lies in the repository, nor one that PATH names first, and heeds no GIT_DIR', async () => {
    const repository = await makeRepository({ files: { 'bin/git': '#!/bin/sh\ntouch "$HOME/ran"\n' } });
    const bin = join(repository.path, 'bin');
    await chmod(join(bin, 'git'), 0o755);
    const other = await makeRepository();
    const own = {
      ...repository.own,
      PATH: `${bin}:${repository.own['PATH'] ?? ''}`,
      GIT_DIR: join(other.path, '.git'),
    };
    expect(await describeAt(repository, repository.path, own)).toMatchObject({ value: { root: repository.path } });
    expect(await readdir(repository.home)).toEqual([]);
  });

  test('says that there is none, and what is wrong with the fix: a bare one, one that git refuses', async () => {
    const repository = await makeRepository();
    expect(await describeAt(repository, repository.home)).toEqual({
      ok: true,
      value: { root: repository.home, isRepository: false, hooksFolder: null, hasCommit: false },
    });
    const bare = await makeRepository({ bare: true, files: null });
    expect(await describeAt(bare, bare.path)).toMatchObject({
      failure: {
        message: expect.stringContaining('must be run in a work tree') as unknown,
        hint: expect.stringContaining('git status') as unknown,
      },
    });
    await writeFile(join(repository.path, '.git/HEAD'), 'odd');
    expect(await describeAt(repository, repository.path)).toMatchObject({
      failure: { hint: `run git status in ${repository.path}: git says what it needs` },
    });
  });
});

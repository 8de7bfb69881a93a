import { execFileSync } from 'node:child_process';
import { mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  inspectTree,
  isGitName,
  leavesTree,
  refusedRepositories,
  removeTraps,
  surveyFolder,
} from '../../src/worktree/guard.js';
import type { Oid } from '../../src/issue.js';
import { startRun, type FolderRig } from '../rig/folders.js';
import { makeRepository } from '../rig/repository.js';
import { temporaryFolder } from '../rig/temp.js';

test.each([
  '.git',
  '.GIT',
  '.Git',
  'git~1',
  'GIT~1',
  '.git.',
  '.git ',
  '.g\u200cit',
  '.git::$INDEX_ALLOCATION',
  'x\\.git',
])('the name %j is git’s own somewhere', (name) => {
  expect(isGitName(name)).toBe(true);
});

test.each(['.gitignore', '.github', 'git', 'git~2', 'x.git', '.gitmodules'])(
  'the name %j is an ordinary one',
  (name) => {
    expect(isGitName(name)).toBe(false);
  },
);

test.each([
  ['a', '/etc/passwd'],
  ['a', '..'],
  ['a', '../x'],
  ['d/a', '../../x'],
  ['a', 'b/../../x'],
  ['a', 'b/../c'],
  ['a', '.git/config'],
  ['d/a', '../.GIT'],
  ['a', ''],
])('a link at %s to %j may lead out', (path, target) => {
  expect(leavesTree(path, target)).toBe(true);
});

test.each([
  ['a', 'b'],
  ['a', './b/c'],
  ['d/a', '../b'],
  ['d/e/a', '../../b/c'],
  ['d/a', '.git-hooks'],
])('a link at %s to %j stays inside', (path, target) => {
  expect(leavesTree(path, target)).toBe(false);
});

describe('the survey of a folder', () => {
  test('finds repositories in any spelling, as folder or file, but not the top link and not what is to be skipped', async () => {
    const { path } = await temporaryFolder();
    for (const name of ['.git', 'a/.git', 'b/.GIT/x', 'made/c/.git', 'd/e/git~1', 'd/.gitignore']) {
      await mkdir(dirname(join(path, name)), { recursive: true });
      await writeFile(join(path, name), '');
    }
    const survey = await surveyFolder(path, new Set(['made']));
    expect(survey).toMatchObject({ repositories: ['a/.git', 'b/.GIT', 'd/e/git~1'], unreadable: [], traps: [] });
  });

  test('follows no link and passes over pipes', async () => {
    const { path } = await temporaryFolder();
    await mkdir(join(path, 'outside/.git'), { recursive: true });
    await mkdir(join(path, 'inside'));
    await symlink(join(path, 'outside'), join(path, 'inside/link'));
    execFileSync('mkfifo', [join(path, 'inside/pipe')]);
    expect(await surveyFolder(join(path, 'inside'), new Set())).toMatchObject({
      repositories: [],
      unreadable: [],
      traps: [],
    });
  });

  test('finds what git would read and wait for: pipes with the names of its own files', async () => {
    const { path } = await temporaryFolder();
    await mkdir(join(path, 'd'));
    for (const name of ['.gitignore', 'd/.gitattributes', 'd/pipe']) execFileSync('mkfifo', [join(path, name)]);
    expect(await surveyFolder(path, new Set())).toMatchObject({
      traps: ['.gitignore', 'd/.gitattributes'],
      special: ['.gitignore', 'd/.gitattributes', 'd/pipe'],
    });
  });
});

describe('what a tree does not have', () => {
  const start = { 'a.txt': 'a', 'd/b.txt': 'b', 'd/e/c.txt': 'c' };

  async function desk(): Promise<{ folder: string; hasUntracked: (kept?: string, skip?: string) => Promise<boolean> }> {
    const repository = await makeRepository({ files: start });
    const { git } = await startRun(repository);
    const { tree } = await git.readCommit(await repository.head());
    const folder = join(repository.folder, 'x');
    await mkdir(folder);
    await git.checkOut(folder, join(repository.folder, 'x.index'), tree);
    const hasUntracked = async (kept = 'node_modules', skip = ''): Promise<boolean> => {
      const tracked = { git, tree, isKept: (name: string) => name === kept };
      return (await surveyFolder(folder, new Set([skip]), tracked)).hasUntracked;
    };
    return { folder, hasUntracked };
  }

  test('is nothing in a folder that shows it, whatever its files hold, but for the top .git and what is kept', async () => {
    const { folder, hasUntracked } = await desk();
    expect(await hasUntracked()).toBe(false);
    await writeFile(join(folder, 'a.txt'), 'edited');
    await mkdir(join(folder, '.git'));
    await mkdir(join(folder, 'd/node_modules/x'), { recursive: true });
    expect(await hasUntracked()).toBe(false);
    expect(await hasUntracked('other')).toBe(true);
  });

  test.each(['new', 'd/new', 'd/e/new/', 'd/.git', 'd/.GIT/', 'd/e/c.txt/'])('is found at %s', async (path) => {
    const { folder, hasUntracked } = await desk();
    await rm(join(folder, path.replace(/\/$/, '')), { force: true });
    if (path.endsWith('/')) await mkdir(join(folder, path));
    else await writeFile(join(folder, path), '');
    expect(await hasUntracked()).toBe(true);
  });

  test('counts also where set-up made it: it is kept only when it is named', async () => {
    const { folder, hasUntracked } = await desk();
    await mkdir(join(folder, 'made'));
    expect(await hasUntracked('node_modules', 'made')).toBe(true);
    expect(await hasUntracked('made', 'made')).toBe(false);
  });

  test('is unknown without a tree to compare with', async () => {
    const { folder } = await desk();
    expect((await surveyFolder(folder, new Set())).hasUntracked).toBe(true);
  });
});

test('traps are removed from where git looks for attributes, and what a link leads to stays', async () => {
  const repository = await makeRepository({ files: { 'a.txt': 'a', 'd/b.txt': 'b', 'e/c.txt': 'c' } });
  const { git } = await startRun(repository);
  const { tree } = await git.readCommit(await repository.head());
  const [folder, outside] = [join(repository.folder, 'x'), join(repository.folder, 'outside')];
  for (const path of [join(folder, 'd'), outside]) await mkdir(path, { recursive: true });
  await symlink(outside, join(folder, 'e'));
  await symlink('nowhere', join(folder, '.gitmodules'));
  await writeFile(join(folder, '.gitattributes'), '* text\n');
  const pipes = [join(folder, 'd/.gitattributes'), join(folder, 'd/pipe'), join(outside, '.gitattributes')];
  for (const pipe of pipes) execFileSync('mkfifo', [pipe]);
  await removeTraps(git, folder, tree);
  expect((await readdir(folder, { recursive: true })).sort()).toEqual(['.gitattributes', 'd', 'd/pipe']);
  expect(await readdir(outside)).toEqual(['.gitattributes']);
});

describe('repositories below ignored folders', () => {
  test('are told from others by the .gitignore files above them, not by one inside', async () => {
    const repository = await makeRepository();
    const { git } = await startRun(repository);
    const folder = join(repository.folder, 'x');
    const files: readonly (readonly [string, string])[] = [
      ['.gitignore', '/out/\n!/kept\n'],
      ['src/.gitignore', 'cache/*\n!cache/keep\n'],
      ['free/.gitignore', '*\n'],
    ];
    for (const [path, text] of files) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
    }
    const paths = ['.GIT', 'free/.git', 'out/deep/.git', 'src/cache/keep/.git', 'src/cache/x/.git'];
    const scratch = join(repository.folder, 'scratch');
    const refused = await refusedRepositories(paths, { git, folder, shown: git.emptyTree, scratch });
    expect(refused).toEqual(['.GIT', 'free/.git', 'src/cache/keep/.git']);
  });

  test('count when the tree has a submodule there', async () => {
    const repository = await makeRepository({ files: { '.gitignore': 'sub\n' } });
    const { git } = await startRun(repository);
    const head = await repository.head();
    const shown = await git.editTree(head, new Map([['sub', { mode: '160000', oid: head }]]));
    const check = { git, folder: repository.path, shown, scratch: join(repository.folder, 'scratch') };
    expect(await refusedRepositories(['sub/.git'], check)).toEqual(['sub/.git']);
  });
});

describe('the inspection of a tree', () => {
  async function treeWith(
    rig: FolderRig,
    base: Oid,
    entries: Readonly<Record<string, readonly [string, string]>>,
  ): Promise<Oid> {
    const edits = await Promise.all(
      Object.entries(entries).map(
        async ([path, [mode, text]]) =>
          [path, { mode, oid: mode === '160000' ? base : await rig.git.writeBlob(text) }] as const,
      ),
    );
    return rig.git.editTree((await rig.git.readCommit(base)).tree, new Map(edits));
  }

  test('finds new links that leave, submodule pointers and names that fold together', async () => {
    const repository = await makeRepository({ files: { 'readme.md': '', 'src/a.ts': '' } });
    const rig = await startRun(repository);
    const head = await repository.head();
    const tree = await treeWith(rig, head, {
      'src/out': ['120000', '../../x'],
      'src/in': ['120000', 'a.ts'],
      'deep/er/sub': ['160000', ''],
      'README.md': ['100644', 'x'],
      'src/\u00e9.ts': ['100644', 'x'],
      'src/e\u0301.ts': ['100644', 'x'],
    });
    const findings = await inspectTree(rig.git, head, tree);
    expect(findings.map(({ file }) => file)).toEqual(['README.md', 'deep/er/sub', 'src/e\u0301.ts', 'src/out']);
    expect(findings[3]?.message).toBe(
      'guard symlink: a symbolic link that leaves the work: src/out -> ../../x; remove it (nobody can allow it)',
    );
  });

  test('says nothing of what the base had already', async () => {
    const repository = await makeRepository({ files: { 'src/a.ts': '' } });
    const rig = await startRun(repository);
    const odd: Readonly<Record<string, readonly [string, string]>> = {
      'src/out': ['120000', '/etc'],
      sub: ['160000', ''],
      'src/A.ts': ['100644', ''],
    };
    const head = await repository.head();
    const base = await treeWith(rig, head, odd);
    const tree = await treeWith(rig, head, { ...odd, 'src/new.ts': ['100644', 'x'] });
    expect(await inspectTree(rig.git, base, tree)).toEqual([]);
    expect(await inspectTree(rig.git, head, tree)).toHaveLength(3);
  });

  test('finds a submodule that is gone, unless its section in .gitmodules went with it', async () => {
    const repository = await makeRepository({ files: { 'src/a.ts': '' } });
    const rig = await startRun(repository);
    const head = await repository.head();
    const names = ['100644', '[submodule "sub"]'] as const;
    const base = await treeWith(rig, head, { sub: ['160000', ''], '.gitmodules': names });
    const lost = await treeWith(rig, head, { '.gitmodules': names });
    expect((await inspectTree(rig.git, base, lost)).map(({ rule, file }) => [rule, file])).toEqual([
      ['submodule', 'sub'],
    ]);
    expect(await inspectTree(rig.git, base, await treeWith(rig, head, { '.gitmodules': ['100644', ''] }))).toEqual([]);
    expect(await inspectTree(rig.git, base, await treeWith(rig, head, {}))).toEqual([]);
  });

  test('keeps the list short', async () => {
    const repository = await makeRepository();
    const rig = await startRun(repository);
    const head = await repository.head();
    const links = Object.fromEntries(
      Array.from({ length: 30 }, (_, at) => [`l${String(at)}`, ['120000', '/x'] as const]),
    );
    const findings = await inspectTree(rig.git, head, await treeWith(rig, head, links));
    expect(findings).toHaveLength(21);
    expect(findings.at(-1)?.message).toBe('and 10 more of the kind');
  });
});

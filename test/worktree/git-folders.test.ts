import { execFileSync } from 'node:child_process';
import {
  chmod,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  unlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Oid } from '../../src/issue.js';
import { openGit } from '../../src/worktree/git.js';
import { GitError, type OpenedGit } from '../../src/worktree/git-types.js';
import { makeRepository, openRepository, treeOf, type TestRepository } from '../rig/repository.js';

const files = { 'a.txt': 'a\n', 'docs/guide.md': 'guide\n', 'src/deep/x.ts': 'x\n' };

interface Desk {
  readonly repository: TestRepository;
  readonly git: OpenedGit;
  readonly tree: Oid;
  readonly folder: string;
  readonly index: string;
  readonly put: (path: string, content: string) => Promise<void>;
  readonly snapshot: (exclude?: readonly string[]) => Promise<readonly string[]>;
}

/** A folder of giro's with the files checked out. */
async function makeDesk(start: Readonly<Record<string, string>> = files): Promise<Desk> {
  const repository = await makeRepository();
  const git = await openRepository(repository);
  const folder = join(repository.folder, 'desk');
  const index = join(repository.folder, 'desk.index');
  await mkdir(folder);
  const tree = await treeOf(git, start);
  await git.checkOut(folder, index, tree);
  const put = async (path: string, content: string): Promise<void> => {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  };
  const snapshot = async (exclude?: readonly string[]): Promise<readonly string[]> => {
    const taken = await git.snapshotFolder(folder, index, exclude);
    return (await git.listTree(taken)).map(({ path }) => path);
  };
  return { repository, git, tree, folder, index, put, snapshot };
}

describe('checking out', () => {
  test('writes the files, then only what differs, and removes what the tree no longer has', async () => {
    const { git, tree, folder, index } = await makeDesk();
    expect(await readFile(join(folder, 'src/deep/x.ts'), 'utf8')).toBe('x\n');
    const before = await lstat(join(folder, 'a.txt'));
    const oid = await git.writeBlob('new');
    const next = await git.editTree(
      tree,
      new Map([
        ['docs', null],
        ['b', { mode: '100755', oid }],
        ['l', { mode: '120000', oid }],
      ]),
    );
    await git.checkOut(folder, index, next);
    expect((await readdir(folder)).sort()).toEqual(['a.txt', 'b', 'l', 'src']);
    expect(await readlink(join(folder, 'l'))).toBe('new');
    expect((await lstat(join(folder, 'b'))).mode & 0o111).not.toBe(0);
    expect((await lstat(join(folder, 'a.txt'))).ino).toBe(before.ino);
  });

  test('undoes every change to tracked files: edited, removed, replaced, made a program', async () => {
    const { git, tree, folder, index, put } = await makeDesk();
    await put('a.txt', 'edited\n');
    await rm(join(folder, 'docs'), { recursive: true });
    await rm(join(folder, 'src/deep/x.ts'));
    await mkdir(join(folder, 'src/deep/x.ts'));
    await put('src/deep/x.ts/in-the-way', '');
    await git.checkOut(folder, index, tree);
    expect(await readFile(join(folder, 'a.txt'), 'utf8')).toBe('a\n');
    expect(await readFile(join(folder, 'docs/guide.md'), 'utf8')).toBe('guide\n');
    expect(await readFile(join(folder, 'src/deep/x.ts'), 'utf8')).toBe('x\n');
    await chmod(join(folder, 'a.txt'), 0o755);
    expect(await git.changedFiles(folder, index)).toEqual(['a.txt']);
    await git.checkOut(folder, index, tree);
    expect((await lstat(join(folder, 'a.txt'))).mode & 0o111).toBe(0);
  });

  test('after cleaning also undoes a folder made a link to somewhere else, and touches nothing there', async () => {
    const { repository, git, tree, folder, index } = await makeDesk();
    const elsewhere = join(repository.folder, 'elsewhere');
    await rename(join(folder, 'docs'), elsewhere);
    await symlink(elsewhere, join(folder, 'docs'));
    expect(await git.changedFiles(folder, index)).toEqual(['docs/guide.md']);
    await git.cleanFolder(folder, index, []);
    await git.checkOut(folder, index, tree);
    expect((await lstat(join(folder, 'docs'))).isDirectory()).toBe(true);
    expect(await readFile(join(folder, 'docs/guide.md'), 'utf8')).toBe('guide\n');
    expect(await readdir(elsewhere)).toEqual(['guide.md']);
    expect(await git.changedFiles(folder, index)).toEqual([]);
  });

  test('keeps what is not tracked, but not in the way of what is', async () => {
    const { git, tree, folder, index, put } = await makeDesk();
    await put('mine', 'mine');
    await put('new', 'in the way');
    const oid = await git.writeBlob('tracked');
    await git.checkOut(folder, index, await git.editTree(tree, new Map([['new', { mode: '100644', oid }]])));
    expect(await readFile(join(folder, 'mine'), 'utf8')).toBe('mine');
    expect(await readFile(join(folder, 'new'), 'utf8')).toBe('tracked');
  });

  test('works with an index that a kill left broken or locked', async () => {
    const { git, tree, folder, index, put } = await makeDesk();
    await writeFile(index, 'DIRC broken');
    await writeFile(`${index}.lock`, '');
    await put('a.txt', 'edited');
    await git.checkOut(folder, index, tree);
    expect(await git.snapshotFolder(folder, index)).toBe(tree);
    await writeFile(`${index}.lock`, '');
    expect(await git.snapshotFolder(folder, index)).toBe(tree);
    expect(await readdir(dirname(index))).not.toContain('desk.index.lock');
  });

  test('gives each file the bytes that any checkout of the commit has', async () => {
    const start = {
      '.gitattributes': '*.bat text eol=crlf\n*.id ident\n*.lfs filter=lfs diff=lfs merge=lfs -text\n',
      'x.bat': 'a\nb\n',
      'x.id': '$Id$\n',
      'x.lfs': 'version https://git-lfs.github.com/spec/v1\n',
      'plain.txt': 'a\r\nb\n',
    };
    const { repository, git, tree, folder, index } = await makeDesk(start);
    const commit = await git.writeCommit({ tree, parents: [], message: 'm', at: 0 });
    await repository.git('reset', '-q', '--hard', commit);
    for (const path of Object.keys(start)) {
      expect(await readFile(join(folder, path), 'utf8')).toBe(await readFile(join(repository.path, path), 'utf8'));
    }
    expect(await readFile(join(folder, 'x.bat'), 'utf8')).toBe('a\r\nb\r\n');
    expect(await git.changedFiles(folder, index)).toEqual([]);
    expect(await git.snapshotFolder(folder, index)).toBe(tree);
  });
});

describe('taking back', () => {
  test('takes new, changed and removed files, links and programs, and nothing that is ignored', async () => {
    const { git, folder, index, put, snapshot } = await makeDesk();
    await put('.gitignore', 'build/\n*.log\n');
    await put('build/out', '');
    await put('x.log', '');
    await put('ü "new"\n.txt', 'new');
    await unlink(join(folder, 'a.txt'));
    await symlink('docs/guide.md', join(folder, 'link'));
    await writeFile(join(folder, 'run'), '#!', { mode: 0o755 });
    const taken = await git.listTree(await git.snapshotFolder(folder, index));
    expect(taken.map(({ mode, path }) => `${mode} ${path}`)).toEqual([
      '100644 .gitignore',
      '100644 docs/guide.md',
      '120000 link',
      '100755 run',
      '100644 src/deep/x.ts',
      '100644 ü "new"\n.txt',
    ]);
    expect(await snapshot()).toEqual(taken.map(({ path }) => path));
  });

  test("honours the person's own ignore files, which it reads once as data", async () => {
    const repository = await makeRepository();
    await mkdir(join(repository.home, '.config', 'git'), { recursive: true });
    await writeFile(join(repository.home, '.config', 'git', 'ignore'), '.DS_Store\n*.swp\n');
    await writeFile(join(repository.path, '.git', 'info', 'exclude'), '!kept.swp\nscratch/\n');
    const git = await openRepository(repository);
    const folder = join(repository.folder, 'desk');
    await mkdir(join(folder, 'scratch'), { recursive: true });
    for (const name of ['.DS_Store', 'x.swp', 'kept.swp', 'scratch/x', 'file']) await writeFile(join(folder, name), '');
    const tree = await git.snapshotFolder(folder, join(repository.folder, 'index'));
    expect((await git.listTree(tree)).map(({ path }) => path)).toEqual(['file', 'kept.swp']);
  });

  test('finds the ignore file that the config names, from home or from the top level', async () => {
    for (const [setting, place] of [
      ['~/my-ignore', 'home'],
      ['conf/ignore', 'path'],
    ] as const) {
      const repository = await makeRepository({ files: { 'conf/x': '' } });
      await writeFile(join(repository[place], setting.replace('~/', '')), 'secret\n');
      await repository.git('config', 'core.excludesFile', setting);
      const git = await openRepository(repository);
      const folder = join(repository.folder, 'desk');
      await mkdir(folder);
      for (const name of ['secret', 'file']) await writeFile(join(folder, name), '');
      const tree = await git.snapshotFolder(folder, join(repository.folder, 'index'));
      expect((await git.listTree(tree)).map(({ path }) => path)).toEqual(['file']);
    }
  });

  test('never takes excluded paths, even when the tree asks for them, but goes on with tracked ones', async () => {
    const { put, snapshot } = await makeDesk({ 'keep.env': 'tracked', 'a.txt': 'a' });
    await put('.gitignore', '!.env\n!vendor/\n');
    await put('.env', 'SECRET=1');
    await put('vendor/deep/lib.js', 'lib');
    await put('keep.env', 'changed');
    await put('other', 'x');
    expect(await snapshot(['.env', 'vendor/', '*.env'])).toEqual(['.gitignore', 'a.txt', 'keep.env', 'other']);
    expect(await snapshot()).toContain('.env');
  });

  test('takes a file back that only its content tells apart, written in the same second', async () => {
    const { git, tree, folder, index, put } = await makeDesk();
    for (let round = 0; round < 5; round++) {
      await put('a.txt', `${String(round)}\n`);
      const taken = await git.snapshotFolder(folder, index);
      expect(String(await git.readBlob((await git.readPath(taken, 'a.txt'))?.oid ?? tree))).toBe(`${String(round)}\n`);
    }
  });

  test('of an unreadable folder or file is an error, never a smaller tree', async () => {
    const { git, folder, index, put } = await makeDesk();
    await put('dark/file', 'x');
    await put('file', 'x');
    // Root reads everything; for anybody else both are refused.
    const isRoot = process.getuid?.() === 0;
    for (const path of ['dark', 'file']) {
      await chmod(join(folder, path), 0o000);
      const outcome = await git.snapshotFolder(folder, index).then(
        () => 'taken',
        (error: unknown) => String(error),
      );
      expect(outcome).toMatch(isRoot ? /^taken$/ : /dark|file/);
      await chmod(join(folder, path), 0o755);
    }
  });

  test('of a linked worktree leaves out its link file', async () => {
    const { repository, git, index } = await makeDesk();
    const folder = join(repository.folder, 'linked');
    await repository.git('worktree', 'add', '-q', '--detach', folder);
    const tree = await git.snapshotFolder(folder, index);
    expect((await git.listTree(tree)).map(({ path }) => path)).toEqual(['README.md']);
  });
});

describe('files that differ', () => {
  test('are seen in the same second, with the same size and the same times', async () => {
    const { git, folder, index, put } = await makeDesk();
    const path = join(folder, 'a.txt');
    const { atime, mtime } = await lstat(path);
    await put('a.txt', 'b\n');
    await utimes(path, atime, mtime);
    expect(await git.changedFiles(folder, index)).toEqual(['a.txt']);
  });

  test('are not those that were only touched or written again with the same content', async () => {
    const { git, folder, index, put } = await makeDesk();
    await put('a.txt', 'a\n');
    await utimes(join(folder, 'docs/guide.md'), 1, 1);
    expect(await git.changedFiles(folder, index)).toEqual([]);
  });

  test('are those removed, replaced or with another mode, but not new ones', async () => {
    const { git, folder, index, put } = await makeDesk({ ...files, 'ü x': '1' });
    await put('new', 'x');
    await rm(join(folder, 'docs'), { recursive: true });
    await chmod(join(folder, 'src/deep/x.ts'), 0o755);
    await unlink(join(folder, 'ü x'));
    await symlink('a.txt', join(folder, 'ü x'));
    expect(await git.changedFiles(folder, index)).toEqual(['docs/guide.md', 'src/deep/x.ts', 'ü x']);
  });
});

describe('a folder is untouched', () => {
  test('as long as its tracked files are as they were, whatever their times, and nothing else is there', async () => {
    const { git, tree, folder, index, put } = await makeDesk({ ...files, '.gitignore': 'out\n' });
    expect(await git.isUntouched(folder, index)).toBe(true);
    await put('a.txt', 'a\n');
    await utimes(join(folder, 'docs/guide.md'), 1, 1);
    expect(await git.isUntouched(folder, index)).toBe(true);
    await git.snapshotFolder(folder, index);
    expect(await git.isUntouched(folder, index)).toBe(true);
    await put('new', 'x');
    expect(await git.isUntouched(folder, index)).toBe(false);
    await git.snapshotFolder(folder, index);
    expect(await git.isUntouched(folder, index)).toBe(true);
    await git.checkOut(folder, index, tree);
    expect(await git.isUntouched(folder, index)).toBe(true);
  });

  test.each<[string, (desk: Desk) => Promise<unknown>]>([
    ['an edited file of the same size in the same second', ({ put }) => put('a.txt', 'b\n')],
    ['a file that is gone', ({ folder }) => unlink(join(folder, 'docs/guide.md'))],
    ['another mode', ({ folder }) => chmod(join(folder, 'a.txt'), 0o755)],
    ['a new file', ({ put }) => put('src/new', '')],
    ['an ignored one', ({ put }) => put('src/out/x', '')],
    ['an empty folder', ({ folder }) => mkdir(join(folder, 'src/empty'))],
    ['a repository of its own', ({ repository, folder }) => repository.git('init', '-q', join(folder, 'nested'))],
    [
      'a folder that was moved away, and a link to it',
      async ({ folder, repository }) => {
        await rename(join(folder, 'docs'), join(repository.folder, 'elsewhere'));
        await symlink(join(repository.folder, 'elsewhere'), join(folder, 'docs'));
      },
    ],
    [
      'a folder in place of a file',
      async ({ folder }) => {
        await unlink(join(folder, 'a.txt'));
        await mkdir(join(folder, 'a.txt'));
      },
    ],
  ])('but not with %s', async (_name, change) => {
    const desk = await makeDesk({ ...files, '.gitignore': 'out\n' });
    await change(desk);
    expect(await desk.git.isUntouched(desk.folder, desk.index)).toBe(false);
  });

  test('then another tree is shown by writing what differs and removing what is gone', async () => {
    const { git, tree, folder, index } = await makeDesk();
    const before = await lstat(join(folder, 'a.txt'));
    const oid = await git.writeBlob('new');
    const edits = [['docs', null] as const, ['src/deep/y', { mode: '100755', oid }] as const];
    const next = await git.editTree(tree, new Map(edits));
    await git.advanceFolder(folder, index, next);
    expect((await readdir(folder)).sort()).toEqual(['a.txt', 'src']);
    expect(await readFile(join(folder, 'src/deep/y'), 'utf8')).toBe('new');
    expect((await lstat(join(folder, 'a.txt'))).ino).toBe(before.ino);
    expect(await git.isUntouched(folder, index)).toBe(true);
    expect(await git.snapshotFolder(folder, index)).toBe(next);
  });

  test('and when it was touched after all, every file is brought back', async () => {
    const { git, tree, folder, index, put } = await makeDesk();
    const oid = await git.writeBlob('new');
    const next = await git.editTree(tree, new Map([['a.txt', { mode: '100644', oid }]]));
    await put('a.txt', 'meanwhile\n');
    await put('docs/guide.md', 'meanwhile\n');
    await git.advanceFolder(folder, index, next);
    expect(await git.snapshotFolder(folder, index)).toBe(next);
  });
});

test('a pipe that git waits for ends as an error, and the folder is usable again', async () => {
  const { repository, tree, folder, index, put } = await makeDesk();
  const run = join(repository.folder, 'short');
  const opened = await openGit({ folder: repository.path, own: repository.own, runFolder: run, callTimeoutMs: 400 });
  if (!opened.ok) throw new Error(opened.failure.kind);
  onTestFinished(() => opened.value.close());
  await put('docs/new', 'x');
  execFileSync('mkfifo', [join(folder, 'docs/.gitignore')]);
  await expect(opened.value.snapshotFolder(folder, index)).rejects.toThrow(GitError);
  await expect(opened.value.snapshotFolder(folder, index)).rejects.toThrow('add -A: killed: no end within 0 s');
  await rm(join(folder, 'docs/.gitignore'));
  await rm(join(folder, 'docs/new'));
  await expect.poll(() => opened.value.snapshotFolder(folder, index).catch(() => null)).toBe(tree);
});

describe('cleaning', () => {
  test('removes new, ignored and nested things, but not what is tracked or kept', async () => {
    const { repository, git, folder, index, put } = await makeDesk({
      ...files,
      '.gitignore': 'node_modules/\n*.log\n',
    });
    await put('node_modules/lib/index.js', '');
    await put('cache/big', '');
    await put('[odd]/x', '');
    await put('x.log', '');
    await put('new/file', '');
    await mkdir(join(folder, 'empty/deep'), { recursive: true });
    await repository.git('init', '-q', join(folder, 'nested'));
    await put('nested/file', '');
    await put('a.txt', 'edited');
    await git.cleanFolder(folder, index, ['node_modules/', '/cache/']);
    expect((await readdir(folder)).sort()).toEqual(['.gitignore', 'a.txt', 'cache', 'docs', 'node_modules', 'src']);
    expect(await readFile(join(folder, 'a.txt'), 'utf8')).toBe('edited');
  });

  test("refuses a link, the person's checkout, and whatever holds it", async () => {
    const { repository, git, tree, index, folder } = await makeDesk();
    await repository.write('precious', 'mine');
    const before = await repository.fingerprint();
    const link = join(repository.folder, 'link');
    await symlink(repository.path, link);
    for (const path of [
      link,
      repository.path,
      repository.folder,
      join(repository.path, '.git'),
      join(folder, 'absent'),
    ]) {
      await expect(git.cleanFolder(path, index, [])).rejects.toThrow('refusing to work');
      await expect(git.checkOut(path, index, tree)).rejects.toThrow('refusing to work');
      await expect(git.snapshotFolder(path, index)).rejects.toThrow('refusing to work');
    }
    expect(await repository.fingerprint()).toBe(before);
  });

  test('follows no link out of the folder', async () => {
    const { repository, git, folder, index } = await makeDesk();
    const before = await repository.fingerprint();
    await symlink(repository.path, join(folder, 'way-out'));
    await git.cleanFolder(folder, index, []);
    expect(await repository.fingerprint()).toBe(before);
    expect(await readdir(folder)).not.toContain('way-out');
  });
});

test('calls on one folder wait for each other', async () => {
  const { git, tree, folder, index } = await makeDesk();
  const calls = Array.from({ length: 6 }, (_, at) =>
    at % 2 === 0 ? git.checkOut(folder, index, tree) : git.snapshotFolder(folder, index),
  );
  expect(await Promise.all(calls)).toEqual([undefined, tree, undefined, tree, undefined, tree]);
});

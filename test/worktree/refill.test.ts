import { execFileSync } from 'node:child_process';
import { lstat, mkdir, readFile, readdir, rename, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Oid } from '../../src/issue.js';
import type { OpenedGit, TreeTarget } from '../../src/worktree/git-types.js';
import { makeRepository, openRepository, treeOf, type TestRepository } from '../rig/repository.js';

interface Desk {
  readonly repository: TestRepository;
  readonly git: OpenedGit;
  readonly folder: string;
  readonly index: string;
  /** Shows the next tree after a look, and gives the number of processes that took. */
  readonly advance: (tree: Oid) => Promise<number>;
  /** What plain git says of the folder. */
  readonly ask: (...args: readonly string[]) => string;
}

async function makeDesk(name = 'desk', repository?: TestRepository): Promise<Desk> {
  const found = repository ?? (await makeRepository());
  const git = await openRepository(found);
  const folder = join(found.folder, name);
  const index = `${folder}.index`;
  await mkdir(folder);
  const advance = async (tree: Oid): Promise<number> => {
    expect(await git.changedFiles(folder, index)).toEqual([]);
    const before = git.processes();
    await git.advanceFolder(folder, index, tree);
    return git.processes() - before;
  };
  const ask = (...args: readonly string[]): string => {
    const env = { ...process.env, GIT_DIR: join(found.path, '.git'), GIT_WORK_TREE: folder, GIT_INDEX_FILE: index };
    return execFileSync('git', args, { env: { ...env, GIT_TEST_CHECK_CACHE_TREE: '1' }, encoding: 'utf8' });
  };
  return { repository: found, git, folder, index, advance, ask };
}

async function filesBelow(folder: string): Promise<Readonly<Record<string, string>>> {
  const files: Record<string, string> = {};
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) files[path.slice(folder.length + 1)] = await readFile(path, 'utf8');
  }
  return files;
}

const long = 'n'.repeat(200);
const paths = ['a', 'ab', 'b', 'd/a', 'd/b', 'd/e/f', 'd-e', `${long}/x`, `${long}/xy`, 'ü/ö', 'z'];
const trees = fc.array(
  fc.dictionary(fc.constantFrom(...paths), fc.constantFrom('1\n', '2\n', 'three\n'), { minKeys: 1 }),
  { minLength: 2, maxLength: 5 },
);

test('from any tree to any other: the files, the index and its trees are as git would have made them, without git', async () => {
  const { repository } = await makeDesk();
  let desks = 0;
  await fc.assert(
    fc.asyncProperty(trees, async ([first, ...others]) => {
      const { git, folder, index, advance, ask } = await makeDesk(`desk-${String((desks += 1))}`, repository);
      await git.checkOut(folder, index, await treeOf(git, first ?? {}));
      for (const files of others) {
        const tree = await treeOf(git, files);
        expect(await advance(tree)).toBe(0);
        expect(await filesBelow(folder)).toEqual(files);
        // With the check above it ends in an error when the trees behind the entries are not theirs.
        ask('update-index', '--force-write-index');
        expect(ask('ls-files', '-s')).toBe(
          ask('ls-tree', '-r', '--format=%(objectmode) %(objectname) 0%x09%(path)', tree),
        );
        expect(await git.isUntouched(folder, index)).toBe(true);
        expect(await git.snapshotFolder(folder, index)).toBe(tree);
        await git.checkOut(folder, index, tree);
      }
      await git.close();
    }),
    { numRuns: 30 },
  );
}, 60_000);

describe('git does it', () => {
  async function edited(git: OpenedGit, tree: Oid, path: string, mode: string, text: string): Promise<Oid> {
    return git.editTree(tree, new Map<string, TreeTarget>([[path, { mode, oid: await git.writeBlob(text) }]]));
  }

  test.for([
    ['a link', 'l', '120000', 'a'],
    ['attributes, which may convert what is written', '.gitattributes', '100644', '* text eol=crlf\n'],
  ] as const)('when there is %s', async ([, path, mode, text]) => {
    const { git, folder, index, advance } = await makeDesk();
    const start = await treeOf(git, { a: 'a\n', b: 'b\n' });
    await git.checkOut(folder, index, start);
    const next = await edited(git, await edited(git, start, path, mode, text), 'b', '100644', 'new\n');
    expect(await advance(next)).toBe(1);
    expect(await git.isUntouched(folder, index)).toBe(true);
    if (mode === '100644') expect(await readFile(join(folder, 'b'), 'utf8')).toBe('new\r\n');
  });

  test('when a file that goes is not as it was seen, and nothing of it is lost by surprise', async () => {
    const { git, folder, index } = await makeDesk();
    const start = await treeOf(git, { a: 'a\n', b: 'b\n' });
    await git.checkOut(folder, index, start);
    expect(await git.isUntouched(folder, index)).toBe(true);
    await writeFile(join(folder, 'b'), 'B\n');
    const before = git.processes();
    await git.advanceFolder(folder, index, await treeOf(git, { a: 'a\n', b: 'new\n' }));
    expect(git.processes() - before).toBe(2);
    expect(await readFile(join(folder, 'b'), 'utf8')).toBe('new\n');
  });

  test('when a folder on the way is a link by now: nothing is written where it leads', async () => {
    const { repository, git, folder, index } = await makeDesk();
    await git.checkOut(folder, index, await treeOf(git, { 'd/a': 'a\n' }));
    expect(await git.isUntouched(folder, index)).toBe(true);
    const elsewhere = join(repository.folder, 'elsewhere');
    await rename(join(folder, 'd'), elsewhere);
    await symlink(elsewhere, join(folder, 'd'));
    await git.advanceFolder(folder, index, await treeOf(git, { 'd/a': 'new\n', 'd/b': 'b\n' }));
    expect(await readdir(elsewhere)).toEqual(['a']);
    expect(await readFile(join(elsewhere, 'a'), 'utf8')).toBe('a\n');
    expect((await lstat(join(folder, 'd'))).isDirectory()).toBe(true);
  });

  test('when nobody looked whether the folder is as the index says', async () => {
    const { git, folder, index } = await makeDesk();
    await git.checkOut(folder, index, await treeOf(git, { a: 'a\n' }));
    const before = git.processes();
    await git.advanceFolder(folder, index, await treeOf(git, { a: 'b\n' }));
    expect(git.processes() - before).toBe(1);
  });

  test('when the index was damaged, or is gone', async () => {
    const { git, folder, index, advance } = await makeDesk();
    const [one, two] = [await treeOf(git, { a: 'a\n' }), await treeOf(git, { a: 'b\n' })];
    await git.checkOut(folder, index, one);
    expect(await git.changedFiles(folder, index)).toEqual([]);
    const bytes = await readFile(index);
    bytes[40] = (bytes[40] ?? 0) ^ 1;
    await writeFile(index, bytes);
    await git.advanceFolder(folder, index, two);
    expect(await readFile(join(folder, 'a'), 'utf8')).toBe('b\n');
    expect(await advance(one)).toBe(0);
  });
});

test('an executable file is made one, and made none again', async () => {
  const { git, folder, index, advance } = await makeDesk();
  const plain = await treeOf(git, { a: 'a\n' });
  const [entry] = await git.readTree(plain);
  if (entry === undefined) throw new Error('no file');
  const program = await git.editTree(plain, new Map([['a', { mode: '100755', oid: entry.oid }]]));
  await git.checkOut(folder, index, plain);
  expect(await advance(program)).toBe(0);
  expect((await stat(join(folder, 'a'))).mode & 0o111).not.toBe(0);
  expect(await advance(plain)).toBe(0);
  expect((await stat(join(folder, 'a'))).mode & 0o111).toBe(0);
});

test('the index is dated when the folder was last looked at: what changed in that second, git compares', async () => {
  const { git, folder, index, advance } = await makeDesk();
  await git.checkOut(folder, index, await treeOf(git, { a: 'a\n', b: 'b\n' }));
  const before = await stat(join(folder, 'b'));
  expect(await advance(await treeOf(git, { a: 'new\n', b: 'b\n' }))).toBe(0);
  const dated = (await stat(index)).mtimeMs;
  expect(dated % 1000).toBe(0);
  expect(dated).toBeLessThanOrEqual((await stat(join(folder, 'a'))).mtimeMs);
  await writeFile(join(folder, 'b'), 'B\n');
  await utimes(join(folder, 'b'), before.atime, before.mtime);
  expect(await git.changedFiles(folder, index)).toEqual(['b']);
});

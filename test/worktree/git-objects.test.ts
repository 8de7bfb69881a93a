import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseOid, type Oid } from '../../src/issue.js';
import { Objects } from '../../src/worktree/git-objects.js';
import { GitError, type Git, type TreeEntry, type TreeTarget } from '../../src/worktree/git-types.js';
import {
  decodeCommit,
  decodeName,
  decodeTree,
  encodeName,
  encodeTree,
  nameObject,
} from '../../src/worktree/objects.js';
import { commitOf, makeRepository, openRepository, treeOf, type TestRepository } from '../rig/repository.js';

const exec = promisify(execFile);

function loosePath(repository: TestRepository, oid: Oid): string {
  return join(repository.path, '.git', 'objects', oid.slice(0, 2), oid.slice(2));
}

function file(oid: Oid): TreeTarget {
  return { mode: '100644', oid };
}

async function paths(git: Git, tree: Oid): Promise<readonly string[]> {
  return (await git.listTree(tree)).map(({ path }) => path);
}

describe.each(['sha1', 'sha256'] as const)('objects written in process (%s)', (objectFormat) => {
  test('have the names git gives the same content, and git finds nothing wrong with them', async () => {
    const repository = await makeRepository({ objectFormat });
    const git = await openRepository(repository);
    expect(git.hash).toBe(objectFormat);
    await repository.write('odd', 'content\r\n\0');
    expect(await git.writeBlob('content\r\n\0')).toBe(await repository.git('hash-object', '--no-filters', 'odd'));
    expect(git.emptyTree).toBe(await repository.git('hash-object', '-t', 'tree', '/dev/null'));
    // A folder sorts as if its name ended in `/`: after `a.b`, before `a0`.
    const files = { 'a/x': '1', 'a.b': '2', a0: '3', 'a-b': '4', 'ä ö/ü': '5', 'b/c/d/e': '6' };
    const tree = await treeOf(git, files);
    for (const [path, content] of Object.entries(files)) await repository.write(path, content);
    await repository.git('rm', '-q', '--cached', '-r', '.');
    await repository.git('add', ...Object.keys(files));
    expect(tree).toBe(await repository.git('write-tree'));
    const parent = git.user.head;
    const commit = await git.writeCommit({
      tree,
      parents: [parent, parent],
      message: 'Sübject\n\nbody\n\n\n',
      at: 1_700_000_000_999,
    });
    expect(await repository.git('log', '-1', '--format=%an <%ae> %cn <%ce> %ad %ct %P%n%B', '--date=iso', commit)).toBe(
      `giro <giro@localhost> giro <giro@localhost> 2023-11-14 22:13:20 +0000 1700000000 ${parent} ${parent}\nSübject\n\nbody\n`,
    );
    await git.moveRef('refs/heads/giro/s', commit, null);
    // Fails when anything is wrong; two equal parents are not.
    await repository.git('fsck', '--strict', '--full', '--no-dangling');
    expect(await git.readCommit(commit)).toEqual({
      oid: commit,
      tree,
      parents: [parent, parent],
      message: 'Sübject\n\nbody\n',
      committedAt: 1_700_000_000,
    });
  });

  test('are found by the reader that was already there', async () => {
    const repository = await makeRepository({ objectFormat });
    const [git, reader] = [await openRepository(repository), await openRepository(repository)];
    await reader.readCommit(reader.user.head);
    const blobs = await Promise.all(Array.from({ length: 50 }, (_, at) => git.writeBlob(`blob ${String(at)}`)));
    const read = await Promise.all(blobs.map((oid) => reader.readBlob(oid)));
    expect(read.map(String)).toEqual(blobs.map((_, at) => `blob ${String(at)}`));
    expect(reader.processes()).toBeLessThanOrEqual(4);
  });
});

describe('reading', () => {
  test('goes on while the person packs and prunes everything', async () => {
    const repository = await makeRepository({ files: { 'a.txt': 'a' } });
    const [git, reader] = [await openRepository(repository), await openRepository(repository)];
    const blobs: Oid[] = [];
    for (let round = 0; round < 3; round++) {
      const blob = await git.writeBlob(`round ${String(round)}`);
      const tree = await git.editTree(git.emptyTree, new Map([['f', { mode: '100644', oid: blob }]]));
      const commit = await git.writeCommit({ tree, parents: [], message: 'm', at: 0 });
      await git.moveRef(`refs/giro/keep/${String(round)}`, commit, null);
      blobs.push(blob);
      await repository.git('gc', '-q', '--prune=now');
      await expect(stat(loosePath(repository, blob))).rejects.toThrow('ENOENT');
      const read = await Promise.all([git, reader].map((one) => Promise.all(blobs.map((oid) => one.readBlob(oid)))));
      const texts = blobs.map((_, at) => `round ${String(at)}`);
      expect(read.map((each) => each.map(String))).toEqual([texts, texts]);
    }
  });

  test('goes on after its git was ended from outside', async () => {
    const repository = await makeRepository();
    const blob = await (await openRepository(repository)).writeBlob('x');
    const git = await openRepository(repository);
    await git.readCommit(git.user.head);
    const { stdout } = await exec('pgrep', ['-P', String(process.pid), '-f', 'git.* cat-file']);
    for (const pid of stdout.trim().split('\n').map(Number)) process.kill(pid, 'SIGKILL');
    const read = await Promise.all([git.readBlob(blob), git.readBlob(blob), git.readBlob(blob)]);
    expect(read.map(String)).toEqual(['x', 'x', 'x']);
  });

  test('gives large files, empty files and files with line ends whole', async () => {
    const git = await openRepository(await makeRepository());
    for (const data of [randomBytes(5_000_000), Buffer.alloc(0), Buffer.from('\n\n'), Buffer.from('abc missing\n')]) {
      expect(Buffer.compare(await git.readBlob(await git.writeBlob(data)), data)).toBe(0);
    }
  });

  test('gives files around the size from which they are compressed whole', async () => {
    const repository = await makeRepository();
    const [git, reader] = [await openRepository(repository), await openRepository(repository)];
    // With `blob 65524` and a NUL before it, the first is all that one stored block can hold.
    for (const size of [65_524, 65_525]) {
      const data = randomBytes(size);
      expect((await reader.readBlob(await git.writeBlob(data))).equals(data)).toBe(true);
    }
    await repository.git('fsck', '--full', '--no-dangling');
  });

  test('of something that is not there or of another kind fails with its name', async () => {
    const git = await openRepository(await makeRepository());
    const absent = parseOid('2'.repeat(40));
    await expect(git.readBlob(absent)).rejects.toThrow(GitError);
    await expect(git.readBlob(absent)).rejects.toThrow(absent);
    await expect(git.readBlob(git.user.head)).rejects.toThrow('is a commit, not a blob');
    await expect(git.readTree(await git.writeBlob('x'))).rejects.toThrow('is a blob, not a tree');
  });

  test('finds paths in trees and commits', async () => {
    const repository = await makeRepository({ files: { 'a/b/c.txt': 'c', 'a/link': 'x' } });
    const git = await openRepository(repository);
    const { head } = git.user;
    const blob = await repository.git('rev-parse', 'HEAD:a/b/c.txt');
    expect(await git.readPath(head, 'a/b/c.txt')).toEqual({ mode: '100644', oid: blob });
    expect(await git.readPath(head, 'a/b')).toEqual({
      mode: '040000',
      oid: await repository.git('rev-parse', 'HEAD:a/b'),
    });
    for (const path of ['a/b/d', 'x', 'a/link/x', 'a/b/c.txt/d']) expect(await git.readPath(head, path)).toBeNull();
  });

  test('lists a tree with many folders in one process and the same order', async () => {
    const files = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`d${String(at)}/e/f.txt`, 'x']));
    const repository = await makeRepository({ files });
    const git = await openRepository(repository);
    const expected = (await repository.git('ls-tree', '-r', '--name-only', 'HEAD')).split('\n');
    expect(await paths(git, git.user.head)).toEqual(expected);
    await git.listTree(git.user.head);
    expect(git.processes()).toBeLessThanOrEqual(5);
  });

  test('lists links, programs and submodules with their modes', async () => {
    const repository = await makeRepository();
    await repository.write('run', '#!', 0o755);
    await repository.git('add', '-A');
    await repository.git('update-index', '--add', '--cacheinfo', `160000,${await repository.head()},sub`);
    await repository.git('commit', '-q', '-m', 'modes');
    const git = await openRepository(repository);
    const files = await git.listTree(await repository.head());
    expect(files.map(({ path, mode }) => `${mode} ${path}`)).toEqual(['100644 README.md', '100755 run', '160000 sub']);
  });
});

test('a file of a commit is read without its folders, whatever it is called', async () => {
  const repository = await makeRepository();
  const git = await openRepository(repository);
  const commit = await commitOf(git, { 'a/b.md': 'plain', 'a/b c.md': 'with a space', 'a/ü.md': 'wide' });
  const read = async (path: string): Promise<string | undefined> => (await git.readOnce(commit, path))?.toString();
  expect(await Promise.all(['a/b.md', 'a/b c.md', 'a/ü.md'].map(read))).toEqual(['plain', 'with a space', 'wide']);
  expect(await Promise.all(['a', 'a/x.md', 'x/b.md', 'no such/b.md'].map(read))).toEqual(
    Array.from({ length: 4 }, () => undefined),
  );
});

describe('editing a tree', () => {
  const base = { 'a.txt': 'a', 'docs/specs/s/SPEC.md': 's', 'docs/guide.md': 'g', 'only/deep/file': 'f' };

  test('changes the given paths and nothing else; empty folders vanish', async () => {
    const git = await openRepository(await makeRepository());
    const tree = await treeOf(git, base);
    const oid = await git.writeBlob('new');
    const edited = await git.editTree(
      tree,
      new Map([
        ['only/deep/file', null],
        ['docs/specs', null],
        ['a.txt', { mode: '100755', oid }],
        ['x/y/z', { mode: '120000', oid }],
        ['absent/path', null],
        ['a/b', null],
      ]),
    );
    expect((await git.listTree(edited)).map(({ mode, path }) => `${mode} ${path}`)).toEqual([
      '100755 a.txt',
      '100644 docs/guide.md',
      '120000 x/y/z',
    ]);
  });

  test('takes whole folders in, and replaces files by folders and back', async () => {
    const git = await openRepository(await makeRepository());
    const tree = await treeOf(git, base);
    const specs = await git.readPath(tree, 'docs/specs');
    const code = await git.editTree(tree, new Map([['docs/specs', null]]));
    expect(await git.editTree(code, new Map([['docs/specs', specs]]))).toBe(tree);
    const oid = await git.writeBlob('new');
    expect(await paths(git, await git.editTree(tree, new Map([['a.txt/b', { mode: '100644', oid }]])))).toContain(
      'a.txt/b',
    );
    expect(await paths(git, await git.editTree(tree, new Map([['docs', { mode: '100644', oid }]])))).toEqual([
      'a.txt',
      'docs',
      'only/deep/file',
    ]);
    expect(await git.editTree(tree, new Map([['a.txt/b', null]]))).toBe(tree);
  });

  test('of everything gives the empty tree, and of nothing the same tree', async () => {
    const git = await openRepository(await makeRepository());
    const tree = await treeOf(git, { 'a/b': '1' });
    expect(await git.editTree(tree, new Map([['a', null]]))).toBe(git.emptyTree);
    expect(await git.editTree(tree, new Map())).toBe(tree);
    expect(await git.editTree(git.emptyTree, new Map())).toBe(git.emptyTree);
    expect(await git.readTree(git.emptyTree)).toEqual([]);
    const wide = await treeOf(git, { 'a/b': '1', 'c/d/e': '2' });
    expect(await git.editTree(wide, new Map([['c/d/e', null]]))).toBe(tree);
    const commit = await commitOf(git, { 'a/b': '1' });
    expect(await git.editTree(commit, new Map())).toBe(tree);
  });

  test('keeps names that are no text as they are', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const oid = await git.writeBlob('x');
    const odd = decodeName(Buffer.from([0x66, 0xff, 0x80, 0xc3, 0x28]));
    const tree = await git.editTree(git.emptyTree, new Map([[odd, { mode: '100644', oid }]]));
    const more = await git.editTree(tree, new Map([['plain', { mode: '100644', oid }]]));
    expect(await paths(git, more)).toEqual([odd, 'plain']);
    expect((await git.diffTrees(git.emptyTree, more)).map(({ path }) => path)).toEqual([odd, 'plain']);
    expect(await repository.git('ls-tree', '--name-only', more)).toBe('"f\\377\\200\\303("\nplain');
  });

  test('stores what a commit, a checkout or a comparison names, with all that is new below, and no step on the way', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const there = (oid: Oid): Promise<boolean> =>
      repository.git('cat-file', '-e', oid).then(
        () => true,
        () => false,
      );
    const oid = await git.writeBlob('x');
    const edit = (tree: Oid, path: string): Promise<Oid> =>
      git.editTree(tree, new Map([[path, { mode: '100644', oid }]]));
    const step = await edit(git.emptyTree, 'a/b/c');
    const last = await edit(step, 'a/b/d');
    expect(await Promise.all([step, last].map(there))).toEqual([false, false]);
    expect(await paths(git, step)).toEqual(['a/b/c']);
    await git.writeCommit({ tree: last, parents: [], message: 'm', at: 0 });
    expect(await Promise.all([step, last].map(there))).toEqual([false, true]);
    await repository.git('ls-tree', '-r', last);
    await git.diffTrees(step, last);
    expect(await there(step)).toBe(true);

    const folder = join(repository.folder, 'x');
    await mkdir(folder);
    const shown = await edit(last, 'e/f');
    await git.checkOut(folder, join(repository.folder, 'x.index'), shown);
    expect(await readFile(join(folder, 'e/f'), 'utf8')).toBe('x');
    // Anybody may take away what nothing names yet; it is stored again when it is named.
    const named = await edit(shown, 'g');
    await git.diffTrees(shown, named);
    await repository.git('gc', '-q', '--prune=now');
    expect(await there(named)).toBe(false);
    const again = await edit(await edit(git.emptyTree, 'a/b/c'), 'a/b/d');
    expect(again).toBe(last);
    await git.writeCommit({ tree: again, parents: [], message: 'again', at: 0 });
    expect(await there(last)).toBe(true);
  });

  test('stores a tree once, however many checkpoints are written at the same time', async () => {
    const stored: string[] = [];
    const objects = new Objects({
      hash: 'sha1',
      emptyTree: nameObject('sha1', 'tree', Buffer.alloc(0)),
      converse: () => Promise.reject(new Error('nothing is to be read')),
      name: (kind, data) => nameObject('sha1', kind, data),
      store: async (kind, data) => {
        const oid = nameObject('sha1', kind, data);
        stored.push(oid);
        await new Promise(setImmediate);
        return oid;
      },
    });
    const oid = await objects.writeBlob(Buffer.from('x'));
    // A folder as that of a thousand Issues, beyond what may be pending.
    const many = new Map(Array.from({ length: 1000 }, (_, at) => [`issues/${String(at)}-work.md`, file(oid)]));
    const tree = await objects.editTree(nameObject('sha1', 'tree', Buffer.alloc(0)), many);
    const other = await objects.writeBlob(Buffer.from('y'));
    const edited = await Promise.all(
      Array.from({ length: 64 }, (_, at) =>
        objects.editTree(tree, new Map([[`issues/${String(at)}-work.md`, file(other)]])),
      ),
    );
    await Promise.all(edited.map((one) => objects.settle(one)));
    expect(stored.filter((one) => edited.includes(parseOid(one)))).toHaveLength(64);
    expect(stored).toHaveLength(new Set(stored).size);
  });

  test.each(['', '/a', 'a/', 'a//b', '../a', 'a/./b', '.git/hooks/x', 'a/.GIT', 'a\0b'])('refuses %j', async (path) => {
    const git = await openRepository(await makeRepository());
    await expect(git.editTree(git.emptyTree, new Map([[path, null]]))).rejects.toThrow('not a path of a tree');
  });

  test('refuses a path below another edited path', async () => {
    const git = await openRepository(await makeRepository());
    const edits = ['a', 'a/b'].map((path) => [path, null] as const);
    await expect(git.editTree(git.emptyTree, new Map(edits))).rejects.toThrow('a/b');
    await expect(git.editTree(git.emptyTree, new Map(edits.toReversed()))).rejects.toThrow('"a"');
  });
});

describe('a loose object', () => {
  test('that exists is made young, so that gc keeps it', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const oid = await git.writeBlob('old');
    await utimes(loosePath(repository, oid), 1, 1);
    expect(await git.writeBlob('old')).toBe(oid);
    expect((await stat(loosePath(repository, oid))).mtimeMs).toBeGreaterThan(Date.UTC(2020, 0, 1));
  });

  test('is read-only, complete and without litter beside it', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const oid = await git.writeBlob('x');
    expect((await stat(loosePath(repository, oid))).mode & 0o222).toBe(0);
    expect(await readdir(join(loosePath(repository, oid), '..'))).toEqual([oid.slice(2)]);
  });

  test('of a shared repository can be read, and its folder written, by the group', async () => {
    const repository = await makeRepository();
    await repository.git('config', 'core.sharedRepository', 'group');
    const git = await openRepository(repository);
    const path = loosePath(repository, await git.writeBlob('shared'));
    expect((await stat(path)).mode & 0o440).toBe(0o440);
    expect((await stat(join(path, '..'))).mode & 0o2770).toBe(0o2770);
  });

  test('that cannot be written is an error, not a lost object', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const objects = join(repository.path, '.git', 'objects');
    const oid = nameObject('sha1', 'blob', Buffer.from('nowhere'));
    await writeFile(join(objects, oid.slice(0, 2)), 'in the way');
    await expect(git.writeBlob('nowhere')).rejects.toThrow();
    await chmod(join(objects, oid.slice(0, 2)), 0o600);
  });
});

describe('encoding', () => {
  test('of names loses no byte', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        expect(encodeName(decodeName(bytes))).toEqual(Buffer.from(bytes));
      }),
    );
  });

  test('of valid text is the text', () => {
    for (const text of ['ä ö ü', '日本', '😀', '\ufefffirst', 'a\u0301'])
      expect(decodeName(Buffer.from(text))).toBe(text);
    expect(decodeName(Buffer.from([0x61, 0xff]))).toBe('a\udcff');
  });

  test('of trees is read back as it was', () => {
    const entry = fc.record({
      mode: fc.constantFrom('100644', '100755', '120000', '040000', '160000'),
      name: fc.uint8Array({ minLength: 1, maxLength: 8 }).map((bytes) => decodeName(bytes.map((byte) => byte || 1))),
      oid: fc.uint8Array({ minLength: 20, maxLength: 20 }).map((bytes) => parseOid(Buffer.from(bytes).toString('hex'))),
    });
    const trees = fc.uniqueArray(entry, { selector: ({ name }) => name, maxLength: 20 });
    fc.assert(
      fc.property(trees, (entries: readonly TreeEntry[]) => {
        const data = encodeTree(entries);
        const read = decodeTree(data, 'sha1');
        expect(new Set(read)).toEqual(new Set(entries));
        expect(encodeTree(read.toReversed())).toEqual(data);
      }),
    );
  });

  test('of commits by others is understood: signatures, other encodings, no message', () => {
    const oid = parseOid('3'.repeat(40));
    const header = `tree ${oid}\nparent ${oid}\nauthor A <a> 1 +0100\ncommitter C <c> 1700000000 -0800\n`;
    const signed = `${header}encoding ISO-8859-1\ngpgsig -----BEGIN\n tree 5\n \n -----END\n`;
    const latin = Buffer.concat([Buffer.from(`${signed}\n`), Buffer.from([0xfc, 0x0a])]);
    expect(decodeCommit(oid, latin)).toEqual({
      oid,
      tree: oid,
      parents: [oid],
      message: 'ü\n',
      committedAt: 1_700_000_000,
    });
    expect(decodeCommit(oid, Buffer.from(`${header}\n`)).message).toBe('');
    expect(decodeCommit(oid, Buffer.from(`${header}encoding nonsense\n\nx`)).message).toBe('x');
  });
});

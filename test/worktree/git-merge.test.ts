import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseOid, type Oid } from '../../src/issue.js';
import type { Git, MergeOutcome } from '../../src/worktree/git-types.js';
import { GitError } from '../../src/worktree/git-types.js';
import { mergeApart } from '../../src/worktree/merge-apart.js';
import { commitOf, makeRepository, openRepository, treeOf } from '../rig/repository.js';

type Files = Readonly<Record<string, string | Uint8Array>>;

const lines = (count: number, start = 0): string =>
  Array.from({ length: count }, (_, at) => `line ${String(start + at)}\n`).join('');

async function merge(base: Files, ours: Files, theirs: Files): Promise<MergeOutcome> {
  const git = await openRepository(await makeRepository());
  const root = await commitOf(git, base);
  return git.mergeTrees(await commitOf(git, ours, root), await commitOf(git, theirs, root));
}

describe('merging', () => {
  test('two sides that do not meet is clean, and needs no files on disk', async () => {
    const git = await openRepository(await makeRepository());
    const root = await commitOf(git, { a: lines(9), b: 'b' });
    const ours = await commitOf(git, { a: `top\n${lines(9)}`, b: 'b' }, root);
    const theirs = await commitOf(git, { a: `${lines(9)}end\n`, b: 'b', c: 'c' }, root);
    const tree = await treeOf(git, { a: `top\n${lines(9)}end\n`, b: 'b', c: 'c' });
    expect(await git.mergeTrees(ours, theirs)).toEqual({ kind: 'clean', tree });
  });

  test.each<[string, Files, Files, Files, readonly string[]]>([
    ['the same lines', { f: lines(5) }, { f: `x\n${lines(4, 1)}` }, { f: `y\n${lines(4, 1)}` }, ['f']],
    ['both added a file', { k: 'k' }, { k: 'k', f: 'x' }, { k: 'k', f: 'y' }, ['f']],
    ['changed here, deleted there', { f: lines(5), k: 'k' }, { f: lines(6), k: 'k' }, { k: 'k' }, ['f']],
    ['deleted here, changed there', { f: lines(5), k: 'k' }, { k: 'k' }, { f: lines(6), k: 'k' }, ['f']],
    ['a binary file', { f: Buffer.from([0, 1, 2]) }, { f: Buffer.from([0, 3]) }, { f: Buffer.from([0, 4]) }, ['f']],
    ['renamed on both sides', { f: lines(20) }, { g: lines(20) }, { h: lines(20) }, ['f', 'g', 'h']],
    [
      'two files renamed to one',
      { a: lines(20), b: lines(20, 50) },
      { c: lines(20), b: lines(20, 50) },
      { a: lines(20), c: lines(20, 50) },
      ['c'],
    ],
    ['a file against a folder', { k: 'k' }, { k: 'k', f: 'x' }, { k: 'k', 'f/g': 'y' }, ['f']],
    [
      'a name with spaces and umlauts',
      { 'ä b/ü "ß".txt': '1' },
      { 'ä b/ü "ß".txt': '2' },
      { 'ä b/ü "ß".txt': '3' },
      ['ä b/ü "ß".txt'],
    ],
  ])('%s is a conflict with the right paths (C065)', async (_name, base, ours, theirs, files) => {
    const outcome = await merge(base, ours, theirs);
    if (outcome.kind !== 'conflict') throw new Error('clean');
    // A path in the way of a folder is given a second name by git; the first is what counts.
    const found = new Set(outcome.files.map((path) => path.replace(/~[0-9a-f]+$/, '')));
    expect([...found].sort()).toEqual(files);
    expect(outcome.messages.length).toBeGreaterThan(0);
    for (const message of outcome.messages) expect(message).toMatch(/^CONFLICT/);
  });

  test('two pointers of one submodule is a conflict (C065)', async () => {
    const git = await openRepository(await makeRepository());
    const at = async (digit: string, ...parents: readonly Oid[]): Promise<Oid> => {
      const pointer = { mode: '160000', oid: parseOid(digit.repeat(40)) };
      const tree = await git.editTree(git.emptyTree, new Map([['libs/sub', pointer]]));
      return git.writeCommit({ tree, parents, message: 'm', at: 0 });
    };
    const root = await at('1');
    const outcome = await git.mergeTrees(await at('2', root), await at('3', root));
    expect(outcome).toMatchObject({ kind: 'conflict', files: ['libs/sub'] });
  });

  test('leaves both versions in the conflicting file', async () => {
    const git = await openRepository(await makeRepository());
    const root = await commitOf(git, { f: 'one\n' });
    const outcome = await git.mergeTrees(
      await commitOf(git, { f: 'ours\n' }, root),
      await commitOf(git, { f: 'theirs\n' }, root),
    );
    const entry = await git.readPath(outcome.tree, 'f');
    const text = String(await git.readBlob(entry?.oid ?? git.emptyTree));
    expect(text).toMatch(/^<<<<<<< .*\nours\n=======\ntheirs\n>>>>>>> .*\n$/);
  });

  test('is not decided by attributes of a branch', async () => {
    const attributes = { '.gitattributes': '* merge=union\n' };
    const outcome = await merge({ f: '1\n', ...attributes }, { f: '2\n', ...attributes }, { f: '3\n', ...attributes });
    expect(outcome).toMatchObject({ kind: 'conflict', files: ['f'] });
  });

  test('of something that is no commit is a bug with the command and what git said', async () => {
    const git = await openRepository(await makeRepository());
    const absent = parseOid('4'.repeat(40));
    await expect(git.mergeTrees(git.user.head, absent)).rejects.toThrow(GitError);
    await expect(git.mergeTrees(git.user.head, absent)).rejects.toThrow(/merge-tree .*4444.*: exit \d+: /);
  });
});

describe('merging where there is nothing to decide', () => {
  test('needs no process of git, on a line of commits too', async () => {
    const git = await openRepository(await makeRepository());
    const root = await commitOf(git, { 'a/x': '1', 'b/x': '1', c: '1' });
    let tip = root;
    for (const round of ['1', '2', '3'])
      tip = await commitOf(git, { 'a/x': round, 'b/x': '1', c: '1', new: round }, tip);
    const mine = await commitOf(git, { 'a/x': '1', 'b/x': '2', c: '1', 'a/y': 'new' }, root);
    const merged = await treeOf(git, { 'a/x': '3', 'a/y': 'new', 'b/x': '2', c: '1', new: '3' });
    const before = git.processes();
    expect(await git.mergeTrees(tip, mine)).toEqual({ kind: 'clean', tree: merged });
    expect(await git.mergeTrees(mine, tip)).toEqual({ kind: 'clean', tree: merged });
    expect(git.processes()).toBe(before);
  });

  test('is left to git when a side has the other already, or somebody built on it', async () => {
    const git = await openRepository(await makeRepository());
    const root = await commitOf(git, { a: '1', b: '1' });
    const mine = await commitOf(git, { a: '2', b: '1' }, root);
    // Merged, and then undone again: that is no reason to do it once more.
    const merge = await git.writeCommit({
      tree: await treeOf(git, { a: '2', b: '1' }),
      parents: [root, mine],
      message: 'merge',
      at: 0,
    });
    const undone = await commitOf(git, { a: '1', b: '2' }, merge);
    expect(await git.mergeTrees(undone, mine)).toEqual({ kind: 'clean', tree: await treeOf(git, { a: '1', b: '2' }) });
  });

  test('gives what git gives, or leaves it to git, whatever the sides did', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const path = fc.constantFrom('a', 'b', 'd/a', 'd/b', 'd/e/a', 'f/a', 'd');
    const content = fc.constantFrom(null, '1', '2', lines(20), lines(20, 3));
    const change = fc.array(fc.tuple(path, content), { maxLength: 3 });
    const start = { a: '1', 'd/a': lines(20), 'd/e/a': '2', 'f/a': '1', k: 'k' };
    const counts = { apart: 0, git: 0 };
    await fc.assert(
      fc.asyncProperty(change, change, async (left, right) => {
        const base = await commitOf(git, start);
        const [ours, theirs] = [
          await changed(git, base, left).catch(() => null),
          await changed(git, base, right).catch(() => null),
        ];
        if (ours === null || theirs === null) return;
        const apart = await mergeApart(git, { base, ours, theirs });
        counts[apart === null ? 'git' : 'apart'] += 1;
        if (apart === null) return;
        expect(await repository.git('merge-tree', '--write-tree', ours, theirs)).toBe(apart);
      }),
      { numRuns: 150 },
    );
    expect(counts.apart).toBeGreaterThan(20);
    expect(counts.git).toBeGreaterThan(20);
  });
});

/** A commit with some files written or removed. */
async function changed(git: Git, base: Oid, changes: readonly (readonly [string, string | null])[]): Promise<Oid> {
  let tree = base;
  for (const [path, content] of changes) {
    const edit = content === null ? null : { mode: '100644', oid: await git.writeBlob(content) };
    tree = await git.editTree(tree, new Map([[path, edit]]));
  }
  return git.writeCommit({ tree: await git.editTree(tree, new Map()), parents: [base], message: 'm', at: 1 });
}

describe('questions that git answers by exit code (C068)', () => {
  test('merged? different? there? are answered no, yes, no', async () => {
    const git = await openRepository(await makeRepository());
    const root = await commitOf(git, { a: '1' });
    const tip = await commitOf(git, { a: '2' }, root);
    const side = await commitOf(git, { a: '3' }, root);
    expect(await git.isAncestor(side, tip)).toBe(false);
    expect(await git.isAncestor(tip, root)).toBe(false);
    expect(await git.isAncestor(root, tip)).toBe(true);
    expect(await git.isAncestor(tip, tip)).toBe(true);
    expect((await git.diffTrees(side, tip)).length).toBe(1);
    expect(await git.diffTrees(tip, tip)).toEqual([]);
    expect(await git.readRef('refs/heads/giro/absent')).toBeNull();
    expect(await git.isAncestor(parseOid('5'.repeat(40)), tip)).toBe(false);
    expect(await git.isAncestor(tip, parseOid('5'.repeat(40)))).toBe(false);
  });

  test('a question that makes no sense is an error, not a no', async () => {
    const git = await openRepository(await makeRepository());
    const blob = await git.writeBlob('x');
    await expect(git.isAncestor(blob, git.user.head)).rejects.toThrow(GitError);
  });

  test('the common ancestor is found, or there is none', async () => {
    const git = await openRepository(await makeRepository());
    const root = await commitOf(git, { a: '1' });
    expect(await git.mergeBase(await commitOf(git, { a: '2' }, root), await commitOf(git, { a: '3' }, root))).toBe(
      root,
    );
    expect(await git.mergeBase(root, await commitOf(git, { b: '1' }))).toBeNull();
  });
});

describe('comparing trees', () => {
  test('is one process for all comparisons, and goes on when that was ended', async () => {
    const git = await openRepository(await makeRepository());
    const trees = [await treeOf(git, { a: '1' }), await treeOf(git, { a: '2\n', 'new\nline': 'x' })] as const;
    const names = async (): Promise<readonly string[]> => (await git.diffTrees(...trees)).map(({ path }) => path);
    expect(await names()).toEqual(['a', 'new\nline']);
    const before = git.processes();
    expect(await Promise.all([names(), names(), names()])).toEqual(Array(3).fill(['a', 'new\nline']));
    expect(git.processes()).toBe(before);
    const own = execFileSync('pgrep', ['-P', String(process.pid), '-f', 'git.* diff-tree'], { encoding: 'utf8' });
    for (const pid of own.trim().split('\n').map(Number)) process.kill(pid, 'SIGKILL');
    expect(await names()).toEqual(['a', 'new\nline']);
    await expect(git.diffTrees(trees[0], parseOid('4'.repeat(40)))).rejects.toThrow(GitError);
    expect(await names()).toEqual(['a', 'new\nline']);
  });

  const before = { changed: lines(4), gone: 'g\n', 'ü x': '1\n', binary: Buffer.from([0, 1]), kept: 'k' };
  const after = { changed: `${lines(2)}new\n`, 'ü x': '2\n', binary: Buffer.from([0, 2]), kept: 'k', moved: 'g\n' };

  test('counts lines, and calls a rename what it is: one file gone, one new', async () => {
    const git = await openRepository(await makeRepository());
    const changes = await git.diffTrees(await treeOf(git, before), await treeOf(git, after));
    expect(
      changes.map(({ path, status, insertions, deletions, binary }) => [path, status, insertions, deletions, binary]),
    ).toEqual([
      ['binary', 'modified', 0, 0, true],
      ['changed', 'modified', 1, 2, false],
      ['gone', 'deleted', 0, 1, false],
      ['moved', 'added', 1, 0, false],
      ['ü x', 'modified', 1, 1, false],
    ]);
  });

  test('tells modes and kinds apart', async () => {
    const git = await openRepository(await makeRepository());
    const oid = await git.writeBlob('x');
    const from = await treeOf(git, { run: 'x', link: 'x' });
    const to = await git.editTree(
      from,
      new Map([
        ['run', { mode: '100755', oid }],
        ['link', { mode: '120000', oid }],
      ]),
    );
    expect(await git.diffTrees(from, to)).toMatchObject([
      { path: 'link', status: 'type-changed', oldMode: '100644', newMode: '120000' },
      { path: 'run', status: 'modified', oldMode: '100644', newMode: '100755', insertions: 0, deletions: 0 },
    ]);
  });

  test('shows a new or moved submodule like any other change', async () => {
    const git = await openRepository(await makeRepository());
    const at = (digit: string) => new Map([['sub', { mode: '160000', oid: parseOid(digit.repeat(40)) }]]);
    const one = await git.editTree(git.emptyTree, at('1'));
    const two = await git.editTree(git.emptyTree, at('2'));
    expect(await git.diffTrees(git.emptyTree, one)).toMatchObject([
      { path: 'sub', status: 'added', newMode: '160000' },
    ]);
    expect(await git.diffTrees(one, two)).toMatchObject([{ path: 'sub', status: 'modified', newMode: '160000' }]);
    expect(await git.patch(one, two, 1000)).toContain(`+Subproject commit ${'2'.repeat(40)}`);
  });

  test('shows text even when attributes call it binary, and cuts what is too long at a line', async () => {
    const git = await openRepository(await makeRepository());
    const from = await treeOf(git, { '.gitattributes': '* -diff\n', f: 'one\n' });
    const to = await treeOf(git, { '.gitattributes': '* -diff\n', f: 'two ü\n' });
    const patch = await git.patch(from, to, 10_000);
    expect(patch).toContain('-one\n+two ü\n');
    expect(await git.diffTrees(from, to)).toMatchObject([{ path: 'f', binary: false, insertions: 1 }]);
    const long = await git.patch(from, await treeOf(git, { f: 'ü long line\n'.repeat(100_000) }), 1000);
    expect(Buffer.byteLength(long)).toBeLessThan(1100);
    expect(long).toMatch(/\n\+ü long line\n\[the diff is longer than 1000 bytes; the rest is left out\]\n$/);
    expect(await git.patch(from, to, Buffer.byteLength(patch))).toBe(patch);
  });
});

describe('the log of blobs', () => {
  async function history(git: Git): Promise<{ root: Oid; commits: readonly Oid[]; merge: Oid }> {
    const root = await commitOf(git, { 'docs/a.md': '1', code: '1' });
    const one = await commitOf(git, { 'docs/a.md': '2', code: '1' }, root);
    const code = await commitOf(git, { 'docs/a.md': '2', code: '2' }, one);
    const side = await commitOf(git, { 'docs/a.md': '1', 'docs/ü/b.md': 'b', code: '1' }, root);
    const merged = await commitOf(git, { 'docs/a.md': '2', 'docs/ü/b.md': 'b', code: '2' }, code, side);
    const gone = await commitOf(git, { 'docs/ü/b.md': 'b', code: '2' }, merged);
    return { root, commits: [gone, merged, code, one, side], merge: merged };
  }

  test('has every commit, also merges and those that change nothing there, against the first parent', async () => {
    const git = await openRepository(await makeRepository());
    const { root, commits, merge: merged } = await history(git);
    const tip = commits[0] ?? root;
    const log = await git.logBlobs([tip], [root], 'docs');
    expect(new Set(log.map(({ commit }) => commit))).toEqual(new Set(commits));
    expect(log[0]?.commit).toBe(tip);
    const changes = new Map(log.map((entry) => [entry.commit, entry.changes]));
    expect(changes.get(tip)).toEqual([{ path: 'docs/a.md', oid: null }]);
    expect(changes.get(merged)).toEqual([{ path: 'docs/ü/b.md', oid: await git.writeBlob('b') }]);
    expect(changes.get(commits[2] ?? root)).toEqual([]);
    expect(changes.get(commits[3] ?? root)).toEqual([{ path: 'docs/a.md', oid: await git.writeBlob('2') }]);
  });

  test('of no tips, of what is known already, and of a first commit', async () => {
    const git = await openRepository(await makeRepository());
    const { root, commits } = await history(git);
    expect(await git.logBlobs([], [root], 'docs')).toEqual([]);
    expect(await git.logBlobs(commits, commits, 'docs')).toEqual([]);
    expect(await git.logBlobs([root], [], 'docs')).toEqual([
      { commit: root, message: 'commit\n', changes: [{ path: 'docs/a.md', oid: await git.writeBlob('1') }] },
    ]);
  });

  test('keeps messages whole, whatever is in them', async () => {
    const git = await openRepository(await makeRepository());
    const message = ':100644 like a record\n\n\u0001 odd\n\nGiro-Trailer: ü\n';
    const commit = await git.writeCommit({ tree: git.emptyTree, parents: [], message, at: 0 });
    expect(await git.logBlobs([commit], [], 'docs')).toEqual([{ commit, message, changes: [] }]);
  });
});

test('a shallow repository merges and compares what it has', async () => {
  const origin = await makeRepository({ files: { a: '1' } });
  for (const content of ['2', '3']) {
    await origin.write('a', content);
    await origin.commit(content);
  }
  const repository = await makeRepository();
  await repository.git('fetch', '-q', '--depth=2', `file://${origin.path}`, 'main');
  await repository.git('reset', '-q', '--hard', 'FETCH_HEAD');
  const git = await openRepository(repository);
  const [border] = (await git.readCommit(git.user.head)).parents;
  if (border === undefined) throw new Error('no parent');
  const ours = await commitOf(git, { a: '3', b: 'b' }, git.user.head);
  const theirs = await commitOf(git, { a: '2', c: 'c' }, border);
  expect(await git.mergeBase(ours, theirs)).toBe(border);
  expect(await git.mergeTrees(ours, theirs)).toEqual({
    kind: 'clean',
    tree: await treeOf(git, { a: '3', b: 'b', c: 'c' }),
  });
  expect(await git.logBlobs([ours], [], 'a')).toHaveLength(3);
});

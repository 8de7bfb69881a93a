import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { IssueId, Oid } from '../../src/issue.js';
import type { Worktree } from '../../src/worktree/worktrees.js';
import { agentGit, issueId, startRun, type FolderRig } from '../rig/folders.js';
import { makeRepository, type TestRepository } from '../rig/repository.js';

const first = issueId('01-login');
const second = issueId('02-store');

async function makeProject(): Promise<TestRepository> {
  return makeRepository({
    files: { 'a.txt': 'a\n', 'src/b.txt': 'b\n', 'src/c.txt': 'c\n', '.gitignore': 'node_modules\n/out/\n' },
  });
}

/** Prepares a folder on a commit with the commit's own files; a failure fails the test. */
async function prepared(rig: FolderRig, issue: IssueId, commit: Oid, files?: Oid): Promise<Worktree> {
  const tree = files ?? (await rig.git.readCommit(commit)).tree;
  const result = await rig.worktrees.prepare(issue, commit, tree);
  if (!result.ok) throw new Error(JSON.stringify(result.failure));
  return result.value;
}

async function pathsOf(rig: FolderRig, tree: Oid | null): Promise<readonly string[]> {
  return tree === null ? [] : (await rig.git.listTree(tree)).map(({ path }) => path);
}

async function textOf(rig: FolderRig, tree: Oid | null, path: string): Promise<string | null> {
  const entry = tree === null ? null : await rig.git.readPath(tree, path);
  return entry === null ? null : (await rig.git.readBlob(entry.oid)).toString();
}

function read(worktree: Worktree, path: string): Promise<string> {
  return readFile(join(worktree.folder, path), 'utf8');
}

async function write(worktree: Worktree, path: string, text: string): Promise<void> {
  await mkdir(dirname(join(worktree.folder, path)), { recursive: true });
  await writeFile(join(worktree.folder, path), text);
}

/** What of a fingerprint is not in the worktrees' own folder. */
function outside(fingerprint: string): readonly string[] {
  return fingerprint.split('\n').filter((line) => !line.startsWith('file inside/'));
}

async function salvaged(rig: FolderRig): Promise<ReadonlyMap<string, Oid>> {
  return rig.git.listRefs('refs/giro/salvage/');
}

describe('preparing', () => {
  test('gives the files of the commit, on a detached HEAD, clean to git, locked with its name, without a branch', async () => {
    const repository = await makeProject();
    const before = await repository.fingerprint();
    const rig = await startRun(repository);
    const head = await repository.head();

    const worktree = await prepared(rig, first, head);

    expect(await read(worktree, 'src/b.txt')).toBe('b\n');
    expect(worktree).toMatchObject({ issue: first, commit: head, slot: { number: 1 } });
    expect(await agentGit(worktree.folder, 'rev-parse', 'HEAD')).toBe(head);
    expect(await agentGit(worktree.folder, 'status', '--porcelain', '--branch')).toBe('## HEAD (no branch)');
    expect(await repository.git('worktree', 'list', '--porcelain')).toContain('locked giro auth 01-login');
    expect(await repository.git('branch', '--list')).toBe('* main');
    expect(await repository.fingerprint()).toBe(before);
  });

  test('shows other files than those of the commit: to git they are changes on top of it', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const head = await repository.head();
    const blob = await rig.git.writeBlob('<<<<<<< ours\n');
    const marked = await rig.git.editTree(head, new Map([['a.txt', { mode: '100644', oid: blob }]]));

    const worktree = await prepared(rig, first, head, marked);

    expect(await read(worktree, 'a.txt')).toBe('<<<<<<< ours\n');
    expect(await agentGit(worktree.folder, 'status', '--porcelain')).toBe(' M a.txt');
    expect(await agentGit(worktree.folder, 'rev-parse', 'HEAD')).toBe(head);
    expect((await rig.worktrees.takeBack(worktree)).tree).toBe(marked);
  });

  test('12 at once from a base with an upstream, five rounds: none fails, none shares a folder, no branch is left', async () => {
    const repository = await makeProject();
    await repository.git('config', 'remote.origin.url', repository.path);
    await repository.git('update-ref', 'refs/remotes/origin/main', 'HEAD');
    await repository.git('config', 'branch.main.remote', 'origin');
    await repository.git('config', 'branch.main.merge', 'refs/heads/main');
    await repository.git('config', 'branch.autoSetupMerge', 'always');
    const rig = await startRun(repository);
    const head = await repository.head();
    for (let round = 0; round < 5; round += 1) {
      const issues = Array.from({ length: 12 }, (_, at) => issueId(`${String(round * 12 + at + 1)}-x`));
      const worktrees = await Promise.all(issues.map((issue) => prepared(rig, issue, head)));
      expect(new Set(worktrees.map(({ folder }) => folder)).size).toBe(12);
      expect(new Set(worktrees.map(({ slot }) => slot.portBase)).size).toBe(12);
      for (const worktree of worktrees) expect(await read(worktree, 'a.txt')).toBe('a\n');
      if (round % 2 === 0) for (const worktree of worktrees) rig.worktrees.release(worktree);
      if (round === 2) await rig.worktrees.close();
    }
    expect(await repository.git('for-each-ref', '--format=%(refname)', 'refs/heads')).toBe('refs/heads/main');
    expect(rig.notices).toEqual([]);
  }, 60_000);

  test('a plain folder at the name survives, is said once, and another name is used', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    await mkdir(join(rig.root, 'w1'), { recursive: true });
    await writeFile(join(rig.root, 'w1', 'mine.txt'), 'mine\n');

    const worktree = await prepared(rig, first, await repository.head());
    await prepared(rig, second, await repository.head());

    expect(basename(worktree.folder)).toBe('w2');
    expect(worktree.slot.number).toBe(2);
    expect(await readdir(join(rig.root, 'w1'))).toEqual(['mine.txt']);
    expect(rig.notices).toEqual([expect.stringContaining('w1 is in the way')]);
  });

  test('a folder deleted by hand is made again, in this run and in the next', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const worktree = await prepared(rig, first, await repository.head());
    await rm(worktree.folder, { recursive: true });
    const next = await repository.commit('next');

    expect((await prepared(rig, first, next)).folder).toBe(worktree.folder);
    expect(await agentGit(worktree.folder, 'status', '--porcelain', '--branch')).toBe('## HEAD (no branch)');

    await rm(worktree.folder, { recursive: true });
    const later = await startRun(repository);
    expect(await later.worktrees.find(first)).toBeNull();
    expect((await prepared(later, first, next)).folder).toBe(worktree.folder);
    expect(await read(worktree, 'src/c.txt')).toBe('c\n');
    expect(await agentGit(worktree.folder, 'rev-parse', 'HEAD')).toBe(next);
    expect([...(await salvaged(later))]).toEqual([]);
  });

  test('a folder whose notes a kill came before is filled all the same', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const head = await repository.head();
    const worktree = await prepared(rig, first, head);
    await rm(join(rig.root, 'store'), { recursive: true });
    const later = await startRun(repository);
    expect((await prepared(later, first, head)).folder).toBe(worktree.folder);
    expect(await read(worktree, 'src/c.txt')).toBe('c\n');
  });

  test('what an earlier run left to an Issue that is integrated by now goes; what no tree has is saved before', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const head = await repository.head();
    const done = await prepared(rig, first, head);
    const changed = await prepared(rig, second, head);
    await write(done, 'a.txt', 'A\n');
    await write(changed, 'b.txt', 'B\n');
    const trees = new Map([
      [first, [(await rig.worktrees.takeBack(done)).tree].flatMap((tree) => tree ?? [])],
      [second, []],
    ]);

    const later = await startRun(repository);
    await later.worktrees.reclaim(trees);
    await later.worktrees.close();
    expect(await repository.git('worktree', 'list')).not.toMatch(/\/w[12]/);
    expect(await repository.git('show', 'refs/giro/salvage/auth/02-store/1:b.txt')).toBe('B');
    expect([...(await salvaged(later))]).toHaveLength(1);
  });

  test('a repository and a root reached through links are the same worktrees', async () => {
    const repository = await makeProject();
    await symlink(repository.path, join(repository.folder, 'link'));
    await mkdir(join(repository.folder, 'cache'));
    await symlink(join(repository.folder, 'cache'), join(repository.folder, 'cache-link'));
    const root = join(repository.folder, 'cache-link', 'auth');
    const linked = await startRun(repository, { folder: join(repository.folder, 'link'), root });
    const worktree = await prepared(linked, first, await repository.head());
    expect(worktree.folder).toBe(join(repository.folder, 'cache', 'auth', 'w1'));

    const direct = await startRun(repository);
    expect((await direct.worktrees.find(first))?.folder).toBe(worktree.folder);
    const again = await startRun(repository, { folder: join(repository.folder, 'link'), root });
    const found = await again.worktrees.find(first);
    expect(found?.folder).toBe(worktree.folder);
    if (found !== null) again.worktrees.release(found);
    await again.worktrees.close();
    await again.git.close();
    expect(await repository.git('worktree', 'list')).not.toContain('/w1');
    expect(existsSync(worktree.folder)).toBe(false);
  });

  test('its own folder is not cleaned between attempts: what a build left stays', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const head = await repository.head();
    const worktree = await prepared(rig, first, head);
    await write(worktree, 'out/cache', 'built\n');
    await rig.worktrees.takeBack(worktree);
    await prepared(rig, first, head);
    expect(await read(worktree, 'out/cache')).toBe('built\n');
  });

  test('what a merge or a rebase left in its git dir is gone, and git is detached again', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const head = await repository.head();
    const worktree = await prepared(rig, first, head);
    await agentGit(worktree.folder, 'switch', '-c', 'mine');
    const admin = await agentGit(worktree.folder, 'rev-parse', '--absolute-git-dir');
    await writeFile(join(admin, 'MERGE_HEAD'), `${head}\n`);
    await mkdir(join(admin, 'rebase-merge'));
    await writeFile(join(admin, 'index.lock'), '');
    await rig.worktrees.takeBack(worktree);
    await prepared(rig, first, head);
    expect(await agentGit(worktree.folder, 'status')).toBe(
      'Not currently on any branch.\nnothing to commit, working tree clean',
    );
    expect(await repository.git('rev-parse', 'mine')).toBe(head);
  });

  test('admin files that an agent pointed elsewhere are put right', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const head = await repository.head();
    const worktree = await prepared(rig, first, head);
    const admin = await agentGit(worktree.folder, 'rev-parse', '--absolute-git-dir');
    await writeFile(join(admin, 'gitdir'), '/elsewhere/.git\n');
    await rm(join(admin, 'HEAD'));
    await symlink(join(repository.path, '.git', 'HEAD'), join(admin, 'HEAD'));
    await rm(join(admin, 'commondir'));
    const before = await repository.fingerprint();
    await rig.worktrees.takeBack(worktree);
    await prepared(rig, first, head);
    expect(await agentGit(worktree.folder, 'status', '--porcelain', '--branch')).toBe('## HEAD (no branch)');
    expect(await repository.git('worktree', 'list', '--porcelain')).toContain(
      `worktree ${worktree.folder}\nHEAD ${head}`,
    );
    expect(await repository.fingerprint()).toBe(before);
  });

  test('a failed set-up is a failure with the end of its output, and is tried again', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository, {
      policy: { setup: 'cat a.txt; test -e "$HOME/go" && touch out-of-setup' },
    });
    const head = await repository.head();
    const { tree } = await rig.git.readCommit(head);
    const failure = await rig.worktrees.prepare(first, head, tree);
    expect(failure).toMatchObject({
      ok: false,
      failure: { kind: 'environment', message: expect.stringContaining('exit 1') },
    });
    expect(JSON.stringify(failure)).toContain('a\\nThe whole output: ');
    await writeFile(join(repository.home, 'go'), '');
    const worktree = await prepared(rig, first, head);
    expect(await read(worktree, 'out-of-setup')).toBe('');
    expect((await rig.worktrees.takeBack(worktree)).tree).toBe(tree);
  });

  test('a set-up that writes git config or tracked files changes neither the repository nor the work', async () => {
    const repository = await makeProject();
    const before = await repository.fingerprint();
    const setup =
      'git config core.hooksPath .husky && git rev-parse HEAD && echo changed > a.txt && mkdir node_modules';
    const rig = await startRun(repository, { policy: { setup } });
    const head = await repository.head();
    const worktree = await prepared(rig, first, head);
    expect(await read(worktree, 'a.txt')).toBe('a\n');
    expect(await agentGit(worktree.folder, 'status', '--porcelain', '--branch')).toBe('## HEAD (no branch)');
    expect(rig.notices).toEqual([expect.stringContaining('put back: a.txt')]);
    expect(await repository.fingerprint()).toBe(before);
  });
});

describe('taking back', () => {
  test('takes what was added, changed, removed and made executable, but nothing ignored', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const worktree = await prepared(rig, first, await repository.head());
    await write(worktree, 'new/file.txt', 'new\n');
    await write(worktree, 'a.txt', 'A\n');
    await write(worktree, 'out/built', 'x');
    await rm(join(worktree.folder, 'src/c.txt'));

    const taken = await rig.worktrees.takeBack(worktree);

    expect(taken).toMatchObject({ refused: [], subjects: [], elsewhere: [] });
    expect(await pathsOf(rig, taken.tree)).toEqual(['.gitignore', 'a.txt', 'new/file.txt', 'src/b.txt']);
    expect(await textOf(rig, taken.tree, 'a.txt')).toBe('A\n');
  });

  test('takes files whatever the agent told its own index', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const worktree = await prepared(rig, first, await repository.head());
    await agentGit(worktree.folder, 'update-index', '--assume-unchanged', 'a.txt');
    await agentGit(worktree.folder, 'update-index', '--skip-worktree', 'src/b.txt');
    await write(worktree, 'a.txt', 'A\n');
    await write(worktree, 'src/b.txt', 'B\n');
    const { tree } = await rig.worktrees.takeBack(worktree);
    expect(await textOf(rig, tree, 'a.txt')).toBe('A\n');
    expect(await textOf(rig, tree, 'src/b.txt')).toBe('B\n');
  });

  test('names the commits of an agent that its HEAD contains, on its own branch too', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const worktree = await prepared(rig, first, await repository.head());
    await agentGit(worktree.folder, 'switch', '-c', 'mine');
    await write(worktree, 'one.txt', '1\n');
    await agentGit(worktree.folder, 'add', '-A');
    await agentGit(worktree.folder, 'commit', '-m', 'one');
    await agentGit(worktree.folder, 'switch', '--detach');
    await write(worktree, 'two.txt', '2\n');
    await agentGit(worktree.folder, 'add', '-A');
    await agentGit(worktree.folder, 'commit', '-m', 'two');
    await write(worktree, 'three.txt', '3\n');

    const taken = await rig.worktrees.takeBack(worktree);

    expect(taken).toMatchObject({ refused: [], subjects: ['one', 'two'], elsewhere: [] });
    expect(await pathsOf(rig, taken.tree)).toContain('three.txt');
    expect([...(await salvaged(rig))]).toEqual([]);
  });

  test.each([
    ['a branch it left again', 'branch', ['switch', '-c', 'mine'], ['switch', '--detach', 'main']],
    ['a detached commit it left again', 'commit', ['switch', '--detach'], ['reset', '--hard', 'main']],
  ])('finds and saves work that is only on %s', async (_, where, before, after) => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const worktree = await prepared(rig, first, await repository.head());
    await agentGit(worktree.folder, ...before);
    await write(worktree, 'one.txt', '1\n');
    await agentGit(worktree.folder, 'add', '-A');
    await agentGit(worktree.folder, 'commit', '-m', 'one');
    const commit = await agentGit(worktree.folder, 'rev-parse', 'HEAD');
    await agentGit(worktree.folder, ...after);

    const taken = await rig.worktrees.takeBack(worktree);

    const ref = 'refs/giro/salvage/auth/01-login/1';
    expect(taken).toMatchObject({ subjects: [], elsewhere: [{ oid: commit, subject: 'one', where, ref }] });
    expect(await repository.git('rev-parse', ref)).toBe(commit);
    expect(await pathsOf(rig, taken.tree)).not.toContain('one.txt');
  });

  test('commits that were amended or squashed are not work that went missing', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const worktree = await prepared(rig, first, await repository.head());
    for (const text of ['1\n', '2\n']) {
      await write(worktree, 'one.txt', text);
      await agentGit(worktree.folder, 'add', '-A');
      await agentGit(worktree.folder, 'commit', '-m', `one ${text.trim()}`);
    }
    await agentGit(worktree.folder, 'reset', '--soft', 'HEAD~2');
    await write(worktree, 'one.txt', '3\n');
    await agentGit(worktree.folder, 'commit', '-a', '-m', 'squashed');
    await write(worktree, 'one.txt', '4\n');
    await agentGit(worktree.folder, 'commit', '-a', '--amend', '-m', 'amended');
    const taken = await rig.worktrees.takeBack(worktree);
    expect(taken).toMatchObject({ subjects: ['amended'], elsewhere: [] });
  });

  test('a stash counts for the agent whose commit it was made on, and for no other', async () => {
    const repository = await makeProject();
    await write({ folder: repository.path } as Worktree, 'a.txt', 'of the person\n');
    await repository.git('stash');
    const rig = await startRun(repository);
    const base = await repository.head();
    const { tree } = await rig.git.readCommit(base);
    const commits = await Promise.all(
      ['A', 'B'].map((message) => rig.git.writeCommit({ tree, parents: [base], message, at: 0 })),
    );
    const [one, two] = [
      await prepared(rig, first, commits[0] ?? base),
      await prepared(rig, second, commits[1] ?? base),
    ];
    await write(one, 'a.txt', 'of A\n');
    await agentGit(one.folder, 'stash');
    await write(two, 'new.txt', 'of B\n');
    await agentGit(two.folder, 'stash', '-u');
    const theirs = await repository.git('stash', 'list');

    const [ofOne, ofTwo] = [await rig.worktrees.takeBack(one), await rig.worktrees.takeBack(two)];

    expect(ofOne.elsewhere).toMatchObject([{ where: 'stash', ref: 'refs/giro/salvage/auth/01-login/1' }]);
    expect(await repository.git('show', 'refs/giro/salvage/auth/01-login/1:a.txt')).toBe('of A');
    expect(ofTwo.elsewhere).toMatchObject([{ where: 'stash' }]);
    expect(await repository.git('show', 'refs/giro/salvage/auth/02-store/1^3:new.txt')).toBe('of B');
    expect(await repository.git('stash', 'list')).toBe(theirs);

    await prepared(rig, first, one.commit);
    expect((await rig.worktrees.takeBack(one)).elsewhere).toEqual([]);
  });

  test('a .git that was deleted or replaced is refused; the files are taken without going near it', async () => {
    const repository = await makeProject();
    const root = join(repository.path, 'inside');
    const rig = await startRun(repository, { root });
    const head = await repository.head();
    const [one, two] = [await prepared(rig, first, head), await prepared(rig, second, head)];
    const before = await repository.fingerprint();
    await rm(join(one.folder, '.git'));
    await write(one, 'a.txt', 'A\n');
    await rm(join(two.folder, '.git'));
    await agentGit(two.folder, 'init', '-q');
    await write(two, 'a.txt', 'AA\n');
    await agentGit(two.folder, 'add', '-A');
    await agentGit(two.folder, 'commit', '-qm', 'own');

    const [ofOne, ofTwo] = [await rig.worktrees.takeBack(one), await rig.worktrees.takeBack(two)];

    expect(ofOne.refused).toMatchObject([{ file: '.git' }]);
    expect(await textOf(rig, ofOne.tree, 'a.txt')).toBe('A\n');
    expect(ofTwo.refused).toMatchObject([{ file: '.git' }]);
    expect(await textOf(rig, ofTwo.tree, 'a.txt')).toBe('AA\n');
    expect(outside(await repository.fingerprint())).toEqual(outside(before));

    await prepared(rig, first, head);
    await prepared(rig, second, head);
    expect(await agentGit(one.folder, 'rev-parse', 'HEAD')).toBe(head);
    expect(await agentGit(two.folder, 'rev-parse', 'HEAD')).toBe(head);
    const aside = /moved to (.*)$/.exec(rig.notices.join('\n'))?.[1] ?? '';
    expect(await agentGit(aside, 'log', '--format=%s')).toBe('own');
  });

  test('a repository inside the work is refused, then moved out of the way, and its files are saved', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const head = await repository.head();
    const worktree = await prepared(rig, first, head);
    await mkdir(join(worktree.folder, 'lib'));
    await agentGit(join(worktree.folder, 'lib'), 'init', '-q');
    await write(worktree, 'lib/x.txt', 'x\n');

    const taken = await rig.worktrees.takeBack(worktree);
    expect(taken.tree).toBeNull();
    expect(taken.refused).toMatchObject([{ file: 'lib/.git' }]);

    await prepared(rig, first, head);
    expect(existsSync(join(worktree.folder, 'lib'))).toBe(false);
    expect(await repository.git('show', 'refs/giro/salvage/auth/01-login/1:lib/x.txt')).toBe('x');
    const aside = /moved to (.*)$/m.exec(rig.notices.join('\n'))?.[1] ?? '';
    expect(existsSync(join(aside, 'HEAD'))).toBe(true);
  });

  test('a pipe that git would wait for is refused, and is gone before the next attempt', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const head = await repository.head();
    const worktree = await prepared(rig, first, head);
    await rm(join(worktree.folder, '.gitignore'));
    for (const name of ['.gitignore', 'src/.gitattributes']) execFileSync('mkfifo', [join(worktree.folder, name)]);
    await write(worktree, 'new.txt', 'kept\n');
    const taken = await rig.worktrees.takeBack(worktree);
    expect(taken.tree).toBeNull();
    expect(taken.refused.map(({ file }) => file)).toEqual(['.gitignore', 'src/.gitattributes']);
    expect(taken.refused[0]?.message).toBe('not a regular file, though git reads it: .gitignore; remove it');

    await prepared(rig, first, head);
    expect(await agentGit(worktree.folder, 'status', '--porcelain')).toBe('');
    expect(await repository.git('show', 'refs/giro/salvage/auth/01-login/1:new.txt')).toBe('kept');
  });

  test('a repository below an ignored folder is nobody’s business', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const worktree = await prepared(rig, first, await repository.head());
    await mkdir(join(worktree.folder, 'out/modules/x'), { recursive: true });
    await agentGit(join(worktree.folder, 'out/modules/x'), 'init', '-q');
    await write(worktree, 'a.txt', 'A\n');
    const taken = await rig.worktrees.takeBack(worktree);
    expect(taken.refused).toEqual([]);
    expect(await textOf(rig, taken.tree, 'a.txt')).toBe('A\n');
  });

  test('a link that leaves the work is refused, and what was there is saved before the next attempt', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const head = await repository.head();
    const worktree = await prepared(rig, first, head);
    await symlink(repository.path, join(worktree.folder, 'main'));
    await write(worktree, 'a.txt', 'A\n');
    const taken = await rig.worktrees.takeBack(worktree);
    expect(taken.tree).toBeNull();
    expect(taken.refused).toMatchObject([{ file: 'main' }]);
    await prepared(rig, first, head);
    expect(await repository.git('show', 'refs/giro/salvage/auth/01-login/1:a.txt')).toBe('A');
    expect(existsSync(join(repository.path, 'a.txt'))).toBe(true);
  });

  test('a folder replaced by a link to the checkout is never worked in', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const head = await repository.head();
    const worktree = await prepared(rig, first, head);
    const before = await repository.fingerprint();
    await rename(worktree.folder, `${worktree.folder}-moved`);
    await symlink(repository.path, worktree.folder);
    expect((await rig.worktrees.takeBack(worktree)).tree).toBeNull();
    await prepared(rig, first, head);
    expect(await read(worktree, 'a.txt')).toBe('a\n');
    expect(await repository.fingerprint()).toBe(before);
  });

  test('what set-up, copies and links brought is never part of the work', async () => {
    const repository = await makeProject();
    await writeFile(join(repository.path, '.env'), 'SECRET=1\n');
    await mkdir(join(repository.path, 'data'));
    const policy = { setup: 'mkdir -p gen && echo 1 > gen/x', copy: ['.env'], link: ['data'] };
    const rig = await startRun(repository, { policy });
    const worktree = await prepared(rig, first, await repository.head());
    expect(await read(worktree, '.env')).toBe('SECRET=1\n');
    await write(worktree, 'gen/y', '2\n');
    await write(worktree, 'mine.txt', 'mine\n');
    const { tree } = await rig.worktrees.takeBack(worktree);
    expect(await pathsOf(rig, tree)).toEqual(['.gitignore', 'a.txt', 'mine.txt', 'src/b.txt', 'src/c.txt']);
  });
});

describe('using a folder again', () => {
  test('only after release; then nothing of the last Issue is in it but what is kept', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const head = await repository.head();
    const worktree = await prepared(rig, first, head);
    await write(worktree, 'node_modules/x/index.js', 'kept\n');
    await write(worktree, 'out/built', 'x');
    await write(worktree, 'new.txt', 'x');
    await write(worktree, 'a.txt', 'A\n');
    await writeFile(join(worktree.slot.temporary, 'left'), '');
    await rig.worktrees.takeBack(worktree);
    rig.worktrees.leave(worktree);
    expect((await prepared(rig, second, head)).folder).not.toBe(worktree.folder);

    rig.worktrees.release(worktree);
    const next = await prepared(rig, issueId('03-next'), head);

    expect(next.folder).toBe(worktree.folder);
    expect(next.slot.number).toBe(worktree.slot.number);
    expect((await readdir(next.folder)).sort()).toEqual(['.git', '.gitignore', 'a.txt', 'node_modules', 'src']);
    expect(await readdir(next.slot.temporary)).toEqual([]);
    expect(await read(next, 'a.txt')).toBe('a\n');
    expect(await repository.git('worktree', 'list', '--porcelain')).toContain('locked giro auth 03-next');
    expect(await agentGit(next.folder, 'status', '--porcelain', '--branch')).toBe('## HEAD (no branch)');
    expect([...(await salvaged(rig))]).toEqual([]);
  });

  test('finds no pipe of the last Issue in it', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const head = await repository.head();
    const worktree = await prepared(rig, first, head);
    for (const name of ['pipe', 'src/pipe']) execFileSync('mkfifo', [join(worktree.folder, name)]);
    await rig.worktrees.takeBack(worktree);
    rig.worktrees.release(worktree);
    expect((await prepared(rig, second, head)).folder).toBe(worktree.folder);
    expect((await readdir(worktree.folder, { recursive: true })).filter((name) => name.includes('pipe'))).toEqual([]);
  });

  test('loses nothing where a link leads now instead of to a pipe', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const head = await repository.head();
    const worktree = await prepared(rig, first, head);
    execFileSync('mkfifo', [join(worktree.folder, 'src/pipe')]);
    await rig.worktrees.takeBack(worktree);
    rig.worktrees.release(worktree);
    const elsewhere = join(repository.folder, 'elsewhere');
    await rename(join(worktree.folder, 'src'), elsewhere);
    await symlink(elsewhere, join(worktree.folder, 'src'));
    await prepared(rig, second, head);
    expect((await readdir(elsewhere)).sort()).toEqual(['b.txt', 'c.txt', 'pipe']);
    expect((await readdir(join(worktree.folder, 'src'))).sort()).toEqual(['b.txt', 'c.txt']);
  });

  test('what a person wrote into a released folder is saved first', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const head = await repository.head();
    const worktree = await prepared(rig, first, head);
    await write(worktree, 'a.txt', 'A\n');
    await rig.worktrees.takeBack(worktree);
    rig.worktrees.release(worktree);
    await write(worktree, 'src/b.txt', 'by hand\n');
    await prepared(rig, second, head);
    expect(await repository.git('show', 'refs/giro/salvage/auth/01-login/1:src/b.txt')).toBe('by hand');
    expect(rig.notices).toEqual([expect.stringContaining('refs/giro/salvage/auth/01-login/1')]);
  });

  test('after an attempt that was taken back costs one process more, and saves nothing', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const head = await repository.head();
    const worktree = await prepared(rig, first, head);
    await write(worktree, 'a.txt', 'A\n');
    await rig.worktrees.takeBack(worktree);
    const before = rig.git.processes();
    await prepared(rig, first, head);
    expect(rig.git.processes() - before).toBe(1);
    expect(await read(worktree, 'a.txt')).toBe('a\n');
    await write(worktree, 'a.txt', 'never taken\n');
    await prepared(rig, first, head);
    expect(await repository.git('show', 'refs/giro/salvage/auth/01-login/1:a.txt')).toBe('never taken');
  });

  test('for another Issue than the one it is asked for waits until it comes back, when many are judged', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const head = await repository.head();
    const issues = ['1-a', '2-b', '3-c', '4-d'].map(issueId);
    const [one, ...others] = await Promise.all(issues.map((issue) => prepared(rig, issue, head)));
    if (one === undefined) throw new Error('none');
    for (const worktree of [one, ...others]) await rig.worktrees.takeBack(worktree);
    const next = prepared(rig, issueId('5-e'), head);
    const after = prepared(rig, issueId('6-f'), head);
    rig.worktrees.release(one);
    expect((await next).folder).toBe(one.folder);
    others.forEach((worktree) => {
      rig.worktrees.release(worktree);
    });
    expect(others.map(({ folder }) => folder)).toContain((await after).folder);
  });

  test('closing removes what was released and nothing else', async () => {
    const repository = await makeProject();
    const before = await repository.fingerprint();
    const rig = await startRun(repository);
    const head = await repository.head();
    const [one, two] = [await prepared(rig, first, head), await prepared(rig, second, head)];
    rig.worktrees.release(one);
    rig.worktrees.leave(two);
    await rig.worktrees.close();
    await rig.git.close();
    expect(existsSync(one.folder)).toBe(false);
    expect(await read(two, 'a.txt')).toBe('a\n');
    expect(await repository.git('worktree', 'list')).not.toContain(one.folder);
    expect(await repository.git('worktree', 'list')).toContain(two.folder);
    expect(await readdir(rig.root)).toEqual(['store', 'w2']);
    expect(await repository.fingerprint()).toBe(before);
  });

  test('costs two processes of git for a new folder, two to take it back, one to use it again', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const head = await repository.head();
    const { tree } = await rig.git.readCommit(head);
    const count = async (work: () => Promise<unknown>): Promise<number> => {
      const before = rig.git.processes();
      await work();
      return rig.git.processes() - before;
    };
    const warm = await prepared(rig, issueId('09-warm'), head, tree);
    await rig.worktrees.takeBack(warm);
    expect(await count(() => prepared(rig, first, head, tree))).toBe(2);
    const worktree = await rig.worktrees.find(first);
    if (worktree === null) throw new Error('not found');
    await write(worktree, 'a.txt', 'A\n');
    expect(await count(() => rig.worktrees.takeBack(worktree))).toBe(2);
    rig.worktrees.release(worktree);
    expect(await count(() => prepared(rig, second, head, tree))).toBe(1);
  });
});

describe('a later run', () => {
  test('finds the folder of an Issue, takes it back, and finds none where there is none', async () => {
    const repository = await makeProject();
    const head = await repository.head();
    const worktree = await prepared(await startRun(repository), first, head);
    await write(worktree, 'new.txt', 'unfinished\n');
    await agentGit(worktree.folder, 'add', '-A');
    await agentGit(worktree.folder, 'commit', '-m', 'unfinished');

    const rig = await startRun(repository);
    expect(await rig.worktrees.find(second)).toBeNull();
    const found = await rig.worktrees.find(first);

    expect(found).toMatchObject({ folder: worktree.folder, commit: head, slot: { number: 1 } });
    if (found === null) throw new Error('not found');
    const taken = await rig.worktrees.takeBack(found);
    expect(taken).toMatchObject({ refused: [], subjects: ['unfinished'] });
    expect(await textOf(rig, taken.tree, 'new.txt')).toBe('unfinished\n');
    expect((await prepared(rig, second, head)).folder).not.toBe(worktree.folder);
  });

  test('saves what nobody took before it goes on with an Issue', async () => {
    const repository = await makeProject();
    const head = await repository.head();
    const worktree = await prepared(await startRun(repository), first, head);
    await write(worktree, 'a.txt', 'unfinished\n');
    await agentGit(worktree.folder, 'switch', '-c', 'side');
    await agentGit(worktree.folder, 'commit', '-am', 'side');
    await agentGit(worktree.folder, 'switch', '--detach', 'main');
    await write(worktree, 'new.txt', 'unfinished\n');

    const rig = await startRun(repository);
    expect((await prepared(rig, first, head)).folder).toBe(worktree.folder);

    expect(await agentGit(worktree.folder, 'status', '--porcelain')).toBe('');
    const shown = (ref: string): Promise<string> => repository.git('show', '--stat=80', '--format=%s', ref);
    expect(await shown('refs/giro/salvage/auth/01-login/1')).toContain('new.txt');
    expect(await shown('refs/giro/salvage/auth/01-login/2')).toMatch(/^side\n\n a\.txt/);
    expect(rig.notices).toHaveLength(2);
    expect(await repository.git('rev-parse', 'side')).toBe(
      await repository.git('rev-parse', 'refs/giro/salvage/auth/01-login/2'),
    );
  });

  test('saves nothing when all that differs is what the engine has committed since', async () => {
    const repository = await makeRepository({
      files: { 'a.txt': 'a\n', 'docs/specs/auth/issues/01-login.md': 'ready\n' },
    });
    const earlier = await startRun(repository);
    const head = await repository.head();
    const worktree = await prepared(earlier, first, head);
    await write(worktree, 'a.txt', 'A\n');
    const { tree } = await earlier.worktrees.takeBack(worktree);
    if (tree === null) throw new Error('refused');
    const blob = await earlier.git.writeBlob('in-progress\n');
    const files = await earlier.git.editTree(
      tree,
      new Map([['docs/specs/auth/issues/01-login.md', { mode: '100644', oid: blob }]]),
    );
    const commit = await earlier.git.writeCommit({ tree: files, parents: [head], message: 'attempt 1', at: 0 });

    const rig = await startRun(repository);
    await prepared(rig, first, commit);

    expect([...(await salvaged(rig))]).toEqual([]);
    expect(await read(worktree, 'docs/specs/auth/issues/01-login.md')).toBe('in-progress\n');
    expect(rig.notices).toEqual([]);
  });

  test('a checkout that was cut off half-way is finished, and is no work to be saved', async () => {
    const repository = await makeProject();
    const earlier = await startRun(repository);
    const head = await repository.head();
    const worktree = await prepared(earlier, first, head);
    await rm(join(worktree.folder, 'src/c.txt'));
    const facts = join(earlier.root, 'store', 'w1', 'facts.json');
    await writeFile(facts, (await readFile(facts, 'utf8')).replace('"filled":true', '"filled":false'));

    const rig = await startRun(repository);
    await prepared(rig, first, head);

    expect(await read(worktree, 'src/c.txt')).toBe('c\n');
    expect([...(await salvaged(rig))]).toEqual([]);
  });

  test('goes on although its notes are damaged or name what is gone', async () => {
    const repository = await makeProject();
    const head = await repository.head();
    const earlier = await startRun(repository);
    const worktree = await prepared(earlier, first, head);
    const facts = join(earlier.root, 'store', 'w1', 'facts.json');
    const gone = 'a'.repeat(40);
    await writeFile(
      facts,
      (await readFile(facts, 'utf8')).replaceAll(/[0-9a-f]{40}(?=",|"\])/g, gone).replace(gone, head),
    );
    const rig = await startRun(repository);
    await prepared(rig, first, head);
    expect(await agentGit(worktree.folder, 'status', '--porcelain')).toBe('');

    await writeFile(facts, '{"commit":');
    const later = await startRun(repository);
    expect(await later.worktrees.find(first)).toMatchObject({ commit: head });
    await prepared(later, first, head);
    expect([...(await salvaged(later))]).toEqual([]);
  });

  test('deletes what a killed one had put away, and only that', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    await mkdir(join(rig.root, '.trash-0123456789abcdef/deep'), { recursive: true });
    await mkdir(join(rig.root, '.trash-of-mine'));
    await prepared(rig, first, await repository.head());
    await rig.worktrees.close();
    expect((await readdir(rig.root)).sort()).toEqual(['.trash-of-mine', 'store', 'w1']);
  });

  test('a worktree of another Spec, or of the person, is not touched', async () => {
    const repository = await makeProject();
    const head = await repository.head();
    const root = join(repository.folder, 'cache', 'auth');
    await mkdir(root, { recursive: true });
    await repository.git(
      'worktree',
      'add',
      '-q',
      '--detach',
      '--lock',
      '--reason',
      'giro other 01-login',
      join(root, 'w1'),
    );
    const rig = await startRun(repository);
    expect(await rig.worktrees.find(first)).toBeNull();
    expect(basename((await prepared(rig, first, head)).folder)).toBe('w2');
  });
});

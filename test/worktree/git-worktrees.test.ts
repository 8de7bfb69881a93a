import { chmod, lstat, mkdir, readdir, readFile, rename, symlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { OpenedGit } from '../../src/worktree/git-types.js';
import { makeRepository, openRepository, type TestRepository } from '../rig/repository.js';
import { scaled } from '../rig/scale.js';

const done = { ok: true, value: undefined };

async function add(git: OpenedGit, folder: string, reason = 'giro'): Promise<string> {
  const added = await git.addWorktree(folder, git.user.head, reason);
  if (!added.ok) throw new Error(JSON.stringify(added.failure));
  return added.value.adminDir;
}

/** What is left of a removal once it is over. */
async function leftovers(git: OpenedGit, parent: string): Promise<readonly string[]> {
  await git.close();
  return readdir(parent);
}

describe('adding a worktree', () => {
  test('registers it detached, locked and without files, and git agrees', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const folder = join(repository.folder, 'trees', 'a b ü');
    const adminDir = await add(git, folder, 'giro: s1/01-a');
    expect(await readdir(folder)).toEqual(['.git']);
    expect(await git.listWorktrees()).toEqual([
      { folder, adminDir, head: git.user.head, ref: null, locked: 'giro: s1/01-a' },
    ]);
    const shown = await repository.git('worktree', 'list', '--porcelain');
    expect(shown).toContain(`worktree ${folder}\nHEAD ${git.user.head}\ndetached\nlocked giro: s1/01-a`);
    await git.checkOut(folder, join(adminDir, 'index'), git.user.head);
    expect(await repository.git('-C', folder, 'status', '--porcelain')).toBe('');
  });

  test('many at once, from a remote-tracking base too, never fails and changes nothing of the person (C020)', async () => {
    const origin = await makeRepository();
    const repository = await makeRepository();
    await repository.git('remote', 'add', 'origin', origin.path);
    await repository.git('fetch', '-q', 'origin');
    await repository.git('checkout', '-q', '-b', 'work', '--track', 'origin/main');
    const git = await openRepository(repository);
    const before = await repository.fingerprint();
    const folders = Array.from({ length: 12 }, (_, at) => join(repository.folder, String(at), 'same-name'));
    await Promise.all(folders.map((folder) => add(git, folder)));
    expect((await git.listWorktrees()).map(({ folder }) => folder).sort()).toEqual(folders.toSorted());
    expect(await repository.fingerprint()).toBe(before);
    expect(await repository.git('branch', '--list')).toBe('  main\n* work');
  });

  test('by several giros at once, while others remove theirs and move refs, never fails (C069)', async () => {
    const repository = await makeRepository();
    const gits = await Promise.all(Array.from({ length: 4 }, () => openRepository(repository)));
    const own = async (git: OpenedGit, at: number): Promise<void> => {
      for (let round = 0; round < scaled(4, 40); round += 1) {
        const folders = Array.from({ length: 4 }, (_, count) =>
          join(repository.folder, String(at), `w${String(count)}`),
        );
        const refs = folders.map((_, count) => `refs/heads/giro-issue/s${String(at)}/${String(count)}`);
        const trees = await Promise.all(folders.map((folder) => add(git, folder)));
        for (const ref of refs) expect(await git.moveRef(ref, git.user.head, null)).toEqual(done);
        await Promise.all(folders.map((folder, count) => git.removeWorktree(folder, trees[count] ?? '')));
        await Promise.all(refs.map((ref) => git.moveRef(ref, null, git.user.head))).then((moved) => {
          expect(moved).toEqual(refs.map(() => done));
        });
      }
    };
    await Promise.all(gits.map(own));
    expect(await repository.git('worktree', 'list')).toMatch(/^[^\n]*\n?$/);
    expect(await repository.git('for-each-ref', 'refs/heads/giro-issue')).toBe('');
    expect(await readdir(join(repository.path, '.git/giro/short-lock'))).toEqual([]);
  });

  test('where something is already is a failure that leaves it as it was (C021)', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const folder = join(repository.folder, 'taken');
    await mkdir(folder);
    await writeFile(join(folder, 'mine'), 'mine');
    expect(await git.addWorktree(folder, git.user.head, 'giro')).toMatchObject({
      ok: false,
      failure: { kind: 'environment', message: expect.stringContaining('already exists') as unknown },
    });
    expect(await readdir(folder)).toEqual(['mine']);
    expect(await git.listWorktrees()).toEqual([]);
  });

  test('works for a bare repository', async () => {
    const repository = await makeRepository();
    const bare = join(repository.folder, 'bare.git');
    await repository.git('clone', '-q', '--bare', repository.path, bare);
    const git = await openRepository(repository, bare);
    const folder = join(repository.folder, 'tree');
    const adminDir = await add(git, folder);
    await git.checkOut(folder, join(adminDir, 'index'), git.user.head);
    expect(await readdir(folder)).toContain('README.md');
  });
});

describe('listing', () => {
  test('tells branches, detached heads and locks apart, and skips what is no worktree', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const linked = join(repository.folder, 'linked');
    await repository.git('worktree', 'add', '-q', '-b', 'other', linked);
    await mkdir(join(repository.path, '.git', 'worktrees', 'half-made'));
    expect(await git.listWorktrees()).toEqual([
      {
        folder: linked,
        adminDir: join(repository.path, '.git', 'worktrees', 'linked'),
        head: git.user.head,
        ref: 'refs/heads/other',
        locked: null,
      },
    ]);
  });
});

describe('removing a worktree', () => {
  test('takes it out of the way at once and deletes it, whatever is in it', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const parent = join(repository.folder, 'trees');
    const folder = join(parent, 'a');
    const adminDir = await add(git, folder);
    await mkdir(join(folder, 'read-only'));
    await writeFile(join(folder, 'read-only', 'x'), '');
    await chmod(join(folder, 'read-only'), 0o500);
    expect(await git.removeWorktree(folder, adminDir)).toEqual(done);
    expect(await git.listWorktrees()).toEqual([]);
    expect(await repository.git('worktree', 'list', '--porcelain')).not.toContain('trees');
    await add(git, folder);
    expect(await leftovers(git, parent)).toEqual(['a']);
  });

  test('forgets one whose folder is gone', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const folder = join(repository.folder, 'a');
    const adminDir = await add(git, folder);
    await rename(folder, join(repository.folder, 'elsewhere'));
    expect(await git.removeWorktree(folder, adminDir)).toEqual(done);
    expect(await git.listWorktrees()).toEqual([]);
    expect(await readdir(join(repository.folder, 'elsewhere'))).toEqual(['.git']);
  });

  test('does not follow the link files to a victim: only the folder it was told goes', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const victim = join(repository.folder, 'victim');
    await mkdir(victim);
    await writeFile(join(victim, 'precious'), 'mine');
    const folder = join(repository.folder, 'trees', 'a');
    const adminDir = await add(git, folder);
    await writeFile(join(victim, '.git'), `gitdir: ${adminDir}\n`);
    await writeFile(join(adminDir, 'gitdir'), `${join(victim, '.git')}\n`);
    expect(await git.removeWorktree(folder, adminDir)).toEqual(done);
    expect(await leftovers(git, join(repository.folder, 'trees'))).toEqual([]);
    expect((await readdir(victim)).sort()).toEqual(['.git', 'precious']);
  });

  test("keeps the registration of another worktree that an agent's link names", async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const [mine, other] = ['mine', 'other'].map((name) => join(repository.folder, 'trees', name)) as [string, string];
    await add(git, mine);
    const otherAdmin = await add(git, other);
    expect(await git.removeWorktree(mine, otherAdmin)).toEqual(done);
    expect((await git.listWorktrees()).map(({ folder }) => folder)).toContain(other);
    expect(await repository.git('-C', other, 'rev-parse', 'HEAD')).toBe(git.user.head);
  });

  test.each<[string, (repository: TestRepository) => Promise<string>]>([
    ['the checkout of the person', (repository) => Promise.resolve(repository.path)],
    ['a folder that holds it', (repository) => Promise.resolve(repository.folder)],
    ['its git dir', (repository) => Promise.resolve(join(repository.path, '.git'))],
    [
      'a link',
      async (repository) => {
        const link = join(repository.folder, 'link');
        await symlink(repository.path, link);
        return link;
      },
    ],
    [
      'a file',
      async (repository) => {
        await writeFile(join(repository.folder, 'file'), '');
        return join(repository.folder, 'file');
      },
    ],
  ])('refuses %s', async (_name, place) => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const adminDir = await add(git, join(repository.folder, 'a'));
    const before = await repository.fingerprint();
    const target = await place(repository);
    expect(await git.removeWorktree(target, adminDir)).toMatchObject({ ok: false, failure: { kind: 'environment' } });
    expect((await lstat(target)).isFIFO()).toBe(false);
    expect(await repository.fingerprint()).toBe(before);
    expect(await git.listWorktrees()).toHaveLength(1);
  });

  test('refuses admin files that are not where git keeps them', async () => {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const folder = join(repository.folder, 'a');
    await add(git, folder);
    for (const adminDir of [
      repository.home,
      join(repository.path, '.git'),
      join(repository.path, '.git/worktrees/../hooks'),
    ]) {
      expect(await git.removeWorktree(folder, adminDir)).toMatchObject({ ok: false });
    }
    expect(await readdir(repository.home)).toEqual([]);
    expect(basename((await readFile(join(folder, '.git'), 'utf8')).trim())).toBe('a');
  });
});

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Oid } from '../../src/issue.js';
import { createCheckouts, type Checkout } from '../../src/worktree/checkout.js';
import { agentGit, plainPolicy, startRun, type FolderRig } from '../rig/folders.js';
import { makeRepository, type TestRepository } from '../rig/repository.js';

const start = {
  'a.txt': 'a\n',
  'src/b.txt': 'b\n',
  '.gitignore': 'node_modules\nout\n',
  'docs/specs/auth/SPEC.md': 'as the person has it\n',
};

async function makeProject(): Promise<TestRepository> {
  return makeRepository({ files: start });
}

/** The code tree of a commit: everything but `docs/specs/`. */
async function codeTree(rig: FolderRig, commit: Oid): Promise<Oid> {
  return rig.git.editTree((await rig.git.readCommit(commit)).tree, new Map([['docs/specs', null]]));
}

async function edited(rig: FolderRig, tree: Oid, files: Readonly<Record<string, string | null>>): Promise<Oid> {
  const edits = await Promise.all(
    Object.entries(files).map(
      async ([path, text]) =>
        [path, text === null ? null : { mode: '100644', oid: await rig.git.writeBlob(text) }] as const,
    ),
  );
  return rig.git.editTree(tree, new Map(edits));
}

/** Uses a checkout; a failure fails the test. */
async function using<T>(rig: FolderRig, tree: Oid, use: (checkout: Checkout) => Promise<T>): Promise<T> {
  const result = await rig.checkouts.withCheckout(tree, use);
  if (!result.ok) throw new Error(JSON.stringify(result.failure));
  return result.value;
}

async function write(folder: string, path: string, text: string): Promise<void> {
  await mkdir(dirname(join(folder, path)), { recursive: true });
  await writeFile(join(folder, path), text);
}

async function filesOf(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => !entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name));
  return paths
    .map((path) => path.slice(folder.length + 1))
    .filter((path) => !path.startsWith('.git/'))
    .sort();
}

describe('what a gate sees', () => {
  test('is the code tree with the base’s docs/specs, and nothing that was not committed', async () => {
    const repository = await makeProject();
    const before = await repository.fingerprint();
    const rig = await startRun(repository);
    const head = await repository.head();
    const specs = await rig.git.readPath(head, 'docs/specs');
    const ports = { ...rig, policy: plainPolicy, limit: 1, notice: () => undefined, baseSpecs: specs?.oid ?? null };
    const checkouts = createCheckouts(ports);
    const tree = await edited(rig, await codeTree(rig, head), { 'src/b.txt': null, 'src/new.txt': 'new\n' });
    await write(repository.path, 'gen.ts', 'never committed\n');
    await write(repository.path, 'out/gen.ts', 'ignored\n');

    await checkouts.withCheckout(tree, async ({ folder }) => {
      expect(await filesOf(folder)).toEqual(['.gitignore', 'a.txt', 'docs/specs/auth/SPEC.md', 'src/new.txt']);
    });
    await checkouts.close();
    await rm(join(repository.path, 'gen.ts'));
    await rm(join(repository.path, 'out'), { recursive: true });
    expect(await repository.fingerprint()).toBe(before);
  });

  test('is a repository of one commit in which git works as in a clone', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const tree = await codeTree(rig, await repository.head());
    await using(rig, tree, async ({ folder }) => {
      expect(await agentGit(folder, 'status', '--porcelain', '--branch')).toBe('## main');
      expect(await agentGit(folder, 'ls-files')).toBe('.gitignore\na.txt\nsrc/b.txt');
      expect(await agentGit(folder, 'rev-parse', 'HEAD^{tree}')).toBe(tree);
      expect(await agentGit(folder, 'rev-list', '--count', 'HEAD')).toBe('1');
      expect(await agentGit(folder, 'config', '--list', '--local')).not.toContain('remote');
      await write(folder, 'a.txt', 'A\n');
      expect(await agentGit(folder, 'diff', 'HEAD', '--stat')).toContain('1 file changed');
      await agentGit(folder, 'commit', '-qam', 'a gate may even commit');
      expect(await agentGit(folder, 'fsck', '--strict', '--no-dangling')).toBe('');
    });
    expect(await repository.git('for-each-ref', '--format=%(refname)')).toBe('refs/heads/main');
    expect(await repository.git('cat-file', '--batch-check', '--batch-all-objects')).not.toContain('may even');
  });

  test('works in a repository of sha256 names', async () => {
    const repository = await makeRepository({ files: start, objectFormat: 'sha256' });
    const rig = await startRun(repository);
    await using(rig, await codeTree(rig, await repository.head()), async ({ folder }) => {
      expect(await agentGit(folder, 'status', '--porcelain', '--branch')).toBe('## main');
    });
  });

  test('has what set-up made, which git in it does not list', async () => {
    const repository = await makeProject();
    await write(repository.path, '.env', 'x\n');
    const setup = 'mkdir gen && echo 1 > gen/x && echo changed > a.txt && git config core.hooksPath x';
    const before = await repository.fingerprint();
    const rig = await startRun(repository, { policy: { setup, copy: ['.env'] } });
    await using(rig, await codeTree(rig, await repository.head()), async ({ folder }) => {
      expect(await filesOf(folder)).toEqual(['.env', '.gitignore', 'a.txt', 'gen/x', 'src/b.txt']);
      expect(await readFile(join(folder, 'a.txt'), 'utf8')).toBe('a\n');
      expect(await agentGit(folder, 'status', '--porcelain')).toBe('');
      expect(await agentGit(folder, 'config', '--list', '--local')).not.toContain('hookspath');
    });
    expect(rig.notices).toEqual([expect.stringContaining('put back: a.txt')]);
    expect(await repository.fingerprint()).toBe(before);
  });

  test('comes with the tracked files that were rewritten since, and a way back', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    await using(rig, await codeTree(rig, await repository.head()), async (checkout) => {
      expect(await checkout.changedFiles()).toEqual([]);
      await write(checkout.folder, 'a.txt', 'A\n');
      await rm(join(checkout.folder, 'src/b.txt'));
      await write(checkout.folder, 'new.txt', 'new\n');
      expect(await checkout.changedFiles()).toEqual(['a.txt', 'src/b.txt']);
      await checkout.restore();
      expect(await checkout.changedFiles()).toEqual([]);
      expect(await readFile(join(checkout.folder, 'src/b.txt'), 'utf8')).toBe('b\n');
    });
  });
});

describe('the next user', () => {
  test('gets the same folder with nothing of the last one in it but what is kept', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const tree = await codeTree(rig, await repository.head());
    const first = await using(rig, tree, async ({ folder, slot }) => {
      await write(folder, 'untracked.txt', 'x');
      await write(folder, 'out/ignored.txt', 'x');
      await write(folder, 'node_modules/x/index.js', 'kept');
      await write(folder, 'a.txt', 'rewritten');
      await rm(join(folder, 'src'), { recursive: true });
      await writeFile(join(folder, 'src'), 'a file in the way');
      await write(folder, '.git/hooks/pre-commit', 'x');
      await write(folder, '.git/info/exclude', '*');
      await write(slot.temporary, 'x', 'x');
      return folder;
    });
    const other = await edited(rig, tree, { 'a.txt': null, 'lib/c.txt': 'c\n' });
    await using(rig, other, async ({ folder, slot }) => {
      expect(folder).toBe(first);
      expect(await filesOf(folder)).toEqual(['.gitignore', 'lib/c.txt', 'node_modules/x/index.js', 'src/b.txt']);
      expect(await agentGit(folder, 'status', '--porcelain', '--branch')).toBe('## main');
      expect(existsSync(join(folder, '.git/hooks'))).toBe(false);
      expect(await readdir(slot.temporary)).toEqual([]);
    });
  });

  test('finds no repository that was planted among tracked files', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const tree = await codeTree(rig, await repository.head());
    await using(rig, tree, async ({ folder }) => {
      await mkdir(join(folder, 'src/.git'));
      await write(folder, 'src/.GIT/config', 'x');
      await agentGit(folder, 'init', '-q', 'sub');
    });
    await using(rig, tree, async ({ folder }) => {
      expect((await readdir(join(folder, 'src'))).sort()).toEqual(['b.txt']);
      expect(existsSync(join(folder, 'sub'))).toBe(false);
    });
  });

  test('gets its folder for one process of git', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const tree = await codeTree(rig, await repository.head());
    const count = async (of: Oid): Promise<number> => {
      const before = rig.git.processes();
      await using(rig, of, () => Promise.resolve());
      return rig.git.processes() - before;
    };
    await count(tree);
    const other = await edited(rig, tree, { 'a.txt': 'A\n' });
    expect(await count(other)).toBe(1);
    expect(await count(other)).toBeLessThanOrEqual(1);
  });

  test('costs one process more when there is something to clean away', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const tree = await codeTree(rig, await repository.head());
    await using(rig, tree, ({ folder }) => write(folder, 'node_modules/x/index.js', 'kept'));
    const before = rig.git.processes();
    await using(rig, tree, ({ folder }) => write(folder, 'left.txt', 'x'));
    expect(rig.git.processes() - before).toBe(1);
    await using(rig, tree, async ({ folder }) => expect(await filesOf(folder)).not.toContain('left.txt'));
    expect(rig.git.processes() - before).toBe(3);
  });

  test('gets the folder although the last one left pipes where git reads files', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const tree = await codeTree(rig, await repository.head());
    const first = await using(rig, tree, async (checkout) => {
      const { folder } = checkout;
      await rm(join(folder, '.gitignore'));
      for (const name of ['.gitignore', '.gitattributes', 'src/.gitattributes', 'src/pipe']) {
        execFileSync('mkfifo', [join(folder, name)]);
      }
      await write(folder, 'a.txt', 'A\n');
      expect(await checkout.changedFiles()).toEqual(['.gitignore', 'a.txt']);
      execFileSync('mkfifo', [join(folder, 'src/.gitignore')]);
      return folder;
    });
    await using(rig, tree, async ({ folder }) => {
      expect(folder).toBe(first);
      expect(await filesOf(folder)).toEqual(['.gitignore', 'a.txt', 'src/b.txt']);
    });
  });

  test('gets a new folder when the old one was replaced by a link, and what it leads to is untouched', async () => {
    const repository = await makeProject();
    const before = await repository.fingerprint();
    const rig = await startRun(repository);
    const tree = await codeTree(rig, await repository.head());
    await using(rig, tree, async ({ folder }) => {
      await rm(folder, { recursive: true });
      await symlink(repository.path, folder);
    });
    await using(rig, tree, async ({ folder }) => {
      expect(await filesOf(folder)).toEqual(['.gitignore', 'a.txt', 'src/b.txt']);
    });
    expect(await repository.fingerprint()).toBe(before);
  });

  test('gets a folder also after one that withstands cleaning', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const tree = await codeTree(rig, await repository.head());
    await using(rig, tree, async ({ folder, slot }) => {
      await write(folder, 'cache/x/y', 'read-only');
      await chmod(join(folder, 'cache/x'), 0o555);
      // Git cannot read a folder in place of the index it is to use.
      const index = join(dirname(folder), 'store', basename(folder), 'index');
      await rm(index);
      await mkdir(index);
      expect(slot.number).toBe(1);
    });
    await using(rig, tree, async ({ folder }) => {
      expect(await filesOf(folder)).toEqual(['.gitignore', 'a.txt', 'src/b.txt']);
    });
    await rig.checkouts.close();
    expect(await readdir(rig.root)).toEqual(['store']);
  });

  test('waits while as many as the limit are in use, and two users never share a folder', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository, { limit: 2 });
    const tree = await codeTree(rig, await repository.head());
    const inside = new Set<string>();
    let most = 0;
    let open: () => void = () => undefined;
    const both = new Promise<void>((resolve) => (open = resolve));
    await Promise.all(
      Array.from({ length: 6 }, () =>
        using(rig, tree, async ({ folder }) => {
          expect(inside.has(folder)).toBe(false);
          inside.add(folder);
          most = Math.max(most, inside.size);
          if (inside.size === 2) open();
          await both;
          await agentGit(folder, 'status');
          inside.delete(folder);
        }),
      ),
    );
    expect(most).toBe(2);
    expect((await readdir(rig.root)).sort()).toEqual(['g1', 'g2', 'store']);
  });

  test('gets the folder although the last one threw', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository, { limit: 1 });
    const tree = await codeTree(rig, await repository.head());
    await expect(rig.checkouts.withCheckout(tree, () => Promise.reject(new Error('a bug')))).rejects.toThrow('a bug');
    expect(await using(rig, tree, ({ folder }) => Promise.resolve(basename(folder)))).toBe('g1');
  });
});

describe('the folders', () => {
  test('are removed at the end', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    await using(rig, await codeTree(rig, await repository.head()), () => Promise.resolve());
    await rig.checkouts.close();
    expect(await readdir(join(rig.root, 'store'))).toEqual([]);
    expect(await readdir(rig.root)).toEqual(['store']);
    expect((await rig.slots.take()).number).toBe(1);
  });

  test('of a run that was killed are replaced, those of anybody else are left alone', async () => {
    const repository = await makeProject();
    const killed = await startRun(repository);
    const tree = await codeTree(killed, await repository.head());
    await using(killed, tree, ({ folder }) => write(folder, 'left.txt', 'x'));
    await write(killed.root, 'g2/mine.txt', 'mine');

    const rig = await startRun(repository);
    // The second while the first is in use: it needs a folder of its own.
    await using(rig, tree, async ({ folder }) => {
      expect(await filesOf(folder)).not.toContain('left.txt');
      await using(rig, tree, async (other) => expect(await filesOf(other.folder)).not.toContain('left.txt'));
    });
    await rig.checkouts.close();

    expect(await readdir(rig.root)).toEqual(['g2', 'store']);
    expect(await readdir(join(rig.root, 'g2'))).toEqual(['mine.txt']);
    expect(rig.notices).toEqual([expect.stringContaining('g2 is in the way')]);
  });

  test('of a run that was killed while it deleted some are deleted', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const trash = '.trash-0123456789abcdef';
    await write(rig.root, `${trash}/x`, 'left');
    await write(rig.root, '.trash-mine/x', 'mine');
    await symlink(repository.path, join(rig.root, '.trash-fedcba9876543210'));
    await using(rig, await codeTree(rig, await repository.head()), () => Promise.resolve());
    await rig.checkouts.close();
    expect((await readdir(rig.root)).sort()).toEqual(['.trash-fedcba9876543210', '.trash-mine', 'store']);
    expect(existsSync(join(repository.path, 'a.txt'))).toBe(true);
  });

  test('share one numbering with worktrees', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository);
    const slot = await rig.slots.take();
    await using(rig, await codeTree(rig, await repository.head()), (checkout) => {
      expect(checkout.slot.number).toBe(2);
      expect(checkout.slot.portBase).not.toBe(slot.portBase);
      return Promise.resolve();
    });
  });

  test('that cannot be set up are a failure with its reason, and the next user gets another try', async () => {
    const repository = await makeProject();
    const rig = await startRun(repository, { policy: { setup: 'echo why; test -e "$HOME/go"' } });
    const tree = await codeTree(rig, await repository.head());
    const failure = await rig.checkouts.withCheckout(tree, () => Promise.resolve());
    expect(failure).toMatchObject({ ok: false, failure: { kind: 'setup-failed', tail: 'why' } });
    await writeFile(join(repository.home, 'go'), '');
    expect(await using(rig, tree, ({ folder }) => Promise.resolve(basename(folder)))).toBe('g1');
  });
});

test('one whose files were seen unchanged is brought to the next tree without git, unless something ran in it since', async () => {
  const repository = await makeProject();
  const rig = await startRun(repository);
  const tree = await codeTree(rig, await repository.head());
  const next = await edited(rig, tree, { 'a.txt': 'A\n' });
  const look = (checkout: Checkout): Promise<readonly string[]> => checkout.changedFiles();
  const cost = async (of: Oid, use: (checkout: Checkout) => Promise<unknown>): Promise<number> => {
    const before = rig.git.processes();
    await using(rig, of, use);
    return rig.git.processes() - before;
  };
  await cost(tree, look);
  expect(await cost(next, look)).toBe(1);
  const afterwards = async (checkout: Checkout): Promise<void> => {
    await look(checkout);
    checkout.enter();
    await writeFile(join(checkout.folder, 'src/b.txt'), 'of a gate that was stopped\n');
  };
  expect(await cost(tree, afterwards)).toBe(1);
  expect(await cost(next, async ({ folder }) => readFile(join(folder, 'src/b.txt'), 'utf8'))).toBe(1);
  await using(rig, next, async ({ folder }) => {
    expect(await readFile(join(folder, 'src/b.txt'), 'utf8')).toBe('b\n');
  });
});

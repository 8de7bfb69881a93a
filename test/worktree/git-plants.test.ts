/**
 * Things planted in a repository, a worktree, the person's home or giro's environment that make plain git run a program.
 * Each plant leaves a file when its program runs: giro doing everything it does with git leaves none. So that this says
 * something, plain git is then shown to run it.
 */
import { chmod, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openGit } from '../../src/worktree/git.js';
import type { OpenedGit } from '../../src/worktree/git-types.js';
import { makeRepository, type TestRepository } from '../rig/repository.js';

interface Scene {
  readonly repository: TestRepository;
  /** A linked worktree of giro's, which an agent could write. */
  readonly worktree: string;
  /** A shell command that leaves a mark and passes on what it reads. */
  readonly command: string;
  /** The same. */
  readonly program: string;
  /** One that reads nothing. */
  readonly deaf: string;
}

interface Plant {
  readonly name: string;
  readonly plant: (scene: Scene) => Promise<void>;
  /** Plain git that runs it; in the worktree when `inWorktree`. */
  readonly control: readonly (readonly string[])[];
  readonly inWorktree?: boolean;
  /** Added to giro's own environment; absent in the control, which gets it by hand. */
  readonly own?: (scene: Scene) => Readonly<Record<string, string>>;
}

const hooks = [
  'applypatch-msg',
  'pre-applypatch',
  'pre-commit',
  'prepare-commit-msg',
  'commit-msg',
  'post-commit',
  'post-checkout',
  'pre-merge-commit',
  'post-merge',
  'reference-transaction',
  'post-index-change',
  'pre-auto-gc',
  'pre-push',
  'post-rewrite',
];

async function put(path: string, content: string, mode = 0o644): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, content);
  await chmod(path, mode);
}

function config(...settings: readonly (readonly [string, (scene: Scene) => string])[]): Plant['plant'] {
  return async (scene) => {
    for (const [key, value] of settings) await scene.repository.git('config', key, value(scene));
  };
}

const command = (scene: Scene): string => scene.command;
const attributes = '* filter=evil diff=evil merge=evil\n';

/** Config and hooks of a whole hostile git dir, as an agent could put in place of its own. */
async function hostileGitDir(path: string, scene: Scene): Promise<void> {
  await scene.repository.git('init', '-q', '--bare', path);
  await writeFile(
    join(path, 'config'),
    `[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = ${scene.program}\n[filter "evil"]\n\tclean = ${scene.command}\n\tsmudge = ${scene.command}\n`,
  );
  for (const hook of hooks) await put(join(path, 'hooks', hook), `#!/bin/sh\n${scene.command}\n`, 0o755);
}

const plants: readonly Plant[] = [
  {
    name: 'every hook in .git/hooks',
    plant: async ({ repository, program }) => {
      for (const hook of hooks)
        await put(join(repository.path, '.git', 'hooks', hook), `#!/bin/sh\n${program} </dev/null\n`, 0o755);
    },
    control: [['branch', 'x']],
  },
  {
    name: 'core.hooksPath',
    plant: async (scene) => {
      const folder = join(scene.repository.folder, 'hooks');
      for (const hook of hooks) await put(join(folder, hook), `#!/bin/sh\n${scene.program} </dev/null\n`, 0o755);
      await scene.repository.git('config', 'core.hooksPath', folder);
    },
    control: [['branch', 'x']],
  },
  { name: 'core.fsmonitor', plant: config(['core.fsmonitor', ({ program }) => program]), control: [['status']] },
  {
    name: 'core.fsmonitor by include and by worktree config',
    plant: async (scene) => {
      await put(join(scene.repository.folder, 'included'), `[core]\n\tfsmonitor = ${scene.program}\n`);
      await scene.repository.git('config', 'include.path', join(scene.repository.folder, 'included'));
      await scene.repository.git('config', 'extensions.worktreeConfig', 'true');
      await scene.repository.git('config', '--worktree', 'core.fsmonitor', scene.program);
    },
    control: [['status']],
  },
  {
    name: 'filter clean and smudge, woken by .gitattributes',
    plant: config(
      ['filter.evil.clean', command],
      ['filter.evil.smudge', command],
      ['filter.evil.required', () => 'true'],
    ),
    control: [['add', '-A']],
  },
  {
    name: 'filter process',
    plant: config(['filter.evil.process', ({ program }) => program]),
    control: [['add', '-A']],
  },
  {
    name: 'filters woken by info/attributes and core.attributesFile',
    plant: async (scene) => {
      await config(['filter.other.clean', command], ['filter.other.smudge', command])(scene);
      await writeFile(join(scene.repository.path, '.git', 'info', 'attributes'), '* filter=other\n');
      await put(join(scene.repository.folder, 'attributes'), '* filter=other\n');
      await scene.repository.git('config', 'core.attributesFile', join(scene.repository.folder, 'attributes'));
    },
    control: [['add', '-A']],
  },
  {
    name: "the person's own filter, fsmonitor and hooks, in their global config",
    plant: async ({ repository, command: run, program }) => {
      await put(
        join(repository.home, '.gitconfig'),
        `[filter "evil"]\n\tclean = ${run}\n\tsmudge = ${run}\n[core]\n\tfsmonitor = ${program}\n`,
      );
    },
    control: [['status']],
  },
  { name: 'diff.external', plant: config(['diff.external', ({ program }) => program]), control: [['diff', 'HEAD~1']] },
  {
    name: 'diff command and textconv',
    plant: config(['diff.evil.textconv', ({ program }) => program], ['diff.evil.command', ({ program }) => program]),
    control: [['diff', 'HEAD~1']],
  },
  {
    name: 'merge drivers',
    plant: config(['merge.evil.driver', command], ['merge.default', () => 'evil']),
    control: [['merge-tree', '--write-tree', 'ours', 'theirs']],
  },
  {
    name: 'gpg.program with signing and showing of signatures',
    plant: config(
      ['gpg.program', ({ program }) => program],
      ['commit.gpgSign', () => 'true'],
      ['log.showSignature', () => 'true'],
    ),
    control: [['commit', '--allow-empty', '-m', 'x']],
  },
  {
    name: 'editor and pager',
    plant: config(
      ['core.editor', ({ program }) => program],
      ['sequence.editor', ({ program }) => program],
      ['core.pager', ({ program }) => program],
      ['pager.log', ({ program }) => program],
    ),
    control: [['commit', '--allow-empty', '--amend']],
  },
  {
    name: 'aliases',
    plant: async (scene) => {
      for (const name of ['lfs', 'cat-file', 'update-ref', 'add', 'log']) {
        await scene.repository.git('config', `alias.${name}`, `!${scene.command}`);
      }
    },
    control: [['lfs']],
  },
  {
    name: 'programs for remotes',
    plant: config(
      ['core.sshCommand', ({ deaf }) => deaf],
      ['credential.helper', ({ deaf }) => deaf],
      ['core.alternateRefsCommand', ({ deaf }) => deaf],
      ['protocol.ext.allow', () => 'always'],
      ['remote.origin.url', ({ deaf }) => `ext::${deaf}`],
    ),
    control: [['fetch', 'origin']],
  },
  {
    name: "a submodule of the person's with a hostile config",
    plant: async (scene) => {
      const sub = join(scene.repository.path, 'sub');
      await scene.repository.git('init', '-q', sub);
      await put(join(sub, 'f'), 'f');
      await scene.repository.git('-C', sub, 'add', '-A');
      await scene.repository.git('-C', sub, 'commit', '-q', '-m', 'sub');
      await scene.repository.git('add', 'sub');
      await scene.repository.git('commit', '-q', '-m', 'sub');
      await scene.repository.write('.gitmodules', '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n');
      await scene.repository.git('config', 'submodule.sub.ignore', 'none');
      await scene.repository.git('-C', sub, 'config', 'core.fsmonitor', scene.deaf);
    },
    control: [['status']],
  },
  {
    name: 'GIT_* in the environment giro is started in',
    plant: () => Promise.resolve(),
    own: ({ program }) => ({
      GIT_EXTERNAL_DIFF: program,
      GIT_EDITOR: program,
      GIT_PAGER: program,
      GIT_SSH_COMMAND: program,
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'core.fsmonitor',
      GIT_CONFIG_VALUE_0: program,
      GIT_DIR: '/nowhere',
      GIT_INDEX_FILE: '/nowhere',
      GIT_EXEC_PATH: dirname(program),
    }),
    control: [],
  },
  {
    name: 'a git on PATH inside the repository',
    plant: async ({ repository, command: run }) => {
      await put(join(repository.path, 'node_modules', '.bin', 'git'), `#!/bin/sh\n${run}\n`, 0o755);
    },
    own: ({ repository }) => ({ PATH: `${join(repository.path, 'node_modules', '.bin')}:/usr/bin:/bin` }),
    control: [],
  },
  {
    name: 'the .git file of a worktree, pointed at a hostile git dir',
    plant: async (scene) => {
      const gitDir = join(scene.repository.folder, 'hostile');
      await hostileGitDir(gitDir, scene);
      await writeFile(join(scene.worktree, '.git'), `gitdir: ${gitDir}\n`);
    },
    control: [['status']],
    inWorktree: true,
  },
  {
    name: 'the .git file of a worktree, replaced by a hostile git dir',
    plant: async (scene) => {
      await rm(join(scene.worktree, '.git'));
      await hostileGitDir(join(scene.worktree, '.git'), scene);
    },
    control: [['status']],
    inWorktree: true,
  },
  {
    name: 'the .git file of a worktree gone, and a hostile repository above',
    plant: async (scene) => {
      await rm(join(scene.worktree, '.git'));
      await hostileGitDir(join(dirname(scene.worktree), '.git'), scene);
    },
    control: [['status']],
    inWorktree: true,
  },
  {
    name: 'admin files of a worktree that name a hostile common dir',
    plant: async (scene) => {
      const gitDir = join(scene.repository.folder, 'hostile');
      await hostileGitDir(gitDir, scene);
      await writeFile(join(scene.repository.path, '.git', 'worktrees', 'desk', 'commondir'), `${gitDir}\n`);
    },
    control: [['status']],
    inWorktree: true,
  },
];

async function marks(scene: Scene): Promise<readonly string[]> {
  return readdir(join(scene.repository.folder, 'marks'));
}

/** A repository with two diverged branches and a worktree of giro's with work in it. */
async function makeScene(): Promise<Scene> {
  const repository = await makeRepository({ files: { 'f.txt': 'one\n', 'docs/a.md': 'a\n' } });
  await repository.write('.gitattributes', attributes);
  await repository.commit('attributes');
  for (const side of ['ours', 'theirs']) {
    await repository.git('checkout', '-q', '-b', side, 'main');
    await repository.write('f.txt', `${side}\n`);
    await repository.commit(side);
  }
  await repository.git('checkout', '-q', 'main');
  const worktree = join(repository.folder, 'trees', 'desk');
  await repository.git('worktree', 'add', '-q', '--detach', worktree);
  await writeFile(join(worktree, 'f.txt'), 'work\n');
  await writeFile(join(worktree, 'new.txt'), 'new\n');
  await repository.write('uncommitted.txt', 'mine\n');
  await repository.write('f.txt', 'mine\n');
  await mkdir(join(repository.folder, 'marks'));
  const program = join(repository.folder, 'bin', 'mark');
  const deaf = join(repository.folder, 'bin', 'deaf');
  const mark = `: > ${join(repository.folder, 'marks')}/$$`;
  await put(program, `#!/bin/sh\n${mark}\nexec cat\n`, 0o755);
  await put(deaf, `#!/bin/sh\n${mark}\n`, 0o755);
  return { repository, worktree, program, deaf, command: program };
}

/** Everything `Git` can do. */
async function doEverything(git: OpenedGit, { repository, worktree }: Scene): Promise<void> {
  const head = git.user.head;
  const [ours, theirs] = await Promise.all(['ours', 'theirs'].map((name) => git.readRef(`refs/heads/${name}`)));
  if (!ours || !theirs) throw new Error('no branches');
  const index = join(repository.folder, 'desk.index');
  const { tree } = await git.readCommit(head);
  await git.listTree(tree);
  const work = await git.snapshotFolder(worktree, index, ['*.secret']);
  const commit = await git.writeCommit({ tree: work, parents: [head], message: 'work', at: 0 });
  expect(await git.moveRef('refs/heads/giro/s', head, null)).toMatchObject({ ok: true });
  expect(await git.moveRef('refs/heads/giro/s', commit, head)).toMatchObject({ ok: true });
  expect(await git.moveRef('refs/heads/giro/s/x', commit, null)).toMatchObject({ ok: false });
  expect(await git.mergeTrees(ours, theirs)).toMatchObject({ kind: 'conflict', files: ['f.txt'] });
  expect(await git.mergeTrees(ours, commit)).toMatchObject({ kind: 'conflict' });
  expect((await git.diffTrees(head, commit)).map(({ path }) => path)).toEqual(
    expect.arrayContaining(['f.txt', 'new.txt']),
  );
  expect(await git.patch(head, commit, 10_000)).toContain('+work');
  await git.logBlobs([commit, ours], [head], 'docs');
  await git.isAncestor(head, commit);
  await git.mergeBase(ours, theirs);
  await git.checkOut(worktree, index, tree);
  await writeFile(join(worktree, 'f.txt'), 'two\n');
  expect(await git.changedFiles(worktree, index)).toEqual(['f.txt']);
  await git.cleanFolder(worktree, index, ['*.keep']);
  const folder = join(repository.folder, 'trees', 'second');
  const added = await git.addWorktree(folder, commit, 'giro');
  if (!added.ok) throw new Error(JSON.stringify(added.failure));
  await git.checkOut(folder, join(added.value.adminDir, 'index'), work);
  await git.snapshotFolder(folder, join(added.value.adminDir, 'index'));
  await git.removeWorktree(folder, added.value.adminDir);
  await git.listWorktrees();
  expect(await git.user.uncommitted()).toEqual(expect.arrayContaining(['f.txt', 'uncommitted.txt']));
  await git.user.headsOfWorktrees();
  await git.user.logGraph('refs/heads/giro/s');
  await git.user.gitVersion();
  await git.moveRef('refs/heads/giro/s', null, commit);
}

describe('nothing that is planted runs in anything giro does with git', () => {
  test.each(plants)('$name', async ({ plant, control, inWorktree, own }) => {
    const scene = await makeScene();
    const { repository } = scene;
    await plant(scene);
    const before = await repository.fingerprint();
    const already = await marks(scene);
    const opened = await openGit({
      folder: repository.path,
      own: { ...repository.own, ...own?.(scene) },
      runFolder: join(repository.folder, 'run'),
    });
    if (!opened.ok) throw new Error(JSON.stringify(opened.failure));
    await doEverything(opened.value, scene);
    await opened.value.close();
    expect(await marks(scene)).toEqual(already);
    expect(await repository.fingerprint()).toBe(before);
    if (control.length === 0) return;
    for (const args of control) {
      const place = inWorktree === true ? ['-C', scene.worktree] : [];
      // It may well fail; what counts is whether the plant ran.
      await repository.git(...place, ...args).catch(() => undefined);
    }
    expect((await marks(scene)).length).toBeGreaterThan(already.length);
  });
});

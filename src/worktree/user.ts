/**
 * The person's side of the repository: where they are and what they have not committed. Read only.
 *
 * simple-git does nothing about what is planted in a repository, and refuses the settings that would; so it is pointed at
 * a git dir of giro's own, and told that this environment is meant.
 */
import { basename, dirname } from 'node:path';
import type { SimpleGit } from 'simple-git';
import type { Oid } from '../issue.js';
import { silencingOptions } from './git-environment.js';
import type { CheckedOut, GitMachine, LinkedWorktree, UserSide } from './git-types.js';

/** What the person's side needs. */
export interface UserPorts {
  readonly facts: Pick<UserSide, 'topLevel' | 'head' | 'branch'>;
  readonly machine: GitMachine;
  readonly commonDir: string;
  readonly mainHead: () => Promise<Omit<CheckedOut, 'path'>>;
  readonly listWorktrees: () => Promise<readonly LinkedWorktree[]>;
  /** Environment of a git dir of giro's own that has the person's commit as `HEAD`, and uses their index and files. */
  readonly mirror: () => Promise<Readonly<Record<string, string>>>;
  readonly readRef: (ref: string) => Promise<Oid | null>;
}

/** Makes the person's side of an open repository. */
export function createUserSide(ports: UserPorts): UserSide {
  const { facts, machine, commonDir } = ports;
  return {
    ...facts,
    headsOfWorktrees: () => headsOfWorktrees(ports),
    async uncommitted() {
      if (facts.topLevel === null) return [];
      const git = await start(machine, await ports.mirror());
      // Without renames and without asking submodules, which would run git with their config.
      const status = [
        'status',
        '--porcelain',
        '-z',
        '--untracked-files=all',
        '--no-renames',
        '--ignore-submodules=dirty',
      ];
      return statusPaths(await git.raw(status));
    },
    async logGraph(ref) {
      const tip = await ports.readRef(ref);
      if (tip === null) return '';
      const git = await start(machine, { ...machine.environment, GIT_DIR: commonDir });
      const format = [
        '--graph',
        '--first-parent',
        '--oneline',
        '--decorate=short',
        '--no-color',
        '--no-show-signature',
        '--no-patch',
      ];
      return git.raw([...silencingOptions, 'log', ...format, tip]);
    },
    async gitVersion() {
      const { major, minor, patch } = await (await start(machine, machine.environment)).version();
      return [major, minor, patch].join('.');
    },
  };
}

/** Loads simple-git only now: most commands never need it. */
async function start(machine: GitMachine, env: Readonly<Record<string, string>>): Promise<SimpleGit> {
  const { simpleGit } = await import('simple-git');
  machine.count();
  const options = {
    baseDir: '/',
    binary: machine.binary,
    trimmed: false,
    maxConcurrentProcesses: 1,
    allowEnvironment: Object.keys(env),
    // Each of these is one of our own silencing settings, which it takes for an attack.
    unsafe: {
      allowUnsafeAskPass: true,
      allowUnsafeConfigPaths: true,
      allowUnsafeDiffExternal: true,
      allowUnsafeEditor: true,
      allowUnsafeFsMonitor: true,
      allowUnsafeHooksPath: true,
      allowUnsafePager: true,
      allowUnsafeSshCommand: true,
    },
  };
  return simpleGit(options).env({ ...env });
}

async function headsOfWorktrees(ports: UserPorts): Promise<readonly CheckedOut[]> {
  const { commonDir } = ports;
  const main = basename(commonDir) === '.git' ? dirname(commonDir) : commonDir;
  const linked = await ports.listWorktrees();
  return [
    { path: main, ...(await ports.mainHead()) },
    ...linked.map(({ folder, ref, head }) => ({ path: folder, ref, head })),
  ];
}

/** Paths of `status --porcelain -z --no-renames`: two letters, a space, the path. */
function statusPaths(output: string): readonly string[] {
  return output
    .split('\0')
    .filter((record) => record !== '')
    .map((record) => record.slice(3))
    .sort();
}

/**
 * Linked worktrees: registered by git, listed and removed in process.
 *
 * `git worktree remove` follows what the admin files say, and an agent can write those: it has deleted folders that were
 * no worktree at all. So giro deletes only the folder its caller names and the admin folder that really belongs to it.
 */
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { ok, type Result } from '../failure.js';
import type { Oid } from '../issue.js';
import { kindOf, readIfExists } from '../platform/files.js';
import { listFolder, makeFolder, removeTree } from '../platform/folders.js';
import type { WhileAlone } from '../platform/short-lock.js';
import { contains } from './git-folders.js';
import { parseRefFile, type StoredRef } from './git-refs.js';
import { environmentFailure, GitError, type LinkedWorktree, type RunGit } from './git-types.js';
import { Trash } from './trash.js';

/** What handling worktrees needs. */
export interface WorktreePorts {
  readonly commonDir: string;
  /** Runs on the repository itself, with its config silenced. */
  readonly run: RunGit;
  readonly readRef: (ref: string) => Promise<StoredRef>;
  readonly realPath: (path: string) => Promise<string>;
  readonly untouchable: readonly string[];
  /** Two `worktree add` at once read each other's half-made files (git 2.39), and those that are just being removed. */
  readonly whileAlone: WhileAlone;
}

/** The linked worktrees of a repository. */
export class LinkedWorktrees {
  readonly #ports: WorktreePorts;
  readonly #trash = new Trash();

  constructor(ports: WorktreePorts) {
    this.#ports = ports;
  }

  async add(folder: string, commit: Oid, reason: string): Promise<Result<{ readonly adminDir: string }>> {
    await makeFolder(dirname(folder));
    const added = await this.#ports.whileAlone(() => this.#add(folder, commit, reason));
    return added.ok ? added.value : added;
  }

  async #add(folder: string, commit: Oid, reason: string): Promise<Result<{ readonly adminDir: string }>> {
    const args = ['worktree', 'add', '--detach', '--no-checkout', '--lock', '--reason', reason, '--', folder, commit];
    try {
      await this.#ports.run({ args });
    } catch (error) {
      if (!(error instanceof GitError)) throw error;
      const hint = 'Is the folder writable, and is nothing else there?';
      return environmentFailure(`git cannot make a worktree at ${folder}: ${error.stderr.trim()}`, hint, error);
    }
    const adminDir = await adminDirOf(folder);
    if (adminDir === null) throw new Error(`git made no worktree at ${folder}`);
    return ok({ adminDir });
  }

  async remove(folder: string, adminDir: string): Promise<Result<void>> {
    const refusal = await this.#whyNotRemove(folder, adminDir);
    if (refusal !== null)
      return environmentFailure(`giro does not remove ${folder}: ${refusal}`, 'Look at it and remove it by hand.');
    // Asked before the folder is gone: the admin files of another worktree stay.
    const registered = await this.#belongsTo(adminDir, folder);
    if ((await kindOf(folder)) !== null) {
      await this.#trash.put(dirname(folder), folder);
    }
    return registered ? this.#ports.whileAlone(() => removeTree(adminDir)) : ok(undefined);
  }

  async #whyNotRemove(folder: string, adminDir: string): Promise<string | null> {
    if (dirname(adminDir) !== join(this.#ports.commonDir, 'worktrees'))
      return `${adminDir} is not where git keeps worktrees`;
    const kind = await kindOf(folder);
    if (kind === null) return null;
    if (kind !== 'folder') return `it is a ${kind}`;
    const real = await this.#ports.realPath(folder);
    const held = [...this.#ports.untouchable, this.#ports.commonDir].find((path) => contains(real, path));
    return held === undefined ? null : `it holds ${held}`;
  }

  /** Whether the admin files name this folder, or nothing that exists. */
  async #belongsTo(adminDir: string, folder: string): Promise<boolean> {
    if ((await kindOf(adminDir)) !== 'folder') return false;
    const named = await linkTarget(adminDir);
    if (named === null || (await kindOf(named)) === null) return true;
    const parent = await this.#ports.realPath(dirname(folder)).catch(() => dirname(folder));
    const real = await this.#ports.realPath(named);
    return real === join(parent, folder.slice(dirname(folder).length + 1)) || resolve(named) === resolve(folder);
  }

  async list(): Promise<readonly LinkedWorktree[]> {
    const entries = await listFolder(join(this.#ports.commonDir, 'worktrees'));
    const found = await Promise.all(
      entries
        .filter(({ kind }) => kind === 'folder')
        .map(({ name }) => this.#describe(join(this.#ports.commonDir, 'worktrees', name))),
    );
    return found.filter((worktree) => worktree !== null);
  }

  async #describe(adminDir: string): Promise<LinkedWorktree | null> {
    const folder = await linkTarget(adminDir);
    if (folder === null) return null;
    const locked = (await readIfExists(join(adminDir, 'locked')))?.toString().trim() ?? null;
    return { folder, adminDir, locked, ...(await readHead(adminDir, this.#ports.readRef)) };
  }

  async close(): Promise<void> {
    await this.#trash.emptied();
  }
}

/** Reads `HEAD` of a git dir: the branch it is on, and its commit. */
export async function readHead(
  gitDir: string,
  readRef: (ref: string) => Promise<StoredRef>,
): Promise<{ readonly head: Oid | null; readonly ref: string | null }> {
  const head = parseRefFile((await readIfExists(join(gitDir, 'HEAD')))?.toString() ?? '');
  if (head === null) return { head: null, ref: null };
  if ('oid' in head) return { head: head.oid, ref: null };
  const target = head.symbolic.startsWith('refs/') ? await readRef(head.symbolic) : null;
  return { head: target !== null && 'oid' in target ? target.oid : null, ref: head.symbolic };
}

/** The worktree that admin files name, from `<adminDir>/gitdir` (`<folder>/.git`). */
async function linkTarget(adminDir: string): Promise<string | null> {
  const link = (await readIfExists(join(adminDir, 'gitdir')))?.toString().trim() ?? '';
  if (link === '') return null;
  return dirname(isAbsolute(link) ? link : resolve(adminDir, link));
}

/** The admin folder that a worktree's `.git` file names. */
async function adminDirOf(folder: string): Promise<string | null> {
  const text = (await readIfExists(join(folder, '.git')))?.toString() ?? '';
  const path = /^gitdir: (.+)$/m.exec(text)?.[1];
  if (path === undefined) return null;
  return isAbsolute(path) ? path : resolve(folder, path);
}

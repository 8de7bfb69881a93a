/**
 * The files by which git knows a linked worktree: `<common>/worktrees/<name>/` and the link in the folder. An agent can
 * write all of them, so before each use they are made to say again what giro wants, and what they say is only read.
 */
import { join } from 'node:path';
import type { IssueId, Oid, SpecSlug } from '../issue.js';
import { kindOf, readIfExists, rename, writeAtomic } from '../platform/files.js';
import { copyTree, listFolder, makeFolder, removeTree } from '../platform/folders.js';
import type { Git } from './git-types.js';
import { parseRefFile } from './git-refs.js';

/** One line of a reflog. */
export interface ReflogEntry {
  readonly oid: string;
  readonly message: string;
}

const quick = { sync: false } as const;
/** `modules`: repositories of submodules, which may hold commits that are nowhere else (`submodules.ts`). */
const kept = new Set(['HEAD', 'commondir', 'gitdir', 'locked', 'index', 'logs', 'modules']);

/** What the link file in the folder holds. */
function linkText(adminDir: string): string {
  return `gitdir: ${adminDir}\n`;
}

/** Whether the `.git` of a folder is the link to its own admin files, and nothing else. */
export async function hasOwnLink(folder: string, adminDir: string): Promise<boolean> {
  const link = join(folder, '.git');
  if ((await kindOf(link)) !== 'file') return false;
  return (await readIfExists(link))?.toString().trim() === linkText(adminDir).trim();
}

/** Writes the link where there is none. */
export async function writeLink(folder: string, adminDir: string): Promise<void> {
  await makeFolder(folder);
  await writeAtomic(join(folder, '.git'), linkText(adminDir), quick);
}

/** Gives the reason of a worktree's lock, by which `git worktree list` shows who has it, and a later run finds it. */
export function lockReason(spec: SpecSlug, issue: IssueId): string {
  return `giro ${spec} ${issue}`;
}

/** What a worktree is registered as. */
export interface Registration {
  readonly folder: string;
  readonly adminDir: string;
  /** Shown by `git worktree list`. */
  readonly reason: string;
}

/** Makes the admin files say: this folder, detached at this commit, locked for this reason, nothing going on. */
export async function resetAdmin({ folder, adminDir, reason }: Registration, commit: Oid): Promise<void> {
  if ((await kindOf(adminDir)) === 'link') await removeTree(adminDir);
  await makeFolder(join(adminDir, 'logs'));
  // What a merge, a rebase or a bisect left would make the next `git status` speak of it.
  for (const { name } of await listFolder(adminDir)) if (!kept.has(name)) await removeTree(join(adminDir, name));
  await setFile(join(adminDir, 'locked'), `${reason}\n`);
  await setFile(join(adminDir, 'gitdir'), `${join(folder, '.git')}\n`);
  await setFile(join(adminDir, 'commondir'), '../..\n');
  await setFile(join(adminDir, 'HEAD'), `${commit}\n`);
  // It exists, so git adds to it whatever `core.logAllRefUpdates` says; it is empty, so every line in it is the agent's.
  await setFile(join(adminDir, 'logs', 'HEAD'), '');
}

async function setFile(path: string, text: string): Promise<void> {
  const kind = await kindOf(path);
  if (kind !== null && kind !== 'file') await removeTree(path);
  else if (kind === 'file' && (await readIfExists(path))?.toString() === text) return;
  await writeAtomic(path, text, quick);
}

/** Gives git in the folder an index that knows all its files, so that its first `status` need not read them. */
export async function giveIndex(index: string, gitDir: string): Promise<void> {
  const temporary = join(gitDir, 'index.giro');
  await removeTree(temporary);
  await copyTree(index, temporary);
  const target = join(gitDir, 'index');
  if ((await kindOf(target)) === 'folder') await removeTree(target);
  await rename(temporary, target);
}

/** The commit a worktree is on, through a branch or not; `null` when there is none. */
export async function headOf(adminDir: string, git: Pick<Git, 'readRef'>): Promise<Oid | null> {
  const head = parseRefFile((await readIfExists(join(adminDir, 'HEAD')))?.toString('latin1') ?? '');
  if (head === null) return null;
  if ('oid' in head) return head.oid;
  return /^refs\/heads\/./.test(head.symbolic) ? git.readRef(head.symbolic) : null;
}

/** What the files of a worktree stand on. */
export interface StandsOn {
  readonly head: Oid | null;
  /** What a merge that is not committed yet takes in. */
  readonly merging: readonly Oid[];
}

/** Reads what git says there. */
export async function readStandsOn(adminDir: string, git: Pick<Git, 'readRef'>): Promise<StandsOn> {
  const path = join(adminDir, 'MERGE_HEAD');
  const text = (await kindOf(path)) === 'file' ? ((await readIfExists(path))?.toString('latin1') ?? '') : '';
  const merging = text.split('\n').flatMap((line) => {
    const ref = parseRefFile(line);
    return ref !== null && 'oid' in ref ? [ref.oid] : [];
  });
  return { head: await headOf(adminDir, git), merging };
}

/** Reads a reflog, oldest line first; empty when there is none. */
export async function readReflog(path: string): Promise<readonly ReflogEntry[]> {
  if ((await kindOf(path)) !== 'file') return [];
  const lines = ((await readIfExists(path))?.toString() ?? '').split('\n').slice(-maxReflogLines);
  return lines.flatMap((line) => {
    const match = /^[0-9a-f]{40,64} ([0-9a-f]{40}|[0-9a-f]{64}) [^\t]*(?:\t(.*))?$/.exec(line);
    return match?.[1] === undefined || /^0+$/.test(match[1]) ? [] : [{ oid: match[1], message: match[2] ?? '' }];
  });
}

const maxReflogLines = 5_000;

/**
 * Folders as giro needs them: made, listed, walked, copied with their links, removed without following one.
 *
 * What is quick is done at once, inside the call, as in `files.ts`; whole trees go through libuv's thread pool, or through a
 * process of their own.
 */
import * as quick from 'node:fs';
import { constants } from 'node:fs';
import type { Stats } from 'node:fs';
import * as fs from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { hasCode, kindOfEntry, nullIfAbsent, statIfExists, type FileKind } from './entries.js';
import { kindOf, quickBytes } from './files.js';
import { runPlumbing } from './plumbing.js';
import { promised } from './promised.js';

/** One name in a folder. */
export interface FolderEntry {
  readonly name: string;
  readonly kind: FileKind;
}

/** Makes a folder and those above it. Not with `recursive`, which never returns for a folder below `/proc` (Node 20). */
export function makeFolder(path: string): Promise<void> {
  return promised(() => {
    makeFolderNow(path);
  });
}

function makeFolderNow(path: string): void {
  // Mostly it is there, and an error takes Node longer to make than a folder.
  if (quick.statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return;
  try {
    quick.mkdirSync(path);
  } catch (error) {
    if (hasCode(error, 'ENOENT') && dirname(path) !== path) {
      makeFolderNow(dirname(path));
      makeOne(path);
    } else if (quick.statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error;
  }
}

/** Somebody else may be making the same folder. */
function makeOne(path: string): void {
  try {
    quick.mkdirSync(path);
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
  }
}

/** Removes a file or a whole folder; links are removed, never followed; nothing there is fine. */
export async function removeTree(path: string): Promise<void> {
  const stats = statIfExists(path);
  if (stats === null) return;
  try {
    if (!stats.isDirectory()) quick.rmSync(path, { force: true });
    else if (!removeSmall(path, { left: quickEntries })) await removeLarge(path);
  } catch (error) {
    if (!hasCode(error, 'EACCES', 'EPERM')) throw error;
    // Read-only folders, as package caches make them, cannot be emptied until they are writable.
    await makeWritable(path);
    await fs.rm(path, { recursive: true, force: true });
  }
}

const quickEntries = 64;

const maxRemovers = 2;
let removers = 0;

/** Folders that nobody removes yet. */
const unremoved: { readonly path: string; readonly gone: () => void }[] = [];

/** By a process of its own, which needs a fifth of the time and does not use giro's. */
async function removeLarge(path: string): Promise<void> {
  await new Promise<void>((gone) => {
    unremoved.push({ path, gone });
    if (removers < maxRemovers) void removeWaiting();
  });
  // Where there is no such program, or something withstood it.
  if (statIfExists(path) !== null) await fs.rm(path, { recursive: true, force: true });
}

/** Takes its share of all that waits, until nothing does. */
async function removeWaiting(): Promise<void> {
  removers += 1;
  while (unremoved.length > 0) {
    const share = unremoved.splice(0, Math.ceil(unremoved.length / maxRemovers));
    const args = ['-rf', '--', ...share.map(({ path }) => path)];
    await runPlumbing({ file: '/bin/rm', args, env: { LC_ALL: 'C' }, cwd: '/' });
    for (const { gone } of share) gone();
  }
  removers -= 1;
}

/** Removes a folder of a few entries; false when there is more, or when somebody is in the way. */
function removeSmall(path: string, budget: { left: number }): boolean {
  try {
    for (const entry of quick.readdirSync(path, { withFileTypes: true })) {
      if (budget.left-- <= 0) return false;
      const inner = join(path, entry.name);
      if (!entry.isDirectory()) quick.unlinkSync(inner);
      else if (!removeSmall(inner, budget)) return false;
    }
    quick.rmdirSync(path);
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR', 'ENOTEMPTY', 'EISDIR', 'EBUSY')) return false;
    throw error;
  }
}

/** Looks what is at each of many paths; null where nothing is. */
export async function statMany(paths: readonly string[]): Promise<readonly (Omit<WalkedEntry, 'name'> | null)[]> {
  const found: (Stats | null)[] = [];
  const slice = new TimeSlice();
  for (const path of paths) {
    found.push(statIfExists(path));
    if (slice.isOver) await slice.next();
  }
  return found;
}

/** Lists a folder by name; empty when it is not there. */
export function listFolder(path: string): Promise<readonly FolderEntry[]> {
  return promised(() => {
    const entries = nullIfAbsent(() => quick.readdirSync(path, { withFileTypes: true })) ?? [];
    return entries
      .map((entry) => ({ name: entry.name, kind: kindOfEntry(entry) }))
      .sort((left, right) => (left.name < right.name ? -1 : 1));
  });
}

/** One name met on a walk; what it is, is asked only where it matters. */
export interface WalkedEntry {
  readonly name: string;
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

/**
 * Visits a folder and, of those in it, the ones that `visit` names, links not followed. A folder that cannot be read comes
 * as null: whatever the reason, nobody else can read it either.
 */
export async function walkFolders(
  root: string,
  visit: (path: string, entries: readonly WalkedEntry[] | null) => readonly string[] | Promise<readonly string[]>,
): Promise<void> {
  const waiting = [''];
  const slice = new TimeSlice();
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const folder = path === '' ? root : `${root}/${path}`;
    for (const name of await visit(path, entriesOrNull(folder))) waiting.push(path === '' ? name : `${path}/${name}`);
    if (slice.isOver) await slice.next();
  }
}

/** How long work on many files keeps everything else waiting. */
const sliceMs = 4;

/** Lets everything else have its turn whenever a slice of time is over. */
class TimeSlice {
  #since = performance.now();

  get isOver(): boolean {
    return performance.now() - this.#since >= sliceMs;
  }

  next(): Promise<void> {
    return new Promise((resolve) => {
      setImmediate(() => {
        this.#since = performance.now();
        resolve();
      });
    });
  }
}

function entriesOrNull(path: string): readonly WalkedEntry[] | null {
  try {
    return quick.readdirSync(path, { withFileTypes: true });
  } catch (error) {
    return hasCode(error, 'ENOENT', 'ENOTDIR') ? [] : null;
  }
}

/** Copies a file, a link or a whole folder: blocks shared where the disk can, links as links, modes kept. */
export async function copyTree(from: string, to: string): Promise<void> {
  const stats = quick.lstatSync(from);
  switch (kindOfEntry(stats)) {
    case 'file':
      if (stats.size > quickBytes) await fs.copyFile(from, to, constants.COPYFILE_FICLONE);
      else quick.copyFileSync(from, to, constants.COPYFILE_FICLONE);
      return;
    case 'link':
      quick.symlinkSync(quick.readlinkSync(from), to);
      return;
    case 'folder':
      return copyFolder(from, to, stats.mode & 0o7777);
    case 'other':
      return; // A socket or a pipe means nothing to whoever reads the copy.
  }
}

async function copyFolder(from: string, to: string, mode: number): Promise<void> {
  await fs.mkdir(to, { recursive: true });
  const waiting = [...(await fs.readdir(from))];
  // A few at once: the file system is the limit, and a wide folder must not use up the file descriptors.
  const worker = async (): Promise<void> => {
    for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
      await copyTree(join(from, name), join(to, name));
    }
  };
  await Promise.all([worker(), worker(), worker(), worker()]);
  await fs.chmod(to, mode);
}

async function makeWritable(path: string): Promise<void> {
  if ((await kindOf(path)) !== 'folder') return;
  await fs.chmod(path, 0o700);
  for (const entry of await listFolder(path)) {
    if (entry.kind === 'folder') await makeWritable(join(path, entry.name));
  }
}

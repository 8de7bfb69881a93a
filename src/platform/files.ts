/**
 * Files as giro needs them: atomic writes that count their bytes, reads that know "absent", trees that keep links.
 *
 * What is quick is done at once, inside the call: a trip through libuv's thread pool costs ten times the processor time of
 * the call itself, and one Issue makes hundreds. Syncing, large files and whole trees do go through the pool.
 */
import { randomBytes } from 'node:crypto';
import * as quick from 'node:fs';
import { constants } from 'node:fs';
import type { Dirent, Stats } from 'node:fs';
import * as fs from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { runPlumbing } from './plumbing.js';
import { promised } from './promised.js';

/** What a path is, links not followed. */
export type FileKind = 'file' | 'folder' | 'link' | 'other';

/** One name in a folder. */
export interface FolderEntry {
  readonly name: string;
  readonly kind: FileKind;
}

/** Appends lines to one file, one `write` each, in order. */
export interface LineWriter {
  /** Writes one line before it returns; a failure is kept and thrown by `close`. */
  line(text: string): void;
  close(): Promise<void>;
}

/** Larger files are read and copied in the background. */
const quickBytes = 256 * 1024;

const readLater = promisify(quick.readFile);
const syncLater = promisify(quick.fsync);

/** Reads a file; null when it, or a folder above it, is not there. Refuses a pipe or a device, which may never end. */
export async function readIfExists(path: string): Promise<Buffer | null> {
  const file = nullIfAbsent(() => openToRead(path));
  if (file === null) return null;
  const { fd, size } = file;
  try {
    if (size > quickBytes) return await readLater(fd);
    // The size of a file in /proc is 0, and of a folder anything: reading one says what is wrong.
    return size === 0 || file.isFolder ? quick.readFileSync(fd) : readAt(fd, 0, size);
  } finally {
    quick.closeSync(fd);
  }
}

/** Reads many small files at once; `null` for each that does not exist. */
export function readManyIfExist(paths: readonly string[]): readonly (Buffer | null)[] {
  return paths.map((path) => nullIfAbsent(() => quick.readFileSync(path)));
}

/** Writes a file that must not exist yet, for readers that only look later; not synced. */
export function writeNew(path: string, data: string | Uint8Array): Promise<void> {
  return promised(() => {
    const fd = quick.openSync(path, 'wx');
    try {
      writeFully(fd, typeof data === 'string' ? Buffer.from(data) : data);
    } finally {
      quick.closeSync(fd);
    }
  });
}

/** How `writeAtomic` writes. */
export interface WriteOptions {
  /** Permission bits; absent: those of the file that is replaced, else 644. */
  readonly mode?: number;
  /** Whether the bytes are on the disk before it returns; true when absent. */
  readonly sync?: boolean;
  /** When the file says it was modified, in seconds since the epoch; now when absent. */
  readonly modifiedAt?: number;
}

/** Replaces a file wholly or not at all; refuses a symbolic link or a folder at `path`. */
export async function writeAtomic(path: string, data: string | Uint8Array, options: WriteOptions = {}): Promise<void> {
  const old = statIfExists(path);
  if (old !== null && !old.isFile()) throw new Error(`refusing to replace ${path}: it is not a regular file`);
  const temporary = await writeTemporary(path, data, { ...options, mode: options.mode ?? modeOf(old) });
  try {
    quick.renameSync(temporary, path);
  } catch (error) {
    quick.rmSync(temporary, { force: true });
    throw error;
  }
  if (options.sync !== false) await syncFolder(dirname(path));
}

/**
 * Creates `path` complete, or not at all: false when something is already there. The name appears by `link`, so nobody
 * ever reads a half-written file.
 */
export async function linkExclusive(path: string, data: string | Uint8Array): Promise<boolean> {
  const temporary = await writeTemporary(path, data, { mode: 0o644 });
  try {
    quick.linkSync(temporary, path);
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    throw error;
  } finally {
    quick.rmSync(temporary, { force: true });
  }
  await syncFolder(dirname(path));
  return true;
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

/** Says what is at a path without following a link; null when nothing is. */
export function kindOf(path: string): Promise<FileKind | null> {
  return promised(() => {
    const stats = statIfExists(path);
    return stats === null ? null : kind(stats);
  });
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

/** Size of a file in bytes; 0 when it is not there. */
export function sizeOf(path: string): Promise<number> {
  return promised(() => nullIfAbsent(() => quick.statSync(path, { throwIfNoEntry: false }))?.size ?? 0);
}

/** Reads the last bytes of a file as text, cut at a character boundary; empty when it is not there. */
export function readTail(path: string, maxBytes: number): Promise<string> {
  return promised(() => {
    const file = nullIfAbsent(() => openToRead(path));
    if (file === null) return '';
    const { fd, size } = file;
    try {
      const bytes = readAt(fd, Math.max(0, size - maxBytes), Math.min(size, maxBytes));
      return (size > maxBytes ? bytes.subarray(firstBoundary(bytes)) : bytes).toString('utf8');
    } finally {
      quick.closeSync(fd);
    }
  });
}

/** Opens a file for lines to be added at its end, making it when it is not there. */
export function openAppend(path: string): Promise<LineWriter> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW;
  return promised(() => lineWriter(quick.openSync(path, flags)));
}

/** Lists a folder by name; empty when it is not there. */
export function listFolder(path: string): Promise<readonly FolderEntry[]> {
  return promised(() => {
    const entries = nullIfAbsent(() => quick.readdirSync(path, { withFileTypes: true })) ?? [];
    return entries
      .map((entry) => ({ name: entry.name, kind: kind(entry) }))
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

/** Renames a file or folder on the same file system, replacing a file at `to`. */
export function rename(from: string, to: string): Promise<void> {
  return promised(() => {
    quick.renameSync(from, to);
  });
}

/** Copies a file, a link or a whole folder: blocks shared where the disk can, links as links, modes kept. */
export async function copyTree(from: string, to: string): Promise<void> {
  const stats = quick.lstatSync(from);
  switch (kind(stats)) {
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

function lineWriter(fd: number): LineWriter {
  let failure: Error | null = null;
  let torn = false;
  return {
    // Synchronous on purpose: the line survives whatever the next statement does, and lines keep their order.
    line(text) {
      if (text.includes('\n')) throw new Error('a line must not hold a line end');
      const bytes = Buffer.from(torn ? `\n${text}\n` : `${text}\n`);
      let written = 0;
      try {
        while (written < bytes.length) written += quick.writeSync(fd, bytes, written);
        torn = false;
      } catch (error) {
        torn ||= written > 0;
        failure ??= error instanceof Error ? error : new Error(String(error));
      }
    },
    close() {
      return promised(() => {
        quick.closeSync(fd);
        if (failure !== null) throw failure;
      });
    },
  };
}

async function writeTemporary(path: string, data: string | Uint8Array, options: WriteOptions): Promise<string> {
  const temporary = join(dirname(path), `.${basename(path).slice(0, 100)}.${randomBytes(6).toString('hex')}.tmp`);
  const fd = quick.openSync(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
  try {
    try {
      writeFully(fd, typeof data === 'string' ? Buffer.from(data) : data);
      if (options.mode !== undefined) quick.fchmodSync(fd, options.mode);
      if (options.modifiedAt !== undefined) quick.futimesSync(fd, options.modifiedAt, options.modifiedAt);
      if (options.sync !== false) await syncLater(fd);
    } finally {
      quick.closeSync(fd);
    }
  } catch (error) {
    quick.rmSync(temporary, { force: true });
    throw error;
  }
  return temporary;
}

/** On a full disk one write may take only a part and report no error: only the count tells. */
function writeFully(fd: number, bytes: Uint8Array): void {
  let done = 0;
  while (done < bytes.length) done += quick.writeSync(fd, bytes, done);
}

/** Opens a regular file (or a folder, which then fails to be read) without waiting for the other end of a pipe. */
function openToRead(path: string): { readonly fd: number; readonly size: number; readonly isFolder: boolean } {
  const fd = quick.openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const stats = quick.fstatSync(fd);
  if (stats.isFile() || stats.isDirectory()) return { fd, size: stats.size, isFolder: stats.isDirectory() };
  quick.closeSync(fd);
  throw new Error(`refusing to read ${path}: it is not a regular file`);
}

function readAt(fd: number, position: number, count: number): Buffer {
  const bytes = Buffer.alloc(count);
  let done = 0;
  while (done < count) {
    const bytesRead = quick.readSync(fd, bytes, done, count - done, position + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return bytes.subarray(0, done);
}

/** Index of the first byte that does not continue a UTF-8 character begun before the cut. */
function firstBoundary(bytes: Buffer): number {
  let index = 0;
  while (index < 3 && ((bytes[index] ?? 0) & 0xc0) === 0x80) index++;
  return index;
}

/** Makes a rename or a new name durable: without it a power cut may bring the old folder back. */
async function syncFolder(path: string): Promise<void> {
  const fd = quick.openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await syncLater(fd);
  } catch (error) {
    // Some network and overlay file systems cannot sync a folder; the file itself is synced.
    if (!hasCode(error, 'EINVAL', 'ENOTSUP', 'EPERM')) throw error;
  } finally {
    quick.closeSync(fd);
  }
}

function modeOf(old: Stats | null): number {
  return old === null ? 0o644 : old.mode & 0o777;
}

function kind(entry: Stats | Dirent): FileKind {
  if (entry.isFile()) return 'file';
  if (entry.isDirectory()) return 'folder';
  return entry.isSymbolicLink() ? 'link' : 'other';
}

function statIfExists(path: string): Stats | null {
  return nullIfAbsent(() => quick.lstatSync(path, { throwIfNoEntry: false })) ?? null;
}

function nullIfAbsent<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return null;
    throw error;
  }
}

function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}

/**
 * Files as giro needs them: atomic writes that count their bytes, reads that know "absent". Folders are in `folders.ts`.
 *
 * What is quick is done at once, inside the call: a trip through libuv's thread pool costs ten times the processor time of
 * the call itself, and one Issue makes hundreds. Syncing and large files do go through the pool.
 */
import { randomBytes } from 'node:crypto';
import * as quick from 'node:fs';
import { constants } from 'node:fs';
import type { Stats } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { hasCode, kindOfEntry, nullIfAbsent, statIfExists, type FileKind } from './entries.js';
import { promised } from './promised.js';

/** Appends lines to one file, one `write` each, in order. */
export interface LineWriter {
  /** Writes one line before it returns; a failure is kept and thrown by `close`. */
  line(text: string): void;
  close(): Promise<void>;
}

/** Larger files are read and copied in the background. */
export const quickBytes = 256 * 1024;

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

/** Says why a path, links followed, is no file that can be read; null when it is one, or nothing is there. */
export function reasonAgainstReading(path: string): Promise<string | null> {
  return promised(() => {
    const stats = nullIfAbsent(() => quick.statSync(path, { throwIfNoEntry: false }));
    if (stats === null || stats === undefined) return null;
    if (!stats.isFile()) return `it is ${stats.isDirectory() ? 'a folder' : 'a pipe or a device'}`;
    try {
      quick.accessSync(path, constants.R_OK);
      return null;
    } catch {
      return 'its permissions forbid it';
    }
  });
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
export async function linkExclusive(
  path: string,
  data: string | Uint8Array,
  { sync = true }: Pick<WriteOptions, 'sync'> = {},
): Promise<boolean> {
  const temporary = await writeTemporary(path, data, { mode: 0o644, sync });
  try {
    quick.linkSync(temporary, path);
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    throw error;
  } finally {
    removeNow(temporary);
  }
  if (sync) await syncFolder(dirname(path));
  return true;
}

/** Removes a file; nothing there is fine. */
export function removeFile(path: string): Promise<void> {
  return promised(() => {
    removeNow(path);
  });
}

/** Not by `rmSync`, which looks at it first. */
function removeNow(path: string): void {
  nullIfAbsent(() => {
    quick.unlinkSync(path);
  });
}

/** Says what is at a path without following a link; null when nothing is. */
export function kindOf(path: string): Promise<FileKind | null> {
  return promised(() => {
    const stats = statIfExists(path);
    return stats === null ? null : kindOfEntry(stats);
  });
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

/** Renames a file or folder on the same file system, replacing a file at `to`. */
export function rename(from: string, to: string): Promise<void> {
  return promised(() => {
    quick.renameSync(from, to);
  });
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
export async function syncFolder(path: string): Promise<void> {
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

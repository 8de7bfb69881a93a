/** Files as giro needs them: atomic writes that count their bytes, reads that know "absent", trees that keep links. */
import { randomBytes } from 'node:crypto';
import { constants, readFileSync, writeSync } from 'node:fs';
import type { Dirent, Stats } from 'node:fs';
import * as fs from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** What a path is, links not followed. */
export type FileKind = 'file' | 'folder' | 'link' | 'other';

/** Appends lines to one file, one `write` each, in order. */
export interface LineWriter {
  /** Writes one line before it returns; a failure is kept and thrown by `close`. */
  line(text: string): void;
  close(): Promise<void>;
}

/** Reads a file; null when it, or a folder above it, is not there. */
export async function readIfExists(path: string): Promise<Buffer | null> {
  return nullIfAbsent(() => fs.readFile(path));
}

/**
 * Reads many small files; `null` for each that does not exist. Synchronous on purpose: a thousand promises with a file
 * handle each take ten times as long.
 */
export function readManyIfExist(paths: readonly string[]): readonly (Buffer | null)[] {
  return paths.map((path) => {
    try {
      return readFileSync(path);
    } catch (error) {
      if (hasCode(error, 'ENOENT', 'ENOTDIR')) return null;
      throw error;
    }
  });
}

/** How `writeAtomic` writes. */
export interface WriteOptions {
  /** Permission bits; absent: those of the file that is replaced, else 644. */
  readonly mode?: number;
  /** Whether the bytes are on the disk before it returns; true when absent. */
  readonly sync?: boolean;
}

/** Replaces a file wholly or not at all; refuses a symbolic link or a folder at `path`. */
export async function writeAtomic(path: string, data: string | Uint8Array, options: WriteOptions = {}): Promise<void> {
  const old = await statIfExists(path);
  if (old !== null && !old.isFile()) throw new Error(`refusing to replace ${path}: it is not a regular file`);
  const temporary = await writeTemporary(path, data, { ...options, mode: options.mode ?? modeOf(old) });
  try {
    await fs.rename(temporary, path);
  } catch (error) {
    await fs.rm(temporary, { force: true });
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
    await fs.link(temporary, path);
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    throw error;
  } finally {
    await fs.rm(temporary, { force: true });
  }
  await syncFolder(dirname(path));
  return true;
}

/** Makes a folder and those above it. Not with `recursive`, which never returns for a folder below `/proc` (Node 20). */
export async function makeFolder(path: string): Promise<void> {
  try {
    await fs.mkdir(path);
  } catch (error) {
    if (hasCode(error, 'ENOENT') && dirname(path) !== path) {
      await makeFolder(dirname(path));
      await makeOne(path);
    } else if (!(await fs.stat(path).catch(() => null))?.isDirectory()) throw error;
  }
}

/** Somebody else may be making the same folder. */
async function makeOne(path: string): Promise<void> {
  await fs.mkdir(path).catch((error: unknown) => {
    if (!hasCode(error, 'EEXIST')) throw error;
  });
}

/** Removes a file or a whole folder; links are removed, never followed; nothing there is fine. */
export async function removeTree(path: string): Promise<void> {
  try {
    await fs.rm(path, { recursive: true, force: true });
  } catch (error) {
    if (!hasCode(error, 'EACCES', 'EPERM')) throw error;
    // Read-only folders, as package caches make them, cannot be emptied until they are writable.
    await makeWritable(path);
    await fs.rm(path, { recursive: true, force: true });
  }
}

/** Says what is at a path without following a link; null when nothing is. */
export async function kindOf(path: string): Promise<FileKind | null> {
  const stats = await statIfExists(path);
  return stats === null ? null : kind(stats);
}

/** Size of a file in bytes; 0 when it is not there. */
export async function sizeOf(path: string): Promise<number> {
  return (await nullIfAbsent(() => fs.stat(path)))?.size ?? 0;
}

/** Reads the last bytes of a file as text, cut at a character boundary; empty when it is not there. */
export async function readTail(path: string, maxBytes: number): Promise<string> {
  const file = await nullIfAbsent(() => fs.open(path, constants.O_RDONLY));
  if (file === null) return '';
  try {
    const { size } = await file.stat();
    const bytes = await readAt(file, Math.max(0, size - maxBytes), Math.min(size, maxBytes));
    return (size > maxBytes ? bytes.subarray(firstBoundary(bytes)) : bytes).toString('utf8');
  } finally {
    await file.close();
  }
}

/** Opens a file for lines to be added at its end, making it when it is not there. */
export async function openAppend(path: string): Promise<LineWriter> {
  const file = await fs.open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW);
  return lineWriter(file);
}

/** Lists a folder by name; empty when it is not there. */
export async function listFolder(path: string): Promise<readonly { readonly name: string; readonly kind: FileKind }[]> {
  const entries = (await nullIfAbsent(() => fs.readdir(path, { withFileTypes: true }))) ?? [];
  return entries
    .map((entry) => ({ name: entry.name, kind: kind(entry) }))
    .sort((left, right) => (left.name < right.name ? -1 : 1));
}

/** Renames a file or folder on the same file system, replacing a file at `to`. */
export async function rename(from: string, to: string): Promise<void> {
  await fs.rename(from, to);
}

/** Copies a file, a link or a whole folder: blocks shared where the disk can, links as links, modes kept. */
export async function copyTree(from: string, to: string): Promise<void> {
  const stats = await fs.lstat(from);
  switch (kind(stats)) {
    case 'file':
      return fs.copyFile(from, to, constants.COPYFILE_FICLONE);
    case 'link':
      return fs.symlink(await fs.readlink(from), to);
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

function lineWriter(file: fs.FileHandle): LineWriter {
  let failure: Error | null = null;
  let torn = false;
  return {
    // Synchronous on purpose: the line survives whatever the next statement does, and lines keep their order.
    line(text) {
      if (text.includes('\n')) throw new Error('a line must not hold a line end');
      const bytes = Buffer.from(torn ? `\n${text}\n` : `${text}\n`);
      let written = 0;
      try {
        while (written < bytes.length) written += writeSync(file.fd, bytes, written);
        torn = false;
      } catch (error) {
        torn ||= written > 0;
        failure ??= error instanceof Error ? error : new Error(String(error));
      }
    },
    async close() {
      await file.close();
      if (failure !== null) throw failure;
    },
  };
}

async function writeTemporary(path: string, data: string | Uint8Array, options: WriteOptions): Promise<string> {
  const temporary = join(dirname(path), `.${basename(path).slice(0, 100)}.${randomBytes(6).toString('hex')}.tmp`);
  const file = await fs.open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
  try {
    try {
      await writeFully(file, typeof data === 'string' ? Buffer.from(data) : data);
      if (options.mode !== undefined) await file.chmod(options.mode);
      if (options.sync !== false) await file.sync();
    } finally {
      await file.close();
    }
  } catch (error) {
    await fs.rm(temporary, { force: true });
    throw error;
  }
  return temporary;
}

/** On a full disk one write may take only a part and report no error: only the count tells. */
async function writeFully(file: fs.FileHandle, bytes: Uint8Array): Promise<void> {
  let done = 0;
  while (done < bytes.length) done += (await file.write(bytes, done)).bytesWritten;
}

async function readAt(file: fs.FileHandle, position: number, count: number): Promise<Buffer> {
  const bytes = Buffer.alloc(count);
  let done = 0;
  while (done < count) {
    const { bytesRead } = await file.read(bytes, done, count - done, position + done);
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
  const folder = await fs.open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await folder.sync();
  } catch (error) {
    // Some network and overlay file systems cannot sync a folder; the file itself is synced.
    if (!hasCode(error, 'EINVAL', 'ENOTSUP', 'EPERM')) throw error;
  } finally {
    await folder.close();
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

function statIfExists(path: string): Promise<Stats | null> {
  return nullIfAbsent(() => fs.lstat(path));
}

async function nullIfAbsent<T>(read: () => Promise<T>): Promise<T | null> {
  try {
    return await read();
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return null;
    throw error;
  }
}

function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}

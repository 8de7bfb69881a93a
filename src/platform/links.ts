/** What `files.ts` leaves out: symbolic links, real paths, times, and folders that only their owner may enter. */
import * as fs from 'node:fs/promises';
import { dirname } from 'node:path';

/** Size and time of a file, as a cheap sign that it changed. */
export interface FileStamp {
  readonly size: number;
  readonly modifiedMs: number;
}

/** Reads where a symbolic link points, as written in it; null when there is no link. */
export async function readLink(path: string): Promise<string | null> {
  return nullWhen(() => fs.readlink(path), ['ENOENT', 'ENOTDIR', 'EINVAL']);
}

/** Makes a symbolic link; fails when something is there. */
export async function makeLink(target: string, path: string): Promise<void> {
  await fs.symlink(target, path);
}

/** Gives the path with all links of it followed; null when nothing is there. */
export async function realPath(path: string): Promise<string | null> {
  return nullWhen(() => fs.realpath(path), ['ENOENT', 'ENOTDIR']);
}

/** Gives size and time of what is at a path, links not followed; null when nothing is. */
export async function stampOf(path: string): Promise<FileStamp | null> {
  const stats = await nullWhen(() => fs.lstat(path), ['ENOENT', 'ENOTDIR']);
  return stats === null ? null : { size: stats.size, modifiedMs: stats.mtimeMs };
}

/** Makes a new folder that only its owner may enter; fails when something is there. */
export async function makePrivateFolder(path: string): Promise<void> {
  await fs.mkdir(dirname(path), { recursive: true });
  await fs.mkdir(path, { mode: 0o700 });
}

async function nullWhen<T>(read: () => Promise<T>, codes: readonly string[]): Promise<T | null> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof Error && 'code' in error && codes.includes(String(error.code))) return null;
    throw error;
  }
}

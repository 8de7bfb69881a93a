/** What `files.ts` leaves out: symbolic links, real paths, times, and folders that only their owner may enter. */
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { walkFolders } from './folders.js';
import { promised } from './promised.js';

/** Size and time of a file, as a cheap sign that it changed. */
export interface FileStamp {
  readonly size: number;
  readonly modifiedMs: number;
}

/** Reads where a symbolic link points, as written in it; null when there is no link. */
export function readLink(path: string): Promise<string | null> {
  return nullWhen(() => fs.readlinkSync(path), ['ENOENT', 'ENOTDIR', 'EINVAL']);
}

/** Makes a symbolic link; fails when something is there. */
export function makeLink(target: string, path: string): Promise<void> {
  return promised(() => {
    fs.symlinkSync(target, path);
  });
}

/** Gives the path with all links of it followed; null when nothing is there. */
export function realPath(path: string): Promise<string | null> {
  return nullWhen(() => fs.realpathSync.native(path), ['ENOENT', 'ENOTDIR']);
}

/** Gives size and time of what is at a path, links not followed; null when nothing is. */
export async function stampOf(path: string): Promise<FileStamp | null> {
  const stats = await nullWhen(() => fs.lstatSync(path), ['ENOENT', 'ENOTDIR']);
  return stats === null ? null : { size: stats.size, modifiedMs: stats.mtimeMs };
}

/** Makes a new folder that only its owner may enter; fails when something is there. */
export function makePrivateFolder(path: string): Promise<void> {
  return promised(() => {
    fs.mkdirSync(dirname(path), { recursive: true });
    fs.mkdirSync(path, { mode: 0o700 });
  });
}

/** Takes the right to write from a folder and everything in it. Links are let be. */
export async function makeReadOnly(folder: string): Promise<void> {
  await walkFolders(folder, (path, entries) => {
    const inside = join(folder, path);
    for (const entry of entries ?? []) {
      if (!entry.isFile()) continue;
      const file = join(inside, entry.name);
      fs.chmodSync(file, fs.lstatSync(file).mode & 0o555);
    }
    fs.chmodSync(inside, 0o555);
    return (entries ?? []).filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  });
}

function nullWhen<T>(read: () => T, codes: readonly string[]): Promise<T | null> {
  return promised(() => {
    try {
      return read();
    } catch (error) {
      if (error instanceof Error && 'code' in error && codes.includes(String(error.code))) return null;
      throw error;
    }
  });
}

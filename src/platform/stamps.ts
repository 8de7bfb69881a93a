/** What a disk says about files, to the nanosecond, as git's index keeps it; and the few changes that need it at once. */
import { randomBytes } from 'node:crypto';
import * as quick from 'node:fs';
import { promised } from './promised.js';

/** What the disk says about one path, links not followed. */
export interface FileStamp {
  readonly isFile: boolean;
  readonly isFolder: boolean;
  readonly isExecutable: boolean;
  readonly ctimeNs: bigint;
  readonly mtimeNs: bigint;
  readonly dev: bigint;
  readonly ino: bigint;
  readonly uid: bigint;
  readonly gid: bigint;
  readonly size: bigint;
}

/** Looks at a path; null when nothing is there, or its folder is none. */
export function stampOf(path: string): Promise<FileStamp | null> {
  return promised(() => look(path));
}

/** Writes a file that must not exist yet, and says what the disk then says about it. */
export function createStamped(path: string, data: Uint8Array, isExecutable: boolean): Promise<FileStamp> {
  return promised(() => {
    const fd = quick.openSync(path, 'wx', isExecutable ? 0o777 : 0o666);
    try {
      for (let done = 0; done < data.length;) done += quick.writeSync(fd, data, done);
    } finally {
      quick.closeSync(fd);
    }
    const stamp = look(path);
    if (stamp === null) throw new Error(`${path} vanished`);
    return stamp;
  });
}

/** Removes a folder if it is empty; false when something is in it, or nothing of the kind is there. */
export function removeEmptyFolder(path: string): Promise<boolean> {
  return promised(() => {
    try {
      quick.rmdirSync(path);
      return true;
    } catch {
      return false;
    }
  });
}

/** The time by the clock that dates the files of a folder, in whole seconds since the epoch: a server has its own. */
export function timeOfDisk(folder: string): Promise<number> {
  return promised(() => {
    const path = `${folder}/.time-${randomBytes(6).toString('hex')}`;
    const fd = quick.openSync(path, 'wx', 0o600);
    try {
      return Math.floor(quick.fstatSync(fd).mtimeMs / 1000);
    } finally {
      quick.closeSync(fd);
      quick.unlinkSync(path);
    }
  });
}

function look(path: string): FileStamp | null {
  try {
    const stats = quick.lstatSync(path, { bigint: true, throwIfNoEntry: false });
    if (stats === undefined) return null;
    const { ctimeNs, mtimeNs, dev, ino, uid, gid, size, mode } = stats;
    const isExecutable = (mode & 0o100n) !== 0n;
    return {
      isFile: stats.isFile(),
      isFolder: stats.isDirectory(),
      isExecutable,
      ctimeNs,
      mtimeNs,
      dev,
      ino,
      uid,
      gid,
      size,
    };
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOTDIR') return null;
    throw error;
  }
}

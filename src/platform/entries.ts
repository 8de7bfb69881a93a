/** What is at a path: a kind, or nothing, which is no error. */
import * as quick from 'node:fs';
import type { Dirent, Stats } from 'node:fs';

/** What a path is, links not followed. */
export type FileKind = 'file' | 'folder' | 'link' | 'other';

/** What an entry is. */
export function kindOfEntry(entry: Stats | Dirent): FileKind {
  if (entry.isFile()) return 'file';
  if (entry.isDirectory()) return 'folder';
  return entry.isSymbolicLink() ? 'link' : 'other';
}

/** Looks at a path without following a link; null when nothing is there. */
export function statIfExists(path: string): Stats | null {
  return nullIfAbsent(() => quick.lstatSync(path, { throwIfNoEntry: false })) ?? null;
}

/** Reads; null when the path, or a folder above it, is not there. */
export function nullIfAbsent<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return null;
    throw error;
  }
}

/** Whether an error is one of the system's with such a code. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}

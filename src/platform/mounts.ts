/** Which file system a folder is on. */
import { accessSync, constants, readFileSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';

/** What is known of the disk of a folder that may not be there yet. */
export interface DiskFacts {
  /** The folder, or the nearest one above that is there, can be written. */
  readonly isWritable: boolean;
  /** As the system calls it; empty: it does not say. */
  readonly fileSystem: string;
  readonly isNoExec: boolean;
  readonly freeBytes: number;
}

/** Looks at the disk of a folder; makes nothing. */
export function diskOf(folder: string, mounts = textOf('/proc/self/mountinfo')): DiskFacts {
  const there = nearest(folder);
  const { bavail, bsize } = statfsSync(there);
  const mount = mountOf(there, mounts);
  return {
    isWritable: can(there, constants.W_OK),
    fileSystem: mount?.type ?? '',
    isNoExec: mount?.options.includes('noexec') ?? false,
    freeBytes: bavail * bsize,
  };
}

function nearest(folder: string): string {
  for (let at = folder; ; at = dirname(at)) if (can(at, constants.F_OK) || at === dirname(at)) return at;
}

function can(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}

interface Mount {
  readonly point: string;
  readonly type: string;
  readonly options: readonly string[];
}

/** The longest mount point above counts; of two at one place the later. */
function mountOf(path: string, text: string): Mount | null {
  let found: Mount | null = null;
  for (const line of text.split('\n')) {
    const [before = '', after = ''] = line.split(' - ');
    const [, , , , point, options] = before.split(' ');
    const [type] = after.split(' ');
    if (point === undefined || options === undefined || type === undefined) continue;
    const isAbove = point === '/' || path === point || path.startsWith(`${point}/`);
    if (isAbove && point.length >= (found?.point.length ?? 0)) found = { point, type, options: options.split(',') };
  }
  return found;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** A disk that loses what was not synced: takes from the folders of a killed giro all that a power cut would. */
import { copyFile, lstat, mkdir, readdir, readFile, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * What a disk keeps beside what was synced: nothing; or all names, though not what the files hold; or the refs that git has
 * renamed into place, though not the objects that they name. Disks may write out in any order.
 */
export const kindsOfLoss = ['all that is not synced', 'what files hold', 'objects before refs'] as const;
export type Loss = (typeof kindsOfLoss)[number];

type Names = ReadonlyMap<string, number>;

/** What was on the disk before giro began. */
export interface Disk {
  readonly folders: ReadonlyMap<string, Names>;
  readonly copies: string;
  readonly known: ReadonlySet<number>;
}

/** Takes a copy of what is in some folders. */
export async function copyDisk(roots: readonly string[], copies: string): Promise<Disk> {
  await mkdir(copies);
  const folders = new Map<string, Names>();
  const known = new Set<number>();
  const visit = async (folder: string): Promise<void> => {
    const names = new Map<string, number>();
    for (const name of await readdir(folder).catch(() => [])) {
      const path = join(folder, name);
      const stats = await lstat(path);
      names.set(name, stats.ino);
      if (stats.isDirectory()) await visit(path);
      else if (stats.isFile()) {
        await copyFile(path, join(copies, String(stats.ino)));
        known.add(stats.ino);
      }
    }
    folders.set(folder, names);
  };
  for (const root of roots) await visit(root);
  return { folders, copies, known };
}

/** Leaves of the folders what was on the disk before, and what the log says that was synced since. */
export async function losePower(roots: readonly string[], disk: Disk, loss: Loss): Promise<void> {
  const folders = new Map(disk.folders);
  const synced = new Set(disk.known);
  const log = await readFile(join(disk.copies, 'log'), 'utf8').catch(() => '');
  for (const line of log.split('\n').slice(0, -1)) {
    const { folder, names, file } = JSON.parse(line) as { folder?: string; names?: [string, number][]; file?: number };
    if (folder !== undefined) folders.set(folder, new Map(names));
    if (file !== undefined) synced.add(file);
  }
  for (const root of roots) await leave(root, { folders, synced, copies: disk.copies, loss });
}

interface Left {
  readonly folders: ReadonlyMap<string, Names>;
  readonly synced: ReadonlySet<number>;
  readonly copies: string;
  readonly loss: Loss;
}

async function leave(folder: string, left: Left): Promise<void> {
  const present = await readdir(folder).catch(() => []);
  const keepsNames =
    left.loss === 'what files hold' || (left.loss === 'objects before refs' && /\/refs(?:\/|$)/.test(folder));
  const durable = left.folders.get(folder) ?? new Map<string, number>();
  for (const name of present) {
    const path = join(folder, name);
    const stats = await lstat(path);
    const isThere = keepsNames || durable.get(name) === stats.ino;
    if (!isThere) await rm(path, { recursive: true });
    else if (stats.isDirectory()) await leave(path, left);
    else if (stats.isFile()) await leaveFile(path, stats.ino, left);
  }
  if (keepsNames) return;
  // What was removed or renamed over, and that is not synced, is there again.
  for (const [name, ino] of durable) {
    const path = join(folder, name);
    const stats = await lstat(path).catch(() => null);
    if (stats === null) await copyFile(join(left.copies, String(ino)), path).catch(() => undefined);
  }
}

/** A file of git's own is as git left it where git syncs it (`core.fsync`): objects and refs. */
async function leaveFile(path: string, ino: number, { synced, copies }: Left): Promise<void> {
  if (synced.has(ino)) await copyFile(join(copies, String(ino)), path).catch(() => undefined);
  else if (!/\/objects\/(?:..|pack)\/[0-9a-f]{38}|\/refs\//.test(path)) await truncate(path, 0);
}

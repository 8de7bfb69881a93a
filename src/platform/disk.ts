/** How much of the disk a folder takes. */
import { lstatSync } from 'node:fs';
import { walkFolders } from './folders.js';

const blockBytes = 512;

/** Bytes on disk of a file, or of a folder with everything in it; links count as themselves, nothing there is nothing. */
export async function bytesOnDisk(path: string): Promise<number> {
  const [own, isFolder] = look(path);
  let sum = own;
  if (!isFolder) return sum;
  await walkFolders(path, (prefix, entries) => {
    const folder = prefix === '' ? path : `${path}/${prefix}`;
    const inside: string[] = [];
    for (const entry of entries ?? []) {
      sum += look(`${folder}/${entry.name}`)[0];
      if (entry.isDirectory()) inside.push(entry.name);
    }
    return inside;
  });
  return sum;
}

/** What the system says of one path; what goes away meanwhile takes nothing. */
function look(path: string): readonly [bytes: number, isFolder: boolean] {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    return stats === undefined ? [0, false] : [stats.blocks * blockBytes, stats.isDirectory()];
  } catch {
    return [0, false];
  }
}

const units = ['B', 'KB', 'MB', 'GB', 'TB'];

/** Shows a number of bytes as people say it: `412 MB`, `1.2 GB`. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  // What would be rounded to a thousand is one of the next unit.
  for (; value >= 999.5 && unit < units.length - 1; unit += 1) value /= 1_000;
  return `${unit === 0 || value >= 9.95 ? String(Math.round(value)) : value.toFixed(1)} ${units[unit] ?? ''}`;
}

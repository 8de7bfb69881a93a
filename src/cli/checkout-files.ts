/** Reads a Spec's folder from the person's checkout. */
import { join } from 'node:path';
import type { SpecSlug } from '../issue.js';
import { kindOf, readManyIfExist } from '../platform/files.js';
import { listFolder } from '../platform/folders.js';
import { specsFolder } from '../spec.js';
import type { SpecFile } from '../store/read.js';

/** Reads all files of the Spec's folder; `null` when there is none. */
export async function readCheckout(top: string, spec: SpecSlug): Promise<readonly SpecFile[] | null> {
  const folder = join(top, specsFolder, spec);
  if ((await kindOf(folder)) !== 'folder') return null;
  const paths = await filesBelow(folder, `${specsFolder}/${spec}`);
  const contents = readManyIfExist(paths.map((path) => `${top}/${path}`));
  return paths.flatMap((path, at): SpecFile[] => {
    const bytes = contents[at];
    return bytes === null || bytes === undefined ? [] : [{ path, bytes }];
  });
}

async function filesBelow(folder: string, inside: string): Promise<readonly string[]> {
  const paths: string[] = [];
  for (const entry of await listFolder(folder)) {
    const path = `${inside}/${entry.name}`;
    if (entry.kind === 'folder') paths.push(...(await filesBelow(join(folder, entry.name), path)));
    if (entry.kind === 'file') paths.push(path);
  }
  return paths;
}

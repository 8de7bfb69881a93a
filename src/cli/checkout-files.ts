/** Reads a Spec's folder from the person's checkout. */
import { join } from 'node:path';
import { roleOf } from '../config/issue-name.js';
import type { Diagnostic } from '../failure.js';
import type { SpecSlug } from '../issue.js';
import { kindOf, readManyIfExist } from '../platform/files.js';
import { listFolder, type FolderEntry } from '../platform/folders.js';
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

/** What has the name of SPEC.md or of an Issue and is no file: left out without a word, its work would be missing from the proof. */
export async function notFiles(top: string, spec: SpecSlug): Promise<readonly Diagnostic[]> {
  const inside = `${specsFolder}/${spec}`;
  const kind = await kindOf(join(top, inside));
  if (kind !== null && kind !== 'folder') return [notAFile(inside, kind)];
  const entries = async (below: string): Promise<readonly FolderEntry[]> =>
    (await listFolder(join(top, inside, below))).map((entry) => ({ ...entry, name: `${below}${entry.name}` }));
  return [...(await entries('')), ...(await entries('issues/'))]
    .filter(({ name, kind }) => kind !== 'file' && (name === 'issues' ? kind !== 'folder' : isWanted(name)))
    .map(({ name, kind }) => notAFile(`${inside}/${name}`, kind));
}

function isWanted(name: string): boolean {
  return roleOf(name).kind !== 'ignored';
}

function notAFile(file: string, kind: FolderEntry['kind']): Diagnostic {
  const what = { file: 'a file', folder: 'a folder', link: 'a symbolic link', other: 'a pipe or a device' }[kind];
  const hint = kind === 'link' ? 'put what it leads to in its place' : 'move it away';
  return { file, message: `this is ${what}, which giro does not read`, hint };
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

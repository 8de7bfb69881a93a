/** What git ignores in a folder that goes: which of it is maybe nowhere else, and how it becomes a tree. */
import { basename, join } from 'node:path';
import type { Oid } from '../issue.js';
import { bytesOnDisk } from '../platform/disk.js';
import { kindOf, readIfExists, sizeOf } from '../platform/files.js';
import { walkFolders } from '../platform/folders.js';
import { readLink } from '../platform/links.js';
import type { Git, TreeTarget } from './git-types.js';

/** Something that git ignores, or that set-up made: the topmost path of it. */
export interface IgnoredPath {
  readonly path: string;
  readonly bytes: number;
  /** `made`: by set-up; `again`: a folder of the kind that tools fill; `other`: maybe nowhere else. */
  readonly kind: 'made' | 'again' | 'other';
}

/** Names of folders that tools fill, and fill again. */
const filledByTools = new Set([
  ...['node_modules', '.venv', 'venv', '.tox', 'vendor', '.gradle', '.bundle', '.pnpm-store', '.yarn'],
  ...['target', 'build', 'dist', 'out', 'bin', 'obj', 'coverage', '.nyc_output', 'htmlcov'],
  ...['.next', '.nuxt', '.svelte-kit', '.turbo', '.parcel-cache', '.cache', '.vite', '.eslintcache'],
  ...['__pycache__', '.pytest_cache', '.mypy_cache', '.ruff_cache', '.hypothesis'],
]);

/** The topmost paths of a folder that a tree does not have. */
export async function ignoredIn(
  folder: string,
  files: ReadonlySet<string>,
  made: ReadonlySet<string>,
): Promise<readonly IgnoredPath[]> {
  const folders = new Set([...files, ...made].flatMap(foldersAbove));
  const found: string[] = [];
  await walkFolders(folder, (prefix, entries) => {
    const inside: string[] = [];
    for (const entry of entries ?? []) {
      const path = prefix === '' ? entry.name : `${prefix}/${entry.name}`;
      if (path === '.git' || files.has(path)) continue;
      if (entry.isDirectory() && folders.has(path) && !made.has(path)) inside.push(entry.name);
      else found.push(path);
    }
    return inside;
  });
  const sized = found.sort().map(async (path): Promise<IgnoredPath> => {
    const kind = made.has(path) ? 'made' : filledByTools.has(basename(path)) ? 'again' : 'other';
    return { path, bytes: await bytesOnDisk(join(folder, path)), kind };
  });
  return Promise.all(sized);
}

function foldersAbove(path: string): readonly string[] {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'));
}

/** More than that is a matter of its own: a person decides. */
const mostSavedBytes = 16 * 1024 * 1024;
const mostSavedFiles = 1_000;

/** Files that go with a folder and are nowhere else; `null`: more than giro puts into a commit. */
export async function filesToSave(folder: string, paths: readonly string[]): Promise<readonly string[] | null> {
  const files: string[] = [];
  let bytes = 0;
  for (const path of paths) {
    for (const file of await filesBelow(folder, path)) {
      files.push(file);
      bytes += (await kindOf(join(folder, file))) === 'file' ? await sizeOf(join(folder, file)) : 0;
      if (files.length > mostSavedFiles || bytes > mostSavedBytes) return null;
    }
  }
  return files;
}

async function filesBelow(folder: string, path: string): Promise<readonly string[]> {
  const kind = await kindOf(join(folder, path));
  if (kind !== 'folder') return kind === 'file' || kind === 'link' ? [path] : [];
  const files: string[] = [];
  await walkFolders(join(folder, path), (prefix, entries) => {
    const above = prefix === '' ? path : `${path}/${prefix}`;
    const inside: string[] = [];
    for (const entry of entries ?? []) {
      if (entry.isDirectory()) inside.push(entry.name);
      else if (entry.isFile() || entry.isSymbolicLink()) files.push(`${above}/${entry.name}`);
    }
    // One more than is taken is enough to know.
    return files.length > mostSavedFiles ? [] : inside;
  });
  return files;
}

/** Writes files of a folder into a tree that git would leave out of it. */
export async function withFiles(git: Git, tree: Oid, from: { folder: string; files: readonly string[] }): Promise<Oid> {
  const edits = new Map<string, TreeTarget>();
  for (const file of from.files) {
    const path = join(from.folder, file);
    const target = await readLink(path);
    if (target !== null) edits.set(file, { mode: '120000', oid: await git.writeBlob(target) });
    else {
      const bytes = await readIfExists(path);
      // What went away since it was listed would be missing in what is said to be saved.
      if (bytes === null) throw new Error(`${path} went away while it was saved`);
      edits.set(file, { mode: '100644', oid: await git.writeBlob(bytes) });
    }
  }
  return git.editTree(tree, edits);
}

/** The ignored files of a folder that are maybe nowhere else. */
export interface ToSave {
  /** Their topmost paths. */
  readonly paths: readonly string[];
  /** `null`: more than giro puts into a commit. */
  readonly files: readonly string[] | null;
}

/** Finds what of a folder would go unsaved; `tree` has everything else. */
export async function ignoredToSave(
  git: Pick<Git, 'listTree'>,
  folder: string,
  { tree, made }: { readonly tree: Oid; readonly made: readonly string[] },
): Promise<ToSave> {
  const tracked = new Set((await git.listTree(tree)).map(({ path }) => path));
  const ignored = await ignoredIn(folder, tracked, new Set(made));
  const paths = ignored.flatMap(({ path, kind }) => (kind === 'other' ? [path] : []));
  return { paths, files: await filesToSave(folder, paths) };
}

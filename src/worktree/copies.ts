/**
 * Brings files of the user's checkout into a folder of giro: copies of what `[worktree] copy` names, links to what `link`
 * names. Nothing is written over a tracked file, through a link, or outside the folder.
 */
import { dirname, join, posix } from 'node:path';
import picomatch from 'picomatch';
import type { FileKind } from '../platform/entries.js';
import { kindOf } from '../platform/files.js';
import { copyTree, listFolder, makeFolder, removeTree } from '../platform/folders.js';
import { makeLink, readLink, stampOf, type FileStamp } from '../platform/links.js';
import { isGitName, leavesTree } from './guard.js';

/** One thing in the user's checkout that a pattern names. */
export interface Source {
  readonly path: string;
  readonly kind: 'file' | 'link';
  readonly stamp: FileStamp;
}

/** What copying and linking left in the folder. */
export interface Brought {
  /** Paths in the folder, the topmost where a whole folder is new. */
  readonly made: readonly string[];
  /** Paths that were left out, each with the reason. */
  readonly omitted: readonly string[];
}

/** The paths of a tree, and all folders above them. */
export interface TrackedPaths {
  readonly files: ReadonlySet<string>;
  readonly folders: ReadonlySet<string>;
}

/** Prepares the paths of a tree for look-ups. */
export function trackedPaths(paths: Iterable<string>): TrackedPaths {
  const files = new Set(paths);
  const folders = new Set<string>();
  for (const path of files) {
    for (let above = posix.dirname(path); above !== '.' && !folders.has(above); above = posix.dirname(above))
      folders.add(above);
  }
  return { files, folders };
}

/** Finds what the patterns name in the user's checkout, ignored files too; a folder stands for everything in it. */
export async function findSources(userTop: string, patterns: readonly string[]): Promise<readonly Source[]> {
  const found = new Map<string, Source>();
  for (const pattern of patterns) {
    const { base, glob } = picomatch.scan(pattern);
    const start = posix.normalize(base === '' ? '.' : base).replace(/\/$/, '');
    if (start.startsWith('/') || start.split('/').some((name) => name === '..' || isGitName(name))) continue;
    const walk: Walk = {
      userTop,
      found,
      matches: picomatch(pattern.replace(/\/$/, ''), { dot: true }),
      depth: pattern.includes('**') || glob === '' ? Infinity : pattern.split('/').length,
      intoPackages: pattern.includes('node_modules'),
    };
    if (start === '.') await visitFolder(walk, '');
    else await visit(walk, start, await kindOf(join(userTop, start)));
  }
  return [...found.values()].sort((left, right) => (left.path < right.path ? -1 : 1));
}

/** Whether patterns name a folder, or what is in it. */
export function isCopied(patterns: readonly string[], folder: string): boolean {
  return patterns.some((pattern) => {
    const matches = picomatch(pattern.replace(/\/$/, ''), { dot: true });
    return matches(folder) || matches(`${folder}/file`);
  });
}

interface Walk {
  readonly userTop: string;
  readonly found: Map<string, Source>;
  readonly matches: (path: string) => boolean;
  readonly depth: number;
  /** A pattern such as `**\/.env` does not mean the files of other people's packages. */
  readonly intoPackages: boolean;
}

async function visit(walk: Walk, path: string, kind: FileKind | null): Promise<void> {
  if (posix.basename(path) === '.git') return;
  if (walk.matches(path)) await collect(walk, path, kind);
  else if (kind === 'folder') await visitFolder(walk, path);
}

async function visitFolder(walk: Walk, folder: string): Promise<void> {
  const depth = folder === '' ? 0 : folder.split('/').length;
  if (depth >= walk.depth || (!walk.intoPackages && posix.basename(folder) === 'node_modules')) return;
  for (const { name, kind } of await listFolder(join(walk.userTop, folder)))
    await visit(walk, posix.join(folder, name), kind);
}

async function collect(walk: Walk, path: string, kind: FileKind | null): Promise<void> {
  if (kind === 'folder') {
    const entries = (await listFolder(join(walk.userTop, path))).filter(({ name }) => name !== '.git');
    await Promise.all(entries.map((entry) => collect(walk, posix.join(path, entry.name), entry.kind)));
  } else if (kind === 'file' || kind === 'link') {
    const stamp = await stampOf(join(walk.userTop, path));
    if (stamp !== null) walk.found.set(path, { path, kind, stamp });
  }
}

/** Where things are brought to. */
export interface Destination {
  readonly userTop: string;
  readonly folder: string;
  readonly tracked: TrackedPaths;
}

/** Copies sources; an older copy is replaced, a tracked file never. */
export async function copySources(to: Destination, sources: readonly Source[]): Promise<Brought> {
  const made: string[] = [];
  const omitted: string[] = [];
  const waiting = [...sources].reverse();
  const worker = async (): Promise<void> => {
    for (let source = waiting.pop(); source !== undefined; source = waiting.pop()) {
      const reason = await copyOne(to, source);
      if (reason === null) made.push(topmostUntracked(source.path, to.tracked));
      else if (reason !== 'tracked') omitted.push(`${source.path}: ${reason}`);
    }
  };
  await Promise.all([worker(), worker(), worker(), worker()]);
  return { made: [...new Set(made)].sort(), omitted: omitted.sort() };
}

/** `null`: copied; else why not. */
async function copyOne({ userTop, folder, tracked }: Destination, { path, kind }: Source): Promise<string | null> {
  if (tracked.files.has(path) || tracked.folders.has(path)) return 'tracked';
  if (kind === 'link' && leavesTree(path, (await readLink(join(userTop, path))) ?? ''))
    return 'a link that leaves the checkout';
  const blocked = await preparePath(folder, path);
  if (blocked !== null) return blocked;
  const target = join(folder, path);
  if ((await kindOf(target)) === 'folder') return 'a folder is there';
  await removeTree(target);
  await copyTree(join(userTop, path), target);
  return null;
}

/** Links paths to those of the user's checkout; what is there already stays. */
export async function linkPaths(to: Destination, paths: readonly string[]): Promise<Brought> {
  const made: string[] = [];
  const omitted: string[] = [];
  for (const given of paths) {
    const path = posix.normalize(given).replace(/\/$/, '');
    const reason = await linkOne(to, path);
    if (reason === null) made.push(topmostUntracked(path, to.tracked));
    else omitted.push(`${given}: ${reason}`);
  }
  return { made: made.sort(), omitted };
}

async function linkOne({ userTop, folder, tracked }: Destination, path: string): Promise<string | null> {
  const source = join(userTop, path);
  if (path === '.' || path.startsWith('/') || path.split('/')[0] === '..') return 'outside the checkout';
  if (path.split('/').some(isGitName)) return 'part of git';
  if (path.split('/').some(isGitName)) return 'part of git';
  if ((await kindOf(source)) === null) return 'not in the checkout';
  if (tracked.files.has(path) || tracked.folders.has(path)) return 'tracked by git';
  const blocked = await preparePath(folder, path);
  if (blocked !== null) return blocked;
  const target = join(folder, path);
  if ((await readLink(target)) === source) return null;
  if ((await kindOf(target)) !== null) return 'something else is there';
  await makeLink(source, target);
  return null;
}

/** Makes the folders above a path, unless one of them is a link: a write through it would land somewhere else. */
async function preparePath(folder: string, path: string): Promise<string | null> {
  let above = folder;
  for (const name of dirname(path).split('/')) {
    above = join(above, name);
    const kind = await kindOf(above);
    if (kind === null) await makeFolder(above);
    else if (kind !== 'folder') return `a ${kind} is in its way`;
  }
  return null;
}

/** The part of a path that is not in the tree any more. */
function topmostUntracked(path: string, tracked: TrackedPaths): string {
  const names = path.split('/');
  for (let count = 1; count < names.length; count += 1) {
    const prefix = names.slice(0, count).join('/');
    if (!tracked.folders.has(prefix)) return prefix;
  }
  return path;
}

/** Lists what is in a folder but not in its tree, the topmost where a whole folder is new; without the top `.git`. */
export async function untrackedPaths(folder: string, tracked: TrackedPaths): Promise<readonly string[]> {
  const found: string[] = [];
  const visit = async (prefix: string): Promise<void> => {
    const entries = await listFolder(join(folder, prefix));
    await Promise.all(
      entries.map(async ({ name, kind }) => {
        const path = prefix === '' ? name : `${prefix}/${name}`;
        if (path === '.git' || tracked.files.has(path)) return;
        if (kind === 'folder' && tracked.folders.has(path)) await visit(path);
        else found.push(path);
      }),
    );
  };
  await visit('');
  return found.sort();
}

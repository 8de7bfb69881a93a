/**
 * What an agent's folder must not hold before, and its tree after, it is taken back (DESIGN 10).
 *
 * Before `git add`: repositories inside the folder, since git may run what their config says when it looks at them. That
 * is found on the disk. After it: links that leave the tree, submodule pointers, names that are one and the same elsewhere.
 * That is found in the tree, so that what is ignored (`.venv/bin/python` is a link to `/usr/bin`) is nobody's business;
 * git itself never follows a link. Pipes, sockets and devices cannot be in a tree: git passes over them, so does giro,
 * but for those by a name that git reads.
 */
import { join, posix } from 'node:path';
import type { Finding, Oid } from '../issue.js';
import { kindOf, readIfExists, writeAtomic } from '../platform/files.js';
import { makeFolder, removeTree, statMany, walkFolders, type WalkedEntry } from '../platform/folders.js';
import { printable } from '../platform/text.js';
import type { Git, TreeEntry } from './git-types.js';
import { treeMode } from './objects.js';
import { namesOf } from './tree-names.js';

const linkMode = '120000';
/** Mode of a submodule in a tree. */
export const submoduleMode = '160000';
const maxFindings = 20;

/** What was found on the disk below a folder. */
export interface DiskSurvey {
  /** Paths whose last name is git's own in any spelling, but for `.git` at the top. */
  readonly repositories: readonly string[];
  readonly unreadable: readonly string[];
  /** Pipes and devices by the name of a file that git reads wherever it finds one: it would wait for them for ever. */
  readonly traps: readonly string[];
  /** All pipes, sockets and devices: cleaning passes over them, whatever they are called. */
  readonly special: readonly string[];
  /** False: beside what is to be kept, nothing is there that the tree does not have. */
  readonly hasUntracked: boolean;
}

/** Whether a name means `.git` to git on any system: letter case, what HFS+ ignores, what NTFS shortens or drops. */
export function isGitName(name: string): boolean {
  // Asked of every name in a folder, and nearly always answered by this.
  if (!/g/i.test(name) || !/t/i.test(name)) return false;
  return name.split('\\').some((piece) => {
    const visible = piece.replace(/[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g, '').toLowerCase();
    return /^(?:\.git|git~1)[ .]*(?::.*)?$/.test(visible);
  });
}

/** What a survey compares a folder with. */
export interface Tracked {
  readonly git: Pick<Git, 'readTree'>;
  readonly tree: Oid;
  /** Whether an untracked path may stay, by its last name. */
  readonly isKept: (name: string) => boolean;
}

/** Walks a folder by its directory entries, links not followed, and without the paths in `skip`. */
export async function surveyFolder(
  folder: string,
  skip: ReadonlySet<string>,
  tracked: Tracked | null = null,
): Promise<DiskSurvey> {
  const found = new Findings();
  const trees = new Map<string, Oid>(tracked === null ? [] : [['', tracked.tree]]);
  let hasUntracked = tracked === null;
  await walkFolders(folder, async (prefix, entries) => {
    const tree = trees.get(prefix);
    const known = tree === undefined || tracked === null ? null : await namesOf(tracked.git, tree);
    trees.delete(prefix);
    if (entries === null) found.unreadable.push(prefix);
    const folders: string[] = [];
    for (const on of entries ?? []) {
      const { name } = on;
      if (prefix === '' && name === '.git') continue;
      const path = prefix === '' ? name : `${prefix}/${name}`;
      const below = known?.folders.get(name);
      const isTracked = below !== undefined || known?.others.has(name) === true;
      if (!isTracked && known !== null && tracked?.isKept(name) === false) hasUntracked = true;
      if (skip.has(path)) continue;
      if (isTrap(name, on)) found.traps.push(path);
      if (isSpecial(on)) found.special.push(path);
      if (isGitName(name)) found.repositories.push(path);
      else if (on.isDirectory()) {
        folders.push(name);
        if (below !== undefined) trees.set(path, below);
        else if (isTracked) hasUntracked = true;
      }
    }
    return folders;
  });
  return { ...found.sorted(), hasUntracked };
}

class Findings {
  readonly repositories: string[] = [];
  readonly unreadable: string[] = [];
  readonly traps: string[] = [];
  readonly special: string[] = [];

  sorted(): Omit<DiskSurvey, 'hasUntracked'> {
    const { repositories, unreadable, traps, special } = this;
    return {
      repositories: repositories.sort(),
      unreadable: unreadable.sort(),
      traps: traps.sort(),
      special: special.sort(),
    };
  }
}

/** Files that git reads in whichever folder it looks at. */
const readByGit = new Set(['.gitignore', '.gitattributes', '.gitmodules']);

function isTrap(name: string, on: Omit<WalkedEntry, 'name'>): boolean {
  if (on.isFile() || on.isDirectory() || !readByGit.has(name.toLowerCase())) return false;
  // Git opens the first two without following a link.
  return isSpecial(on) || name.toLowerCase() === '.gitmodules';
}

function isSpecial(on: Omit<WalkedEntry, 'name'>): boolean {
  return !on.isFile() && !on.isDirectory() && !on.isSymbolicLink();
}

/** Removes pipes, sockets, devices and links that a survey found, unless the way to one leads out of the folder by now. */
export async function removeFound(folder: string, paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    const kind = await kindOf(join(folder, path));
    if (kind !== 'other' && kind !== 'link') continue;
    if ((await topmostLink(folder, path)) === path) await removeTree(join(folder, path));
  }
}

/**
 * Removes traps from where git looks for attributes when it compares the files of a tree. A link that stands where the tree
 * has a folder is removed instead of what it leads to.
 */
export async function removeTraps(git: Pick<Git, 'readTree'>, folder: string, tree: Oid): Promise<void> {
  const prefixes: string[] = [];
  const visit = async (oid: Oid, prefix: string): Promise<void> => {
    prefixes.push(prefix);
    for (const [name, below] of (await namesOf(git, oid)).folders) await visit(below, `${prefix}${name}/`);
  };
  await visit(tree, '');
  const paths = ['.gitmodules', ...prefixes.map((prefix) => `${prefix}.gitattributes`)];
  const found = await statMany(paths.map((path) => `${folder}/${path}`));
  for (const [at, path] of paths.entries()) {
    const on = found[at];
    if (on && isTrap(posix.basename(path), on)) await removeTree(join(folder, await topmostLink(folder, path)));
  }
}

/** The first part of a path that is a link; the path itself when none is. */
async function topmostLink(folder: string, path: string): Promise<string> {
  const names = path.split('/');
  for (let count = 1; count < names.length; count += 1) {
    const above = names.slice(0, count).join('/');
    if ((await kindOf(join(folder, above))) === 'link') return above;
  }
  return path;
}

/** What deciding about repositories inside a folder needs. */
export interface RepositoryCheck {
  readonly git: Pick<Git, 'readPath' | 'snapshotFolder'>;
  readonly folder: string;
  /** The tree the folder was filled with. */
  readonly shown: Oid;
  /** A path of giro's own that is free. */
  readonly scratch: string;
}

/**
 * Selects the repositories that matter: those git would look at. One below an ignored folder (what `terraform init` or
 * `swift build` leave) is not looked at, unless the tree has a submodule there.
 */
export async function refusedRepositories(
  paths: readonly string[],
  check: RepositoryCheck,
): Promise<readonly string[]> {
  if (paths.length === 0) return [];
  const ignored = await ignoredHolders(paths.map(holderOf), check);
  const refused: string[] = [];
  for (const path of paths) {
    const isSubmodule = (await check.git.readPath(check.shown, holderOf(path)))?.mode === submoduleMode;
    if (isSubmodule || !ignored.has(holderOf(path))) refused.push(path);
  }
  return refused;
}

/** The folder that a `.git` makes a repository; empty for the top. */
function holderOf(path: string): string {
  const holder = posix.dirname(path);
  return holder === '.' ? '' : holder;
}

/**
 * Asks git which folders are ignored, without letting it near them: a stand-in with the same .gitignore files, and a plain
 * file where each repository is.
 */
async function ignoredHolders(holders: readonly string[], check: RepositoryCheck): Promise<ReadonlySet<string>> {
  const named = [...new Set(holders)].filter((holder) => holder !== '');
  if (named.length === 0) return new Set();
  const standIn = join(check.scratch, 'folder');
  try {
    for (const holder of named) await standInFor(holder, check.folder, standIn);
    const tree = await check.git.snapshotFolder(standIn, join(check.scratch, 'index'));
    const entries = await Promise.all(
      named.map(async (holder) => ({ holder, entry: await check.git.readPath(tree, `${holder}/stand-in`) })),
    );
    return new Set(entries.filter(({ entry }) => entry === null).map(({ holder }) => holder));
  } finally {
    await removeTree(check.scratch);
  }
}

async function standInFor(holder: string, folder: string, standIn: string): Promise<void> {
  await makeFolder(join(standIn, holder));
  await writeAtomic(join(standIn, holder, 'stand-in'), '', { sync: false });
  // Those above it count; its own says only what is ignored inside.
  for (let above = holderOf(holder); ; above = holderOf(above)) {
    const rules = join(folder, above, '.gitignore');
    const text = (await kindOf(rules)) === 'file' ? await readIfExists(rules) : null;
    if (text !== null) await writeAtomic(join(standIn, above, '.gitignore'), text, { sync: false });
    if (above === '') return;
  }
}

/** Says what is wrong in a folder; of the repositories, those that matter. */
export function surveyFindings({
  repositories,
  unreadable,
  traps,
}: Omit<DiskSurvey, 'hasUntracked'>): readonly Finding[] {
  return limited([
    ...repositories.map((path) => ({
      rule: 'submodule',
      file: path,
      message: refused(
        'submodule',
        `a git repository inside the work: ${printable(path)}; remove it, so that the files beside it can be taken`,
      ),
    })),
    ...unreadable.map((path) => ({ file: path, message: `a folder that cannot be read: ${printable(path)}` })),
    ...traps.map((path) => ({
      file: path,
      message: `not a regular file, though git reads it: ${printable(path)}; remove it`,
    })),
  ]);
}

/** Finds what may not be in a tree, among what is new or changed since `base`: what the base has stays as it is. */
export async function inspectTree(
  git: Pick<Git, 'readTree' | 'changedEntries' | 'readBlob' | 'readPath'>,
  base: Oid,
  taken: Oid,
): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const visit = async (from: Oid | null, to: Oid, prefix: string): Promise<void> => {
    const changes = await git.changedEntries(from, to);
    const fresh = changes.filter((change) => change.was === undefined).map(({ name }) => name);
    if (fresh.length > 0) findings.push(...foldedNames(fresh, await git.readTree(to), prefix));
    await Promise.all(
      changes.map(async ({ name, was, is }) => {
        const path = prefix + name;
        if (is?.mode === treeMode) await visit(was?.mode === treeMode ? was.oid : null, is.oid, `${path}/`);
        if (is?.mode === submoduleMode) findings.push(submoduleFinding(path));
        else if (was?.mode === submoduleMode && (await isNamedAsBefore(git, base, taken)))
          findings.push(lostSubmodule(path));
        if (is?.mode === linkMode) findings.push(...linkFinding(path, (await git.readBlob(is.oid)).toString()));
      }),
    );
  };
  if (base !== taken) await visit(base, taken, '');
  return limited(findings.sort((left, right) => ((left.file ?? '') < (right.file ?? '') ? -1 : 1)));
}

/** Such work is not taken at all, so there is nothing that could be accepted. */
function refused(rule: string, message: string): string {
  return `guard ${rule}: ${message} (nobody can allow it)`;
}

function submoduleFinding(path: string): Finding {
  return {
    rule: 'submodule',
    file: path,
    message: refused(
      'submodule',
      `a submodule pointer that is new or changed: ${printable(path)}; put back what was there`,
    ),
  };
}

/** A submodule that goes together with its section in `.gitmodules` is a change like any other. */
async function isNamedAsBefore(git: Pick<Git, 'readPath'>, base: Oid, taken: Oid): Promise<boolean> {
  const [before, after] = await Promise.all([base, taken].map((tree) => git.readPath(tree, '.gitmodules')));
  return after !== null && before?.oid === after?.oid;
}

function lostSubmodule(path: string): Finding {
  return {
    rule: 'submodule',
    file: path,
    message: refused(
      'submodule',
      `the submodule ${printable(path)} is gone, though .gitmodules names it: put back its folder, empty if need be`,
    ),
  };
}

function linkFinding(path: string, target: string): readonly Finding[] {
  if (!leavesTree(path, target)) return [];
  return [
    {
      rule: 'symlink',
      file: path,
      message: refused(
        'symlink',
        `a symbolic link that leaves the work: ${printable(path)} -> ${printable(target.slice(0, 200))}; remove it`,
      ),
    },
  ];
}

/**
 * Whether a link at a path of a tree may lead out of it, or to git's own folder. `..` counts only before the first name:
 * behind one it could climb from wherever another link leads.
 */
export function leavesTree(path: string, target: string): boolean {
  if (target === '' || target.startsWith('/')) return true;
  let depth = path.split('/').length - 1;
  let descended = false;
  for (const name of target.split('/')) {
    if (name === '' || name === '.') continue;
    if (name === '..') {
      depth -= 1;
      if (descended || depth < 0) return true;
    } else {
      if (!descended && depth === 0 && isGitName(name)) return true;
      descended = true;
    }
  }
  return false;
}

/** Names of one folder that some file systems cannot hold side by side, unless all of them were there before. */
function foldedNames(fresh: readonly string[], entries: readonly TreeEntry[], prefix: string): readonly Finding[] {
  const groups = new Map(fresh.map((name): [string, string[]] => [folded(name), []]));
  for (const { name } of entries) groups.get(folded(name))?.push(name);
  return [...groups.values()]
    .filter((group) => group.length > 1)
    .map((group) => ({
      file: prefix + (group[0] ?? ''),
      message: `names that are one and the same on some systems: ${group.map((name) => printable(prefix + name)).join(', ')}`,
    }));
}

function folded(name: string): string {
  return name.normalize('NFC').toLowerCase();
}

function limited(findings: readonly Finding[]): readonly Finding[] {
  const more = findings.length - maxFindings;
  return more <= 0
    ? findings
    : [...findings.slice(0, maxFindings), { message: `and ${String(more)} more of the kind` }];
}

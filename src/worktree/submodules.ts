/**
 * What is in the submodules of a folder for agents. Git sees a submodule as one pointer: files that are changed in it, and
 * commits that are made there, are in no tree that is taken back. They must neither go unnoticed nor get lost.
 *
 * 1. What a submodule held when the folder was filled is noted; what differs from that, and from the commit that is
 *    pinned, is somebody's.
 * 2. A repository in a submodule, as `git submodule update --init` makes it, keeps its git dir among the folder's admin
 *    files. It is clean when all that was made in it came from elsewhere, and its files are those of the pinned commit.
 * 3. Git never looks at a folder with such a repository: its link is taken away for that time (`hide`).
 */
import { createHash } from 'node:crypto';
import { dirname, join, resolve } from 'node:path';
import { parseOid, type Finding, type Oid } from '../issue.js';
import { kindOf, readIfExists, rename, writeAtomic } from '../platform/files.js';
import { listFolder, makeFolder, removeTree } from '../platform/folders.js';
import { realPath } from '../platform/links.js';
import { printable } from '../platform/text.js';
import { readReflog } from './admin.js';
import { contains } from './git-folders.js';
import { FileRefs, parseRefFile } from './git-refs.js';
import type { Git, TreeTarget } from './git-types.js';
import { readHead } from './git-worktrees.js';
import { treeMode } from './objects.js';
import { submoduleMode, surveyFolder, type DiskSurvey } from './guard.js';

/** A folder whose submodules are looked at. */
export interface SubmodulesRequest {
  readonly git: Git;
  readonly folder: string;
  readonly adminDir: string;
  /** Engine storage of the folder. */
  readonly store: string;
}

/** One submodule of a tree. */
export interface Submodule {
  readonly path: string;
  readonly commit: Oid;
}

/** What is in a submodule. */
export interface Held {
  readonly path: string;
  /** Its files, without what is ignored; `null` when it holds a repository that is not clean, or is no folder. */
  readonly content: Oid | null;
  /** Its files before anybody worked. */
  readonly before: Oid;
  /** Files that differ from what was there, and from the pinned commit. */
  readonly changed: readonly string[];
  /** `linked`: a clean one, whose git dir is among the folder's admin files; `own`: any other. */
  readonly repository: 'none' | 'linked' | 'own';
  /** The git dir of a repository among the admin files. */
  readonly gitDir: string | null;
}

const gitName = '.git';

/** Lists the submodules of a tree; a pointer that no `.gitmodules` names is none, for git neither. */
export async function submodulesOf(
  git: Pick<Git, 'readPath' | 'listTree'>,
  tree: Oid | null,
): Promise<readonly Submodule[]> {
  if (tree === null || (await git.readPath(tree, '.gitmodules')) === null) return [];
  const files = await git.listTree(tree);
  return files.flatMap(({ path, mode, oid }) => (mode === submoduleMode ? [{ path, commit: oid }] : []));
}

/** The commit that a submodule of a person's checkout is on; `null` when there is none. */
export async function headOfSubmodule(holder: string): Promise<Oid | null> {
  const link = join(holder, gitName);
  const kind = await kindOf(link);
  const text = kind === 'file' ? (await readIfExists(link))?.toString() : undefined;
  const named = /^gitdir: (.+?)\r?\n?$/.exec(text ?? '')?.[1];
  const gitDir = kind === 'folder' ? link : named === undefined ? null : resolve(holder, named);
  if (gitDir === null) return null;
  const refs = new FileRefs({ commonDir: gitDir, stamp: () => Promise.resolve('') });
  return (await readHead(gitDir, (ref) => refs.read(ref))).head;
}

/** The submodules of one folder. */
export class Submodules {
  readonly #request: SubmodulesRequest;

  constructor(request: SubmodulesRequest) {
    this.#request = request;
  }

  /** Notes what they hold now as what was there before anybody worked. */
  async note(submodules: readonly Submodule[]): Promise<void> {
    const { store } = this.#request;
    await removeTree(notesIn(store));
    if (submodules.length === 0) return;
    const notes: [string, Oid | null][] = [];
    for (const { path } of submodules) notes.push([path, await this.#contentOf(path)]);
    await writeAtomic(notesIn(store), JSON.stringify(Object.fromEntries(notes)), { sync: false });
  }

  /** Looks at all of them. `repositories`: every path called `.git` in the folder; what has others inside is not looked into. */
  async look(submodules: readonly Submodule[], repositories: readonly string[]): Promise<readonly Held[]> {
    if (submodules.length === 0) return [];
    const { git, store } = this.#request;
    const before = await readNotes(store);
    const held: Held[] = [];
    for (const one of submodules)
      held.push(await this.#lookAt(one, repositories, before.get(one.path) ?? git.emptyTree));
    return held;
  }

  /** The same for a folder that was surveyed, and the repositories that are not in a submodule. */
  async lookInto(
    submodules: readonly Submodule[],
    { repositories, traps }: Pick<DiskSurvey, 'repositories' | 'traps'>,
  ): Promise<{ readonly held: readonly Held[]; readonly others: readonly string[] }> {
    const others = repositories.filter((path) => !submodules.some((one) => path.startsWith(`${one.path}/`)));
    // Git would wait for a pipe that is in one of them; the work is refused for it anyway.
    return { held: traps.length > 0 ? [] : await this.look(submodules, repositories), others };
  }

  async #lookAt(submodule: Submodule, repositories: readonly string[], before: Oid): Promise<Held> {
    const { git, folder } = this.#request;
    const { path, commit } = submodule;
    const link = join(folder, path, gitName);
    const gitDir = (await this.gitDirOf(path)) ?? (await this.#hiddenGitDirOf(path));
    const own = { path, content: null, before, changed: [], repository: 'own', gitDir } as const;
    if (gitDir === null && (await kindOf(link)) !== null) return own;
    if (repositories.some((one) => one.startsWith(`${path}/`) && one !== `${path}/${gitName}`)) return own;
    const content = await this.#contentOf(path);
    if (content === null) return { ...own, repository: 'none' };
    const answer = gitDir === null ? null : await ask(git, gitDir, commit);
    if (answer?.hasOwn === true) return own;
    const isKnown = content === before || content === answer?.tree;
    const changed = isKnown ? [] : await this.#differing(before, content);
    if (gitDir === null) return { ...own, content, changed, repository: 'none' };
    return isKnown ? { ...own, content, repository: 'linked' } : { ...own, changed };
  }

  /** Names of files; of all of them, when what was there is gone. */
  async #differing(from: Oid, to: Oid): Promise<readonly string[]> {
    const { git } = this.#request;
    try {
      return (await git.diffTrees(from, to)).map((change) => change.path);
    } catch {
      return (await git.listTree(to)).map((file) => file.path);
    }
  }

  /** Its files as a tree; `null` when it is no folder, or links lead elsewhere. */
  async #contentOf(path: string): Promise<Oid | null> {
    const { git, folder } = this.#request;
    const holder = join(folder, path);
    if ((await kindOf(holder)) === null) return git.emptyTree;
    const top = await realPath(folder);
    if (top === null || (await realPath(holder)) !== join(top, path) || (await kindOf(holder)) !== 'folder')
      return null;
    return git.snapshotFolder(holder, await this.#index(path));
  }

  async #index(path: string): Promise<string> {
    const name = createHash('sha256').update(path).digest('hex').slice(0, 16);
    const index = join(this.#request.store, 'submodules', name);
    await makeFolder(dirname(index));
    return index;
  }

  /** Brings back what was there before anybody worked; ignored files stay. */
  async restore(path: string): Promise<void> {
    const { git, folder, store } = this.#request;
    const holder = join(folder, path);
    if ((await kindOf(holder)) !== 'folder') return;
    await git.checkOut(holder, await this.#index(path), (await readNotes(store)).get(path) ?? git.emptyTree);
  }

  /** Takes the links of clean repositories away. */
  async hide(held: readonly Held[]): Promise<void> {
    for (const { path, repository } of held) {
      const link = join(this.#request.folder, path, gitName);
      if (repository !== 'linked' || (await kindOf(link)) !== 'file') continue;
      const hidden = this.#hidden(path);
      await makeFolder(dirname(hidden));
      await rename(link, hidden);
    }
  }

  /** Puts the links back. */
  async show(submodules: readonly Submodule[]): Promise<void> {
    for (const { path } of submodules) {
      const hidden = this.#hidden(path);
      const link = join(this.#request.folder, path, gitName);
      if ((await kindOf(hidden)) !== 'file') continue;
      if ((await kindOf(dirname(link))) === 'folder' && (await kindOf(link)) === null) await rename(hidden, link);
      else await removeTree(hidden);
    }
  }

  /** Removes clean repositories with their files: the next Issue is to find none. */
  async drop(held: readonly Held[]): Promise<void> {
    const { folder, adminDir } = this.#request;
    for (const { path, repository } of held) {
      if (repository !== 'linked') continue;
      await removeTree(join(folder, path));
      await makeFolder(join(folder, path));
      await removeTree(this.#hidden(path));
    }
    await removeTree(modulesOf(adminDir));
  }

  /** Moves a submodule with its files and its repository to another place, where it works on its own. */
  async moveAway({ path, gitDir }: Held, target: string): Promise<void> {
    const { folder } = this.#request;
    await makeFolder(dirname(target));
    await rename(join(folder, path), target);
    await makeFolder(join(folder, path));
    if (gitDir !== null) {
      await removeTree(join(target, gitName));
      await removeTree(this.#hidden(path));
      await moveGitDir(gitDir, join(target, gitName));
    }
    await this.restore(path);
  }

  /** Forgets what was seen of files: after a kill nobody vouches for it. */
  async forgetIndexes(): Promise<void> {
    await removeTree(join(this.#request.store, 'submodules'));
  }

  /** Git dirs among the admin files that no submodule of the folder uses and that hold what is nowhere else. */
  async orphans(held: readonly Held[]): Promise<readonly string[]> {
    const { git, adminDir } = this.#request;
    const used = new Set(held.map(({ gitDir }) => gitDir));
    const found: string[] = [];
    for (const gitDir of await gitDirsBelow(modulesOf(adminDir), 0)) {
      if (used.has(gitDir)) continue;
      if ((await ask(git, gitDir, git.emptyTree)).hasOwn) found.push(gitDir);
    }
    return found;
  }

  /** Whether there is any git dir of a submodule among the admin files. */
  async hasGitDirs(): Promise<boolean> {
    return (await kindOf(modulesOf(this.#request.adminDir))) !== null;
  }

  #hidden(path: string): string {
    return join(this.#request.store, 'links', createHash('sha256').update(path).digest('hex').slice(0, 16));
  }

  /** The git dir that the link in a submodule names, when it lies among the folder's admin files. */
  gitDirOf(path: string): Promise<string | null> {
    return this.#named(join(this.#request.folder, path, gitName), path);
  }

  #hiddenGitDirOf(path: string): Promise<string | null> {
    return this.#named(this.#hidden(path), path);
  }

  async #named(file: string, path: string): Promise<string | null> {
    const { folder, adminDir } = this.#request;
    if ((await kindOf(file)) !== 'file') return null;
    const text = (await readIfExists(file))?.toString() ?? '';
    const named = /^gitdir: (.+?)\r?\n?$/.exec(text)?.[1];
    const top = await realPath(folder);
    if (named === undefined || top === null) return null;
    const gitDir = await realPath(resolve(join(top, path), named));
    const modules = await realPath(modulesOf(adminDir));
    if (gitDir === null || modules === null || gitDir === modules || !contains(modules, gitDir)) return null;
    return gitDir;
  }
}

/** Those of what set-up made that nobody looks into: submodules that it filled are looked at. */
export function beside(made: readonly string[], submodules: readonly Submodule[]): ReadonlySet<string> {
  const paths = new Set(submodules.map(({ path }) => path));
  return new Set(made.filter((path) => !paths.has(path)));
}

/** A tree with the pointers of the submodules that are there: to git without an index they are folders like any other. */
export async function withPointers(
  git: Pick<Git, 'readPath' | 'editTree'>,
  tree: Oid,
  from: { readonly folder: string; readonly submodules: readonly Submodule[] },
): Promise<Oid> {
  const edits = new Map<string, TreeTarget>();
  for (const { path, commit } of from.submodules) {
    if ((await kindOf(join(from.folder, path))) !== 'folder') continue;
    if ((await git.readPath(tree, path))?.mode !== submoduleMode) edits.set(path, { mode: submoduleMode, oid: commit });
  }
  return edits.size === 0 ? tree : git.editTree(tree, edits);
}

/** A tree with files in place of the pointer of a submodule. */
export function withContent(
  git: Pick<Git, 'editTree'>,
  tree: Oid,
  { path, files }: { readonly path: string; readonly files: Oid },
): Promise<Oid> {
  return git.editTree(tree, new Map([[path, { mode: treeMode, oid: files }]]));
}

/** Removes the repositories that a set-up left in submodules: their git dirs went with its own, and what stays are files. */
export async function dropSetupRepositories(folder: string, submodules: readonly Submodule[]): Promise<void> {
  for (const { path } of submodules) {
    const holder = join(folder, path);
    if ((await kindOf(holder)) !== 'folder') continue;
    const { repositories } = await surveyFolder(holder, new Set());
    for (const one of [gitName, ...repositories]) await removeTree(join(holder, one));
  }
}

/** Says what an agent must take out of submodules again. */
export function submoduleFindings(held: readonly Held[]): readonly Finding[] {
  return held
    .filter(({ repository, changed, content }) => repository === 'own' || changed.length > 0 || content === null)
    .map(({ path, repository, changed }) => {
      const name = printable(path);
      const files = changed.slice(0, 5).map((file) => printable(`${path}/${file}`));
      const what =
        repository === 'own'
          ? `commits or changes in the submodule ${name}`
          : `changes in the submodule ${name} (${files.join(', ')})`;
      return {
        rule: 'submodule',
        file: path,
        message: `guard submodule: ${what}, which is another repository: change it there, and put back here what was there (nobody can allow it)`,
      };
    });
}

/** Whether nothing in a submodule is nowhere else. */
export function isSafe({ repository, changed, content }: Held): boolean {
  return repository !== 'own' && changed.length === 0 && content !== null;
}

/** Moves a git dir of a submodule, which says where its files are, to where it says nothing and means the folder around it. */
export async function moveGitDir(from: string, to: string): Promise<void> {
  await makeFolder(dirname(to));
  await rename(from, to);
  const config = join(to, 'config');
  const text = (await kindOf(config)) === 'file' ? (await readIfExists(config))?.toString() : undefined;
  if (text === undefined) return;
  await writeAtomic(config, text.replace(/^[ \t]*worktree[ \t]*=.*\r?\n?/gim, ''), { sync: false });
}

function modulesOf(adminDir: string): string {
  return join(adminDir, 'modules');
}

function notesIn(store: string): string {
  return join(store, 'submodules.json');
}

async function readNotes(store: string): Promise<ReadonlyMap<string, Oid>> {
  const text = (await readIfExists(notesIn(store)))?.toString() ?? '{}';
  try {
    return parseNotes(JSON.parse(text));
  } catch {
    return new Map(); // Without them everything counts as somebody's, and is saved.
  }
}

function parseNotes(value: unknown): ReadonlyMap<string, Oid> {
  const notes = new Map<string, Oid>();
  for (const [path, oid] of Object.entries(value ?? {})) if (typeof oid === 'string') notes.set(path, parseOid(oid));
  return notes;
}

const deepest = 6;

/** Names of submodules may have folders, and submodules have submodules. */
async function gitDirsBelow(folder: string, depth: number): Promise<readonly string[]> {
  if (depth > deepest || (await kindOf(folder)) !== 'folder') return [];
  const found: string[] = [];
  for (const { name, kind } of await listFolder(folder)) {
    const path = join(folder, name);
    if (kind !== 'folder') continue;
    if ((await kindOf(join(path, 'HEAD'))) !== 'file' || (await kindOf(join(path, 'objects'))) !== 'folder')
      found.push(...(await gitDirsBelow(path, depth + 1)));
    else found.push(path, ...(await gitDirsBelow(modulesOf(path), depth + 1)));
  }
  return found;
}

async function ask(git: Git, gitDir: string, commit: Oid): ReturnType<Git['askForeign']> {
  try {
    const { tips, known } = await endsOf(gitDir);
    return await git.askForeign({ gitDir, commit, tips, known });
  } catch {
    return { tree: null, hasOwn: true }; // A git dir that cannot be read may hold anything.
  }
}

/** What was made in a repository, as its refs and reflogs tell, and what came from elsewhere. */
async function endsOf(gitDir: string): Promise<{ readonly tips: readonly Oid[]; readonly known: readonly Oid[] }> {
  const refs = await new FileRefs({ commonDir: gitDir, stamp: () => Promise.resolve('') }).list('refs/');
  const isRemote = (name: string): boolean => name.startsWith('refs/remotes/');
  const known = [...refs].flatMap(([name, oid]) => (isRemote(name) ? [oid] : []));
  // Tags come along with what they stand on, or are on a commit that a reflog has.
  const local = [...refs].flatMap(([name, oid]) => (isRemote(name) || name.startsWith('refs/tags/') ? [] : [oid]));
  const head = parseRefFile((await readIfExists(join(gitDir, 'HEAD')))?.toString('latin1') ?? '');
  const logs = await Promise.all(['HEAD', 'refs/stash'].map((name) => readReflog(join(gitDir, 'logs', name))));
  const logged = logs.flat().map(({ oid }) => parseOid(oid));
  return { tips: [...new Set([...local, ...(head !== null && 'oid' in head ? [head.oid] : []), ...logged])], known };
}

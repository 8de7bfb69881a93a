/** What is in a worktree that nobody works in any more, so that a person can decide about it. Moves no ref, changes no file. */
import { join } from 'node:path';
import type { Oid } from '../issue.js';
import { makeFolder, removeTree } from '../platform/folders.js';
import { hasOwnLink } from './admin.js';
import { notesOn, readFacts, storeOf, type Facts } from './facts.js';
import { GitError, type Git, type LinkedWorktree } from './git-types.js';
import { surveyFolder } from './guard.js';
import { ignoredIn, type IgnoredPath } from './ignored.js';
import { holdsOnly, isKnownTree, presentTrees } from './known.js';
import { ignorePattern, madeBySetup } from './setup.js';
import { isSafe, Submodules, submodulesOf, withPointers, type Submodule } from './submodules.js';
import { readTraces, stashEntries } from './traces.js';

/** What is in the folder of a worktree. */
export type Inventory =
  /** Something is there that giro does not look into. */
  | { readonly kind: 'unclear'; readonly why: string }
  | {
      readonly kind: 'read';
      /** Everything that is not ignored. */
      readonly tree: Oid;
      /** Files that are in no commit; empty: all of it is safe without the folder. */
      readonly unsaved: readonly string[];
      /** Subjects of commits that were made there, that hold what the files do not, and that no ref keeps. */
      readonly strays: readonly string[];
      readonly ignored: readonly IgnoredPath[];
    };

/** What taking the inventory needs. */
export interface InventoryRequest {
  readonly git: Git;
  readonly linked: LinkedWorktree;
  /** Trees whose content is safe without the folder, beside those that giro noted. */
  readonly safe: readonly Oid[];
  /** A folder for an index. */
  readonly scratch: string;
}

/** Looks into a worktree whose folder is there. */
export async function takeInventory(request: InventoryRequest): Promise<Inventory> {
  const { git, linked, scratch } = request;
  const { folder, adminDir } = linked;
  const notes = notesOn(folder);
  const made = await madeBySetup(notes.stamp);
  if (!(await hasOwnLink(folder, adminDir))) return unclear('its .git was changed or removed');
  // git is to look at nothing that could run something, or that it would wait for.
  const facts = await readFacts(notes.facts);
  const submodules = await submodulesOf(git, facts?.shown ?? linked.head);
  const paths = submodules.map(({ path }) => path);
  const survey = await surveyFolder(folder, new Set(made.filter((path) => !paths.includes(path))));
  const { unreadable, traps } = survey;
  const repositories = survey.repositories.filter((path) => !paths.some((one) => path.startsWith(`${one}/`)));
  if (repositories[0] !== undefined) return unclear(`a repository of its own is in it: ${repositories[0]}`);
  if (unreadable[0] !== undefined) return unclear(`a folder in it cannot be read: ${unreadable[0]}`);
  if (traps[0] !== undefined) return unclear(`what git would wait for is in it: ${traps[0]}`);
  const index = join(scratch, 'index');
  await makeFolder(scratch);
  await removeTree(index);
  try {
    const unsafe = await unsafeSubmodule(request, submodules, survey.repositories);
    if (unsafe !== null) return unclear(unsafe);
    // What is in submodules was looked at; git is not to see their repositories.
    const files = await git.snapshotFolder(folder, index, [...made, ...paths].map(ignorePattern));
    const tree = await withPointers(git, files, { folder, submodules });
    const unsaved = await unsavedIn(request, tree, facts);
    const strays = await straysIn(request, tree, facts);
    const ignored = await ignoredIn(folder, new Set((await git.listTree(tree)).map(({ path }) => path)), new Set(made));
    return { kind: 'read', tree, unsaved, strays, ignored };
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    return unclear(`git cannot read it: ${error.stderr.trim()}`);
  }
}

async function unsafeSubmodule(
  { git, linked: { folder, adminDir } }: InventoryRequest,
  submodules: readonly Submodule[],
  repositories: readonly string[],
): Promise<string | null> {
  const room = new Submodules({ git, folder, adminDir, store: storeOf(folder) });
  const held = await room.look(submodules, repositories);
  const unsafe = held.find((one) => !isSafe(one));
  if (unsafe !== undefined) return `commits or changes that are nowhere else are in its submodule ${unsafe.path}`;
  const [orphan] = await room.orphans(held);
  return orphan === undefined ? null : `commits of a submodule that are nowhere else are in ${orphan}`;
}

function unclear(why: string): Inventory {
  return { kind: 'unclear', why };
}

async function unsavedIn({ git, safe }: InventoryRequest, tree: Oid, facts: Facts | null): Promise<string[]> {
  const noted = facts === null ? [] : [...facts.known, facts.shown];
  const known = [...(await presentTrees(git, noted)), ...safe];
  if (await isKnownTree(git, tree, known)) return [];
  if (facts?.filled === false && (await holdsOnly(git, tree, known))) return [];
  const differing = await Promise.all(
    (known.length > 0 ? known : [git.emptyTree]).map((one) => pathsOf(git, one, tree)),
  );
  const [first = [], ...others] = differing.sort((left, right) => left.length - right.length);
  const nowhere = first.filter((path) => others.every((paths) => paths.includes(path)));
  // Every file is somewhere, but no commit has them together.
  return nowhere.length > 0 ? nowhere : first;
}

async function pathsOf(git: Git, from: Oid, to: Oid): Promise<string[]> {
  return (await git.diffTrees(from, to)).map(({ path }) => path);
}

async function straysIn({ git, linked }: InventoryRequest, tree: Oid, facts: Facts | null): Promise<readonly string[]> {
  const base = facts?.commit ?? linked.head;
  if (base === null) return [];
  const stashes = new Set(facts?.stashes ?? (await stashEntries(git.commonDir)));
  const traces = await readTraces({ git, adminDir: linked.adminDir, base, taken: tree, stashes });
  const saved = new Set((await git.listRefs('refs/giro/salvage/')).values());
  const undone = traces.undone === null ? [] : [{ oid: traces.undone, subject: await subjectOf(git, traces.undone) }];
  const open: string[] = [];
  for (const { oid, subject } of [...traces.elsewhere, ...undone])
    if (!saved.has(oid) && (await git.refsWith(oid)).length === 0) open.push(subject);
  return open;
}

async function subjectOf(git: Pick<Git, 'readCommit'>, oid: Oid): Promise<string> {
  return (await git.readCommit(oid)).message.split('\n', 1)[0] ?? '';
}

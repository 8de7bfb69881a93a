/** Removes what was shown and can still go: looked at again while the lock of its Spec is held, saved before it goes. */
import { dirname, join } from 'node:path';
import { failed, ok, type Failure, type Result } from '../failure.js';
import type { IssueId, SpecSlug } from '../issue.js';
import { systemClock } from '../platform/clock.js';
import { kindOf } from '../platform/files.js';
import { listFolder, removeTree } from '../platform/folders.js';
import { lookForMarked } from '../platform/marked.js';
import { takeLock } from '../store/lock.js';
import type { OpenedGit } from '../worktree/git-types.js';
import { saveCommit } from '../worktree/salvage.js';
import { createSlots } from '../worktree/slots.js';
import { createWorktrees } from '../worktree/worktrees.js';
import { findOfSpec, type FindPorts } from './clean-find.js';
import { openLeftovers, type Leftovers } from './leftovers.js';
import { keyOf, type CleanItem, type Found, type Removal } from './clean-items.js';

/** What became of the items. */
export interface Removed {
  readonly gone: readonly CleanItem[];
  /** What was saved, or is to be known, one line each. */
  readonly notices: readonly string[];
  readonly failures: readonly Failure[];
}

/** What removing needs. */
export interface RemovePorts extends FindPorts {
  readonly run: string;
  /** A folder of this command alone. */
  readonly runFolder: string;
}

/** Removes of one Spec what a person has seen. */
export async function removeOfSpec(ports: RemovePorts, spec: SpecSlug, shown: readonly CleanItem[]): Promise<Removed> {
  const { git, run } = ports;
  const lock = await takeLock({ commonDir: git.commonDir, spec, run, at: systemClock.iso() });
  if (!lock.ok) return { gone: [], notices: [], failures: [lock.failure] };
  try {
    const notices: string[] = [];
    const leftovers = leftoversOf(ports, spec, notices);
    const withstood = await leftovers.endEarlier();
    if (withstood !== null) return { gone: [], notices, failures: [withstood] };
    const wanted = new Set(shown.map(keyOf));
    const found = (await findOfSpec(ports, spec)).filter(({ item }) => wanted.has(keyOf(item)));
    return await removeFound({ ...ports, notices, vacate: leftovers.vacate }, spec, found);
  } finally {
    await lock.value.release();
  }
}

/** What a giro that was killed left running would go on writing into what is removed. */
function leftoversOf({ git, room, run, graceMs }: RemovePorts, spec: SpecSlug, notices: string[]): Leftovers {
  return openLeftovers({
    ...{
      commonDir: git.commonDir,
      spec,
      run,
      graceMs,
      limits: null,
      root: join(room, spec),
      clock: systemClock,
      look: lookForMarked,
    },
    emit: (event) => {
      if (event.type === 'run.notice') notices.push(event.message);
    },
  });
}

/** A Spec whose lock is held. */
interface Locked extends RemovePorts {
  readonly notices: string[];
  readonly vacate: Leftovers['vacate'];
}

/** Removes folders that belong to no Spec. */
export async function removeFolders(found: readonly Found[]): Promise<Removed> {
  const gone: CleanItem[] = [];
  const failures: Failure[] = [];
  for (const { item, removal } of found) {
    if (removal?.kind !== 'folder') continue;
    const done = await removeFolder(removal.path);
    if (done.ok) gone.push(item);
    else failures.push(done.failure);
  }
  return { gone, notices: [], failures };
}

async function removeFound(ports: Locked, spec: SpecSlug, found: readonly Found[]): Promise<Removed> {
  const { git, room, notices } = ports;
  const gone: CleanItem[] = [];
  const failures: Failure[] = [];
  const trees = found.flatMap(({ item, removal }) => (removal?.kind === 'worktree' ? [{ item, removal }] : []));
  await removeWorktrees(
    ports,
    spec,
    trees.map(({ removal }) => removal),
  );
  for (const { item } of trees) {
    if (await isGone(git, item.name)) gone.push(item);
    else failures.push({ kind: 'environment', message: `${item.name} could not be removed`, hint: 'look at it' });
  }
  for (const { item, removal } of found) {
    if (removal === null || removal.kind === 'worktree') continue;
    const done = await removeOne({ git, spec, notices }, removal);
    if (done.ok) gone.push(item);
    else failures.push(done.failure);
  }
  for (const folder of [join(room, spec, 'store'), join(room, spec)]) await removeEmpty(folder);
  return { gone, notices, failures };
}

type OfWorktree = Extract<Removal, { kind: 'worktree' }>;

/** As a run removes those of integrated Issues: what is nowhere else is saved before. */
async function removeWorktrees(ports: Locked, spec: SpecSlug, removals: readonly OfWorktree[]): Promise<void> {
  if (removals.length === 0) return;
  const { git, room, runFolder, notices, vacate } = ports;
  const worktrees = createWorktrees({
    git,
    spec,
    root: join(room, spec),
    slots: createSlots({ temporary: join(runFolder, 'slots'), offset: 0 }),
    setup: () => Promise.reject(new Error('nothing is set up here')),
    policy: { keep: [] },
    vacate,
    makers: 1,
    clock: systemClock,
    notice: (message) => notices.push(message),
  });
  await worktrees.reclaim(new Map(removals.map(({ issue, safe }) => [issue, safe])));
  await worktrees.close();
}

async function isGone(git: OpenedGit, folder: string): Promise<boolean> {
  if ((await kindOf(folder)) !== null) return false;
  return !(await git.listWorktrees()).some((linked) => linked.folder === folder);
}

async function removeOne(
  parts: { readonly git: OpenedGit; readonly spec: SpecSlug; readonly notices: string[] },
  removal: Exclude<Removal, OfWorktree>,
): Promise<Result<void, Failure>> {
  const { git, notices } = parts;
  if (removal.kind === 'folder') {
    if (dirname(removal.path) !== join(git.commonDir, 'worktrees')) return removeFolder(removal.path);
    const done = await git.whileAlone(() => removeFolder(removal.path));
    return done.ok ? done.value : done;
  }
  const { ref, oid } = removal;
  if (removal.kind === 'branch' && removal.save !== null)
    notices.push(await saveBranch(parts, { ...removal, issue: removal.save }));
  const moved = await git.moveRef(ref, null, oid);
  if (moved.ok) return ok(undefined);
  const why = moved.failure.kind === 'ref-moved' ? 'it was moved meanwhile' : moved.failure.message;
  return failed({ kind: 'environment', message: `${ref} is left: ${why}`, hint: 'run the same command again' });
}

async function removeFolder(path: string): Promise<Result<void, Failure>> {
  try {
    await removeTree(path);
    return ok(undefined);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    return failed({ kind: 'environment', message: `${path} is left: ${error.message}`, hint: 'remove it by hand' });
  }
}

async function saveBranch(
  { git, spec }: { readonly git: OpenedGit; readonly spec: SpecSlug },
  { oid, issue }: { readonly oid: Extract<Removal, { kind: 'branch' }>['oid']; readonly issue: IssueId },
): Promise<string> {
  return `${issue}: the commits of its branch are kept as ${await saveCommit(git, { spec, issue }, oid)}`;
}

async function removeEmpty(folder: string): Promise<void> {
  if ((await kindOf(folder)) === 'folder' && (await listFolder(folder)).length === 0) await removeTree(folder);
}

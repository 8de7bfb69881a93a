/**
 * The folders agents work in: linked worktrees, one for each Issue in progress, used again once their Issue is integrated.
 *
 * 1. An agent gets its folder from `prepare` and gives it back through `takeBack`; nothing else touches its content.
 * 2. Nothing in a folder is overwritten before its content is known: shown by giro, taken back, or saved under salvage.
 * 3. A folder that was released is cleaned for the next Issue; a folder of an unfinished Issue is never removed.
 * 4. What is found at a name and is not giro's is neither entered nor removed.
 * 5. After `prepare` the folder is on a detached HEAD at the given commit, and no branch was made for it.
 *
 * | standing | means                                            | next                                |
 * |----------|--------------------------------------------------|-------------------------------------|
 * | held     | prepared for its Issue; an agent may be in it     | left, released                      |
 * | left     | stays as it is, also after the run                | held (its own Issue only), released |
 * | released | its Issue is integrated                           | held (any Issue), removed by `close` |
 */
import { randomBytes } from 'node:crypto';
import { basename, dirname, join } from 'node:path';
import { failed, ok, type Failure, type Result } from '../failure.js';
import type { Finding, IssueId, Oid, SpecSlug } from '../issue.js';
import { parseIssueId } from '../issue.js';
import type { Clock } from '../platform/clock.js';
import { kindOf, makeFolder, removeTree, rename } from '../platform/files.js';
import { realPath } from '../platform/links.js';
import type { WorktreePolicy } from '../policy.js';
import { giveIndex, hasOwnLink, headOf, resetAdmin, writeLink } from './admin.js';
import { readFacts, writeFacts } from './facts.js';
import { GitError, type Git, type LinkedWorktree } from './git.js';
import { inspectTree, refusedRepositories, surveyFindings, surveyFolder } from './guard.js';
import { holdsOnly, isKnownTree } from './known.js';
import { saveCommit } from './salvage.js';
import { ignorePattern, madeBySetup, type Setup, type SetupFailure } from './setup.js';
import type { Slot, Slots } from './slots.js';
import { writeThrowawayRepository } from './throwaway.js';
import { readTraces, stashEntries, type Stray } from './traces.js';

/** A folder that belongs to one Issue. */
export interface Worktree {
  readonly issue: IssueId;
  readonly slot: Slot;
  readonly folder: string;
  /** The commit it is on. */
  readonly commit: Oid;
}

/** Content that the files do not have, saved. */
export interface SavedStray extends Stray {
  /** Where it is kept. */
  readonly ref: string;
}

/** What an agent left. */
export interface TakenBack {
  /** Everything that is not ignored; `null` when something in it cannot or must not be added. */
  readonly tree: Oid | null;
  /** What is wrong with the folder itself; never empty when there is no tree. */
  readonly refused: readonly Finding[];
  /** Subjects of commits it made that its HEAD contains, oldest first. */
  readonly subjects: readonly string[];
  readonly elsewhere: readonly SavedStray[];
}

/** The worktrees of a run. */
export interface Worktrees {
  /** A folder with the files of a tree, on a commit: the Issue's own, a used one, or a new one. */
  prepare(issue: IssueId, commit: Oid, files: Oid): Promise<Result<Worktree>>;
  /** Takes the files; call it once nothing runs in the folder any more. */
  takeBack(worktree: Worktree): Promise<TakenBack>;
  /** Its Issue is integrated: the folder may be used for another. */
  release(worktree: Worktree): void;
  /** Its Issue rests unfinished: the folder stays as it is. */
  leave(worktree: Worktree): void;
  /** The folder an Issue has, also from an earlier run; `null` when there is none. */
  find(issue: IssueId): Promise<Worktree | null>;
  /** Removes released folders. */
  close(): Promise<void>;
}

/** What worktrees need. */
export interface WorktreesPorts {
  readonly git: Git;
  readonly spec: SpecSlug;
  /** Folder for the worktrees of this Spec. */
  readonly root: string;
  readonly policy: Pick<WorktreePolicy, 'keep'>;
  readonly slots: Slots;
  readonly setup: Setup;
  readonly clock: Pick<Clock, 'now'>;
  readonly notice: (message: string, issue?: IssueId) => void;
}

/** Makes the worktrees of a run. */
export function createWorktrees(ports: WorktreesPorts): Worktrees {
  return new WorktreeRoom(ports);
}

interface Place {
  readonly folder: string;
  readonly adminDir: string;
  readonly slot: Slot;
  /** Engine storage of this folder: index, set-up stamp, facts. */
  readonly store: string;
  issue: IssueId;
  standing: 'held' | 'left' | 'released';
  commit: Oid | null;
  /** The tree an agent was shown; what is new is new against it. */
  shown: Oid | null;
  /** Trees whose content is safe without this folder. */
  known: readonly Oid[];
  /** False: giro was interrupted while it filled the folder. */
  filled: boolean;
  /** True: what an agent did with git here was read and saved. */
  traced: boolean;
  stashes: readonly string[];
  made: readonly string[];
}

interface Order {
  readonly issue: IssueId;
  readonly commit: Oid;
  readonly files: Oid;
}

const reasonPattern = /^giro (\S+) (\S+)$/;

class WorktreeRoom implements Worktrees {
  readonly #ports: WorktreesPorts;
  readonly #places = new Map<IssueId, Place>();
  readonly #released: Place[] = [];
  /** Numbers whose name under the root is not to be had. */
  readonly #taken = new Set<number>();
  #root: Promise<string> | null = null;
  #earlier: Promise<Map<IssueId, LinkedWorktree>> | null = null;

  constructor(ports: WorktreesPorts) {
    this.#ports = ports;
  }

  async prepare(issue: IssueId, commit: Oid, files: Oid): Promise<Result<Worktree>> {
    try {
      return await this.#prepare({ issue, commit, files });
    } catch (error) {
      // Git could not (a full disk, a file that withstands): the Issue waits or asks, the run goes on.
      if (!(error instanceof GitError)) throw error;
      const message = `no worktree for ${issue}: git ${error.command[0] ?? ''}: ${error.stderr.trim()}`;
      return failed({ kind: 'environment', message, cause: error });
    }
  }

  async #prepare(order: Order): Promise<Result<Worktree>> {
    const own = await this.#own(order.issue);
    if (own !== null) {
      own.standing = 'held';
      await this.#rescue(own, order);
      return this.#fill(own, order, false);
    }
    const used = await this.#reuse(order);
    if (used !== null) return this.#fill(used, order, true);
    const made = await this.#make(order);
    return made.ok ? this.#fill(made.value, order, true) : made;
  }

  async takeBack(worktree: Worktree): Promise<TakenBack> {
    const place = this.#placeOf(worktree);
    const { git } = this.#ports;
    if ((await kindOf(place.folder)) !== 'folder') {
      return { tree: null, refused: [{ message: 'the folder of the work is gone' }], subjects: [], elsewhere: [] };
    }
    const survey = await surveyFolder(place.folder, new Set(place.made));
    const repositories = await this.#refused(place, survey.repositories);
    const wrong = surveyFindings(repositories, survey.unreadable);
    const snapshot = wrong.length > 0 ? failed(wrong) : await this.#snapshot(place);
    const tree = snapshot.ok ? snapshot.value : null;
    const refused = [...(await linkFindings(place)), ...(snapshot.ok ? [] : snapshot.failure)];
    if (tree !== null) place.known = [...place.known, tree];
    const traces = await this.#traces(place, tree);
    return { tree, refused, ...traces };
  }

  release(worktree: Worktree): void {
    const place = this.#placeOf(worktree);
    if (place.standing === 'released') return;
    place.standing = 'released';
    this.#released.push(place);
  }

  leave(worktree: Worktree): void {
    const place = this.#placeOf(worktree);
    if (place.standing === 'held') place.standing = 'left';
  }

  async find(issue: IssueId): Promise<Worktree | null> {
    const place = await this.#own(issue);
    if (place === null || (await kindOf(place.folder)) !== 'folder') return null;
    return place.commit === null ? null : worktreeOf(place, place.commit);
  }

  async close(): Promise<void> {
    for (const place of this.#released.splice(0)) await this.#remove(place);
  }

  #placeOf({ issue, folder }: Worktree): Place {
    const place = this.#places.get(issue);
    if (place?.folder !== folder) throw new Error(`not a worktree of ${issue}: ${folder}`);
    return place;
  }

  /** The place an Issue has, from this run or an earlier one. */
  async #own(issue: IssueId): Promise<Place | null> {
    const place = this.#places.get(issue);
    if (place !== undefined) {
      const at = this.#released.indexOf(place);
      if (at >= 0) this.#released.splice(at, 1);
      return place;
    }
    const linked = (await this.#scan()).get(issue);
    return linked === undefined ? null : this.#adopt(issue, linked);
  }

  /** Which Issue has which folder, as the reasons of the locks say. */
  #scan(): Promise<Map<IssueId, LinkedWorktree>> {
    return (this.#earlier ??= this.#readRegistrations());
  }

  async #readRegistrations(): Promise<Map<IssueId, LinkedWorktree>> {
    const { git, spec } = this.#ports;
    const root = await this.#rootFolder();
    const found = new Map<IssueId, LinkedWorktree>();
    for (const linked of await git.listWorktrees()) {
      // Admin files can be made to name any folder; those elsewhere are not giro's to look into.
      if (dirname(linked.folder) !== root) continue;
      this.#taken.add(numberOf(linked.folder));
      const [, ofSpec, name = ''] = reasonPattern.exec(linked.locked ?? '') ?? [];
      const issue = parseIssueId(name);
      if (ofSpec === spec && issue !== undefined && !found.has(issue)) found.set(issue, linked);
    }
    return found;
  }

  #rootFolder(): Promise<string> {
    return (this.#root ??= makeFolder(this.#ports.root).then(
      async () => (await realPath(this.#ports.root)) ?? this.#ports.root,
    ));
  }

  async #adopt(issue: IssueId, { folder, adminDir, head }: LinkedWorktree): Promise<Place> {
    const { git, slots } = this.#ports;
    const store = await this.#storeOf(folder);
    const facts = await readFacts(factsOf(store));
    // An index survives a kill, but nobody vouches for it: every file is read again.
    await removeTree(indexOf(store));
    const place: Place = {
      folder,
      adminDir,
      slot: await slots.take({ prefer: numberOf(folder), except: this.#taken }),
      store,
      issue,
      standing: 'left',
      commit: facts?.commit ?? head,
      shown: facts?.shown ?? null,
      known: facts?.known ?? [],
      filled: facts?.filled ?? true,
      traced: false,
      stashes: facts?.stashes ?? (await stashEntries(git.commonDir)),
      made: await madeBySetup(stampOf(store)),
    };
    this.#places.set(issue, place);
    return place;
  }

  /** A released folder, emptied of everything but its files and what is kept. */
  async #reuse(order: Order): Promise<Place | null> {
    const { git, policy } = this.#ports;
    for (let place = this.#released.pop(); place !== undefined; place = this.#released.pop()) {
      try {
        await this.#rescue(place, order);
        await git.cleanFolder(place.folder, indexOf(place.store), policy.keep);
      } catch (error) {
        if (!(error instanceof GitError)) throw error;
        place.standing = 'left';
        this.#notice(
          place,
          `its worktree ${place.folder} cannot be cleaned and is left as it is: ${error.stderr.trim()}`,
        );
        continue;
      }
      this.#places.delete(place.issue);
      place.issue = order.issue;
      place.standing = 'held';
      this.#places.set(order.issue, place);
      return place;
    }
    return null;
  }

  async #make({ issue, commit }: Order): Promise<Result<Place>> {
    const { git, slots } = this.#ports;
    await this.#scan();
    const { folder, slot } = await this.#freeName();
    const added = await git.addWorktree(folder, commit, this.#reason(issue));
    if (!added.ok) {
      slots.free(slot);
      return added;
    }
    const store = await this.#storeOf(folder);
    await removeTree(store);
    await makeFolder(store);
    const place: Place = {
      folder,
      adminDir: added.value.adminDir,
      slot,
      store,
      issue,
      standing: 'held',
      commit,
      shown: null,
      known: [],
      filled: false,
      traced: true,
      stashes: [],
      made: [],
    };
    this.#places.set(issue, place);
    return ok(place);
  }

  async #freeName(): Promise<{ readonly folder: string; readonly slot: Slot }> {
    const { slots, notice } = this.#ports;
    const root = await this.#rootFolder();
    for (;;) {
      const slot = await slots.take({ except: this.#taken });
      const folder = join(root, `w${String(slot.number)}`);
      if ((await kindOf(folder)) === null) return { folder, slot };
      this.#taken.add(slot.number);
      slots.free(slot);
      notice(`${folder} is in the way and not a worktree of giro: it is left alone, another name is used`);
    }
  }

  /** Makes a folder show the files, on the commit, with nothing else in it that giro did not bring. */
  async #fill(place: Place, order: Order, pristine: boolean): Promise<Result<Worktree>> {
    const { git } = this.#ports;
    const { folder, adminDir } = place;
    const index = indexOf(place.store);
    const own = (await git.readCommit(order.commit)).tree;
    place.commit = order.commit;
    place.shown = order.files;
    place.known = [...place.known, order.files, own];
    await this.#note(place, false);
    await resetAdmin({ folder, adminDir, reason: this.#reason(order.issue) }, order.commit);
    if (own !== order.files) {
      // Shown is a merge in progress: to git in the folder it is a change on top of the commit.
      await git.checkOut(folder, index, own);
      await giveIndex(index, adminDir);
    }
    await git.checkOut(folder, index, order.files);
    const ready = await this.#setUp(place, order, pristine);
    if (!ready.ok) return failed(setupFailure(ready.failure));
    if (own === order.files) await giveIndex(index, adminDir);
    if (!(await hasOwnLink(folder, adminDir))) await writeLink(folder, adminDir);
    const head = await headOf(adminDir, git);
    if (head !== order.commit) throw new Error(`the worktree ${folder} is on ${String(head)}, not on ${order.commit}`);
    place.stashes = await stashEntries(git.commonDir);
    place.known = [order.files, own];
    place.traced = false;
    await this.#note(place, true);
    return ok(worktreeOf(place, order.commit));
  }

  async #setUp(place: Place, { files }: Order, pristine: boolean): Promise<Result<void, SetupFailure>> {
    const { git, setup, slots } = this.#ports;
    const { folder, slot, store } = place;
    const index = indexOf(store);
    await slots.renew(slot);
    const isolate = (): Promise<void> => writeThrowawayRepository(git, { folder, tree: files, index, exclude: [] });
    const done = await setup({
      folder,
      tree: files,
      slot,
      stamp: stampOf(store),
      name: basename(folder),
      pristine,
      isolate,
    });
    place.made = await madeBySetup(stampOf(store));
    if (!done.ok) return done;
    if (!done.value.ran) return ok(undefined);
    await removeTree(join(folder, '.git'));
    const changed = await git.changedFiles(folder, index);
    if (changed.length > 0) {
      this.#notice(
        place,
        `[worktree] setup rewrites tracked files, which were put back: ${changed.slice(0, 5).join(', ')}`,
      );
      await git.checkOut(folder, index, files);
    }
    return ok(undefined);
  }

  /** Saves everything in a folder that is not known to be safe, so that it may be overwritten. */
  async #rescue(place: Place, order: Order | null): Promise<void> {
    const { git, clock } = this.#ports;
    const { folder, store, commit } = place;
    if ((await kindOf(folder)) !== 'folder') {
      await this.#replaceFolder(place);
      await this.#saveTraces(place, null);
      return;
    }
    await this.#clearGit(place);
    const tree = await git.snapshotFolder(folder, indexOf(store), place.made.map(ignorePattern));
    const ordered = order === null ? [] : [order.files, (await git.readCommit(order.commit)).tree];
    const known = [...place.known, ...ordered];
    const safe = (await isKnownTree(git, tree, known)) || (!place.filled && (await holdsOnly(git, tree, known)));
    if (!safe) {
      const message = `giro: files found in the worktree of ${place.issue}`;
      const saved = await git.writeCommit({ tree, parents: commit === null ? [] : [commit], message, at: clock.now() });
      this.#notice(place, `files in its worktree that no commit has are kept as ${await this.#save(place, saved)}`);
    }
    place.known = [...place.known, tree];
    await this.#saveTraces(place, tree);
  }

  /** Moves repositories that an agent made out of the folder: cleaning would remove them, and git must not look at them. */
  async #clearGit(place: Place): Promise<void> {
    const { folder, adminDir, filled } = place;
    if ((await kindOf(join(folder, '.git'))) !== null && !(await hasOwnLink(folder, adminDir))) {
      // While the folder was being filled it was the throw-away one of the set-up.
      if (filled) await this.#setAside(place, '.git');
      else await removeTree(join(folder, '.git'));
    }
    const { repositories } = await surveyFolder(folder, new Set(place.made));
    for (const path of await this.#refused(place, repositories)) await this.#setAside(place, path);
  }

  async #setAside(place: Place, path: string): Promise<void> {
    const target = join(await this.#rootFolder(), 'aside', `${place.issue}-${randomBytes(4).toString('hex')}`, path);
    await makeFolder(dirname(target));
    await rename(join(place.folder, path), target);
    this.#notice(place, `${path} in its worktree is a repository of its own; it was moved to ${target}`);
  }

  /** The folder was removed, or something else is there now: an empty one takes its place. */
  async #replaceFolder(place: Place): Promise<void> {
    if ((await kindOf(place.folder)) !== null) {
      const aside = `${place.folder}-${randomBytes(4).toString('hex')}`;
      await rename(place.folder, aside);
      this.#notice(place, `its worktree was replaced by something else, which is now ${aside}`);
    }
    await removeTree(place.store);
    await makeFolder(place.store);
    await makeFolder(place.folder);
    place.made = [];
  }

  #refused(place: Place, repositories: readonly string[]): Promise<readonly string[]> {
    const { git } = this.#ports;
    const scratch = join(place.store, 'stand-in');
    return refusedRepositories(repositories, {
      git,
      folder: place.folder,
      shown: place.shown ?? git.emptyTree,
      scratch,
    });
  }

  async #snapshot(place: Place): Promise<Result<Oid, readonly Finding[]>> {
    const { git } = this.#ports;
    const index = indexOf(place.store);
    try {
      const tree = await git.snapshotFolder(place.folder, index, place.made.map(ignorePattern));
      const findings = await inspectTree(git, place.shown ?? git.emptyTree, tree);
      if (findings.length === 0) return ok(tree);
      // Nothing that was refused may be in the index when git looks at the folder the next time.
      await removeTree(index);
      return failed(findings);
    } catch (error) {
      if (!(error instanceof GitError)) throw error;
      return failed([{ message: 'git cannot add its files', detail: error.stderr.trim() }]);
    }
  }

  async #traces(place: Place, tree: Oid | null): Promise<Pick<TakenBack, 'subjects' | 'elsewhere'>> {
    const { git } = this.#ports;
    if (place.commit === null || place.traced) return { subjects: [], elsewhere: [] };
    const traces = await readTraces({
      git,
      adminDir: place.adminDir,
      base: place.commit,
      taken: tree,
      stashes: new Set(place.stashes),
    });
    const elsewhere: SavedStray[] = [];
    for (const stray of traces.elsewhere) elsewhere.push({ ...stray, ref: await this.#save(place, stray.oid) });
    if (traces.undone !== null) {
      this.#notice(
        place,
        `its last commit holds what its files do not; it is kept as ${await this.#save(place, traces.undone)}`,
      );
    }
    place.traced = true;
    return { subjects: traces.subjects, elsewhere };
  }

  async #saveTraces(place: Place, tree: Oid | null): Promise<void> {
    for (const { subject, ref } of (await this.#traces(place, tree)).elsewhere) {
      this.#notice(place, `work in its worktree that no file has (${subject}) is kept as ${ref}`);
    }
  }

  async #remove(place: Place): Promise<void> {
    const { git, slots } = this.#ports;
    try {
      await this.#rescue(place, null);
    } catch (error) {
      if (!(error instanceof GitError)) throw error;
      this.#notice(place, `its worktree ${place.folder} is left: git cannot read it: ${error.stderr.trim()}`);
      return;
    }
    const removed = await git.removeWorktree(place.folder, place.adminDir);
    if (!removed.ok && removed.failure.kind === 'environment') this.#notice(place, removed.failure.message);
    await removeTree(place.store);
    this.#places.delete(place.issue);
    slots.free(place.slot);
  }

  #save(place: Place, oid: Oid): Promise<string> {
    return saveCommit(this.#ports.git, { spec: this.#ports.spec, issue: place.issue }, oid);
  }

  async #note(place: Place, filled: boolean): Promise<void> {
    place.filled = filled;
    const { commit, shown, known, stashes } = place;
    if (commit !== null && shown !== null)
      await writeFacts(factsOf(place.store), { commit, shown, known, filled, stashes });
  }

  #notice(place: Place, message: string): void {
    this.#ports.notice(`${place.issue}: ${message}`, place.issue);
  }

  #reason(issue: IssueId): string {
    return `giro ${this.#ports.spec} ${issue}`;
  }

  async #storeOf(folder: string): Promise<string> {
    return join(await this.#rootFolder(), 'store', basename(folder));
  }
}

async function linkFindings({ folder, adminDir }: Place): Promise<readonly Finding[]> {
  if (await hasOwnLink(folder, adminDir)) return [];
  return [
    { file: '.git', message: 'the .git of the folder was changed or removed; only the files beside it were taken' },
  ];
}

function worktreeOf({ issue, slot, folder }: Place, commit: Oid): Worktree {
  return { issue, slot, folder, commit };
}

function setupFailure({ message, tail, log }: SetupFailure): Failure {
  return { kind: 'environment', message, hint: `${tail === '' ? '' : `${tail}\n`}The whole output: ${log}` };
}

/** The number in the name of a folder; 0 when it has none. */
function numberOf(folder: string): number {
  return Number(/^w([1-9][0-9]{0,8})$/.exec(basename(folder))?.[1] ?? 0);
}

function indexOf(store: string): string {
  return join(store, 'index');
}

function stampOf(store: string): string {
  return join(store, 'setup.json');
}

function factsOf(store: string): string {
  return join(store, 'facts.json');
}

/**
 * One folder for agents: filled for an Issue, taken back, and saved before anything in it is overwritten. Who gets which
 * folder is decided in `worktrees.ts`.
 */
import { randomBytes } from 'node:crypto';
import { basename, join } from 'node:path';
import { failed, ok, type Result } from '../failure.js';
import type { Finding, IssueId, Oid } from '../issue.js';
import { kindOf, rename } from '../platform/files.js';
import { makeFolder, removeTree } from '../platform/folders.js';
import { keepGitDirs, moveSubmodule, setAside, type AsideOwner } from './aside.js';
import {
  giveIndex,
  hasOwnLink,
  headOf,
  lockReason,
  readStandsOn,
  resetAdmin,
  writeLink,
  type StandsOn,
} from './admin.js';
import { notesOn, readFacts, storeOf, writeFacts } from './facts.js';
import { GitError, type LinkedWorktree } from './git-types.js';
import { inspectTree, refusedRepositories, removeFound, surveyFindings, surveyFolder } from './guard.js';
import { ignoredToSave, withFiles } from './ignored.js';
import { holdsOnly, isKnownTree, presentTrees } from './known.js';
import type { Order, PlaceOrigin, PlacePorts, SavedStray, TakenBack } from './place-ports.js';
import { saveCommit } from './salvage.js';
import { ignorePattern, madeBySetup, type SetupFailure } from './setup.js';
import type { Slot } from './slots.js';
import {
  beside,
  dropSetupRepositories,
  isSafe,
  submoduleFindings,
  Submodules,
  submodulesOf,
  withContent,
  withPointers,
  type Held,
  type Submodule,
} from './submodules.js';
import { writeThrowawayRepository } from './throwaway.js';
import { readTraces, stashEntries } from './traces.js';

/** How a folder is filled. */
interface Filling {
  readonly pristine: boolean;
  readonly shown: () => void;
}

/** One folder for agents. */
export class Place {
  readonly folder: string;
  readonly slot: Slot;
  issue: IssueId;
  standing: 'held' | 'left' | 'released' = 'held';
  /** True: it lay there for a while, and a person may have worked in it. */
  hasRested = false;
  readonly #ports: PlacePorts;
  readonly #adminDir: string;
  readonly #store: string;
  readonly #index: string;
  readonly #stamp: string;
  readonly #facts: string;
  #commit: Oid | null = null;
  /** The tree an agent was shown; what is new is new against it. */
  #shown: Oid | null = null;
  /** Trees whose content is safe without this folder. */
  #known: readonly Oid[] = [];
  /** False: the folder is being filled, or was when giro was interrupted. */
  #filled = false;
  /** True: what an agent did with git here was read and saved. */
  #traced = true;
  /** True: no repository was in the folder after the agent was gone. */
  #surveyed = false;
  /** True: all that an agent left is in a tree that is known, and the index says the same. */
  #takenBack = false;
  /** True: it was just looked, and the folder is still like that. */
  #untouched = false;
  /** Pipes, sockets and devices that an agent left. */
  #special: readonly string[] = [];
  #stashes: readonly string[] = [];
  #made: readonly string[] = [];
  readonly #submodules: Submodules;
  /** What was in the submodules of the folder when it was rescued. */
  #held: readonly Held[] = [];

  private constructor(ports: PlacePorts, origin: PlaceOrigin) {
    this.#ports = ports;
    this.folder = origin.folder;
    this.slot = origin.slot;
    this.issue = origin.issue;
    this.#adminDir = origin.adminDir;
    this.#store = storeOf(origin.folder);
    this.#index = join(this.#store, 'index');
    const notes = notesOn(origin.folder);
    this.#stamp = notes.stamp;
    this.#facts = notes.facts;
    const { git } = ports;
    this.#submodules = new Submodules({ git, folder: this.folder, adminDir: this.#adminDir, store: this.#store });
  }

  /** Of a folder that was just registered and is empty. */
  static async create(ports: PlacePorts, origin: PlaceOrigin): Promise<Place> {
    const place = new Place(ports, origin);
    await removeTree(place.#store);
    await makeFolder(place.#store);
    return place;
  }

  /** Of a folder that an earlier run left. */
  static async adopt(ports: PlacePorts, origin: PlaceOrigin, { head }: LinkedWorktree): Promise<Place> {
    const place = new Place(ports, origin);
    const facts = await readFacts(place.#facts);
    // An index survives a kill, but nobody vouches for it: every file is read again. And a kill may have come before the
    // place for the next one was made.
    await removeTree(place.#index);
    await place.#submodules.forgetIndexes();
    await makeFolder(place.#store);
    place.standing = 'left';
    place.hasRested = true;
    place.#commit = facts?.commit ?? head;
    place.#known = await presentTrees(ports.git, facts?.known ?? []);
    place.#shown = (await presentTrees(ports.git, facts === null ? [] : [facts.shown]))[0] ?? null;
    place.#filled = facts?.filled ?? true;
    place.#traced = false;
    place.#stashes = facts?.stashes ?? (await stashEntries(ports.git.commonDir));
    place.#made = await madeBySetup(place.#stamp);
    return place;
  }

  get commit(): Oid | null {
    return this.#commit;
  }

  /** Notes further trees whose content is safe without this folder. */
  know(trees: readonly Oid[]): void {
    this.#known = [...this.#known, ...trees];
  }

  /** Makes a folder whose Issue is over ready for another: safe, and without what is not tracked, but for what is kept; false: it is left. */
  async empty(order: Order, keep: readonly string[]): Promise<boolean> {
    // Git passes over pipes and the like, and so sees nothing of them.
    await removeFound(this.folder, this.#special);
    this.#special = [];
    const rescued = await this.rescue(order);
    if (rescued !== 'saved') return rescued === 'untouched';
    await this.#ports.git.cleanFolder(this.folder, this.#index, keep);
    await this.#submodules.drop(this.#held);
    return true;
  }

  /** Whether nothing is in the folder but what the last taking back has put into a tree. */
  async #isAsTaken(): Promise<boolean> {
    if (!this.#takenBack || (await kindOf(this.folder)) !== 'folder') return false;
    // What is in submodules no index tells.
    if ((await this.#submodulesShown()).length > 0 || (await this.#submodules.hasGitDirs())) return false;
    if (!(await hasOwnLink(this.folder, this.#adminDir))) return false;
    return this.#ports.git.isUntouched(this.folder, this.#index);
  }

  /**
   * Makes the folder show the files, on the commit, with nothing else in it that giro did not bring. Whatever is in it must
   * have been rescued. `pristine`: nothing in it is an agent's. `shown`: called when the files are there, before the set-up.
   */
  async fill(order: Order, { pristine, shown }: Filling): Promise<Result<void, SetupFailure>> {
    const { git, spec, slots } = this.#ports;
    const { folder } = this;
    const adminDir = this.#adminDir;
    const own = (await git.readCommit(order.commit)).tree;
    this.#commit = order.commit;
    this.#shown = order.files;
    this.#known = [...this.#known, order.files, own];
    const show = this.#untouched ? git.advanceFolder.bind(git) : git.checkOut.bind(git);
    this.#takenBack = this.#untouched = false;
    await this.#note(false);
    const admin = resetAdmin({ folder, adminDir, reason: lockReason(spec, order.issue) }, order.commit);
    await Promise.all([admin, slots.renew(this.slot), show(folder, this.#index, own)]);
    if (own !== order.files) {
      // Shown is a merge in progress: to git in the folder it is a change on top of the commit.
      await giveIndex(this.#index, adminDir);
      await git.checkOut(folder, this.#index, order.files);
    }
    shown();
    const submodules = await submodulesOf(git, order.files);
    const ready = await this.#setUp(order.files, { pristine, submodules });
    if (!ready.ok) return ready;
    await this.#submodules.note(submodules);
    await this.#submodules.show(submodules);
    if (own === order.files) await giveIndex(this.#index, adminDir);
    if (!(await hasOwnLink(folder, adminDir))) await writeLink(folder, adminDir);
    const head = await headOf(adminDir, git);
    if (head !== order.commit) throw new Error(`the worktree ${folder} is on ${String(head)}, not on ${order.commit}`);
    this.#stashes = await stashEntries(git.commonDir);
    this.#known = [order.files, own];
    this.#traced = false;
    this.#surveyed = false;
    await this.#note(true);
    return ok(undefined);
  }

  async #setUp(
    tree: Oid,
    { pristine, submodules }: { readonly pristine: boolean; readonly submodules: readonly Submodule[] },
  ): Promise<Result<void, SetupFailure>> {
    const { git, setup, vacate } = this.#ports;
    const { folder, slot } = this;
    const index = this.#index;
    const isolate = async (): Promise<void> => {
      await vacate(folder, 'goes');
      await writeThrowawayRepository(git, { folder, tree, index, exclude: [] });
    };
    const done = await setup({ folder, tree, slot, stamp: this.#stamp, name: basename(folder), pristine, isolate });
    this.#made = done.ok ? done.value.made : await madeBySetup(this.#stamp);
    if (!done.ok) return done;
    if (!done.value.ran) return ok(undefined);
    await removeTree(join(folder, '.git'));
    await dropSetupRepositories(folder, submodules);
    const changed = await git.changedFiles(folder, index);
    if (changed.length > 0) {
      this.say(`[worktree] setup rewrites tracked files, which were put back: ${changed.slice(0, 5).join(', ')}`);
      await git.checkOut(folder, index, tree);
    }
    return ok(undefined);
  }

  /** Takes what an agent left, and saves what it left elsewhere. */
  async takeBack(): Promise<TakenBack> {
    if ((await kindOf(this.folder)) !== 'folder') {
      const traces = await this.#traces(null);
      return { tree: null, refused: [{ message: 'the folder of the work is gone' }], shown: this.#shown, ...traces };
    }
    const submodules = await this.#submodulesShown();
    const survey = await surveyFolder(this.folder, beside(this.#made, submodules));
    const { held, others } = await this.#submodules.lookInto(submodules, survey);
    const repositories = await this.#refused(others);
    const wrong = [...surveyFindings({ ...survey, repositories }), ...submoduleFindings(held)];
    if (wrong.length === 0) await this.#submodules.hide(held);
    const snapshot = wrong.length > 0 ? failed(wrong) : await this.#snapshot();
    await this.#submodules.show(submodules);
    const tree = snapshot.ok ? snapshot.value : null;
    if (tree !== null) this.#known = [...this.#known, tree];
    this.#surveyed = wrong.length === 0;
    this.#special = survey.special;
    const refused = [...(await this.#linkFindings()), ...(snapshot.ok ? [] : snapshot.failure)];
    const traces = await this.#traces(tree);
    this.#takenBack = tree !== null;
    return { tree, refused, shown: this.#shown, ...traces };
  }

  standsOn(): Promise<StandsOn> {
    return readStandsOn(this.#adminDir, this.#ports.git);
  }

  async #linkFindings(): Promise<readonly Finding[]> {
    if (await hasOwnLink(this.folder, this.#adminDir)) return [];
    const message = 'the .git of the folder was changed or removed; only the files beside it were taken';
    return [{ file: '.git', message }];
  }

  async #snapshot(): Promise<Result<Oid, readonly Finding[]>> {
    const { git } = this.#ports;
    try {
      const tree = await this.#files();
      const findings = await inspectTree(git, this.#shown ?? git.emptyTree, tree);
      if (findings.length === 0) return ok(tree);
      // Nothing that was refused may be in the index when git looks at the folder the next time.
      await removeTree(this.#index);
      return failed(findings);
    } catch (error) {
      if (!(error instanceof GitError)) throw error;
      return failed([{ message: 'git cannot add its files', detail: error.stderr.trim() }]);
    }
  }

  /**
   * Saves everything in the folder that is not known to be safe, so that it may be overwritten. Untouched since it was taken
   * back: usually that is so, and one look tells. Then nothing is in it that is not tracked.
   */
  async rescue(order: Order | null): Promise<'untouched' | 'saved' | 'left'> {
    this.#untouched = await this.#isAsTaken();
    if (this.#untouched) return 'untouched';
    if ((await kindOf(this.folder)) !== 'folder') {
      await this.#replaceFolder();
      await this.#keepGitDirs();
      await this.#saveTraces(null);
      return 'saved';
    }
    await this.#clearGit();
    const tree = await this.#files();
    if (!(await this.#isSafe(tree, order)))
      this.say(`files in its worktree that no commit has are kept as ${await this.#save(await this.#commitOf(tree))}`);
    this.#known = [...this.#known, tree];
    await this.#saveTraces(tree);
    // For its own Issue they stay where they are.
    return order?.issue === this.issue || (await this.#saveIgnored(tree)) ? 'saved' : 'left';
  }

  /** Saves ignored files that a person may have made; false, and said, when they are too many. */
  async #saveIgnored(tree: Oid): Promise<boolean> {
    if (!this.hasRested) return true;
    const { folder } = this;
    const { paths, files } = await ignoredToSave(this.#ports.git, folder, { tree, made: this.#made });
    if (files === null) {
      this.say(
        `its worktree ${folder} is left, with ignored files that are too much to save: ${paths.slice(0, 3).join(', ')}`,
      );
      return false;
    }
    if (files.length === 0) return true;
    const commit = await this.#commitOf(await withFiles(this.#ports.git, tree, { folder, files }));
    this.say(`ignored files of its worktree are kept as ${await this.#save(commit)}`);
    return true;
  }

  async #isSafe(tree: Oid, order: Order | null): Promise<boolean> {
    const { git } = this.#ports;
    const ordered = order === null ? [] : [order.files, (await git.readCommit(order.commit)).tree];
    const known = [...this.#known, ...ordered];
    return (await isKnownTree(git, tree, known)) || (!this.#filled && (await holdsOnly(git, tree, known)));
  }

  async #commitOf(tree: Oid, { parents }: { readonly parents?: readonly Oid[] } = {}): Promise<Oid> {
    const { git, clock } = this.#ports;
    const message = `giro: files found in the worktree of ${this.issue}`;
    const own = this.#commit === null ? [] : [this.#commit];
    return git.writeCommit({ tree, parents: parents ?? own, message, at: clock.now() });
  }

  /** Moves repositories that an agent made out of the folder: cleaning would remove them, and git must not look at them. */
  async #clearGit(): Promise<void> {
    const top = join(this.folder, '.git');
    if ((await kindOf(top)) !== null && !(await hasOwnLink(this.folder, this.#adminDir))) {
      // While the folder was being filled it was the throw-away one of the set-up.
      if (this.#filled) this.say(await setAside(this.#owner(), '.git'));
      else await removeTree(top);
    }
    const submodules = await this.#submodulesShown();
    if (!this.#surveyed || submodules.length > 0 || (await this.#submodules.hasGitDirs())) {
      const survey = await surveyFolder(this.folder, beside(this.#made, submodules));
      // A pipe or a device holds nothing that could be saved.
      await removeFound(this.folder, survey.traps);
      const { held, others } = await this.#submodules.lookInto(submodules, { ...survey, traps: [] });
      for (const one of held) if (!isSafe(one)) await this.#saveSubmodule(one);
      this.#held = held.filter(isSafe);
      await this.#submodules.hide(this.#held);
      for (const path of await this.#refused(others)) this.say(await setAside(this.#owner(), path));
      await this.#keepGitDirs();
    }
  }

  async #saveSubmodule(held: Held): Promise<void> {
    const { path, repository, content } = held;
    if ((await kindOf(join(this.folder, path))) !== 'folder') return;
    if (repository !== 'none' || content === null) {
      this.say(await moveSubmodule(this.#owner(), held));
      return;
    }
    const { git } = this.#ports;
    const shown = this.#shown ?? git.emptyTree;
    const [before] = await presentTrees(git, [held.before]);
    // On top of what was there, so that it shows as what was changed.
    const first =
      before === undefined ? null : await this.#commitOf(await withContent(git, shown, { path, files: before }));
    const parents = first === null ? {} : { parents: [first] };
    const commit = await this.#commitOf(await withContent(git, shown, { path, files: content }), parents);
    const ref = await this.#save(commit);
    this.say(`changes in the submodule ${path} of its worktree are kept as ${ref}`);
    await this.#submodules.restore(path);
  }

  /** Moves repositories of submodules that are not in the folder any more out of the admin files, when they hold work. */
  async #keepGitDirs(): Promise<void> {
    for (const message of await keepGitDirs(this.#owner(), this.#held)) this.say(message);
  }

  #owner(): AsideOwner {
    const { folder, issue } = this;
    return { folder, issue, submodules: this.#submodules };
  }

  /** The folder was removed, or something else is there now: an empty one takes its place. */
  async #replaceFolder(): Promise<void> {
    if ((await kindOf(this.folder)) !== null) {
      const aside = `${this.folder}-${randomBytes(4).toString('hex')}`;
      await rename(this.folder, aside);
      this.say(`its worktree was replaced by something else, which is now ${aside}`);
    }
    await removeTree(this.#index);
    await removeTree(this.#stamp);
    await makeFolder(this.folder);
    this.#made = [];
  }

  #submodulesShown(): Promise<readonly Submodule[]> {
    return submodulesOf(this.#ports.git, this.#shown ?? this.#commit);
  }

  /** Everything in the folder that is not ignored, nor made by set-up. */
  async #files(): Promise<Oid> {
    const { git } = this.#ports;
    const tree = await git.snapshotFolder(this.folder, this.#index, this.#made.map(ignorePattern));
    return withPointers(git, tree, { folder: this.folder, submodules: await this.#submodulesShown() });
  }

  #refused(repositories: readonly string[]): Promise<readonly string[]> {
    const { git } = this.#ports;
    const scratch = join(this.#store, 'stand-in');
    const shown = this.#shown ?? git.emptyTree;
    return refusedRepositories(repositories, { git, folder: this.folder, shown, scratch });
  }

  async #traces(tree: Oid | null): Promise<Pick<TakenBack, 'subjects' | 'elsewhere'>> {
    if (this.#commit === null || this.#traced) return { subjects: [], elsewhere: [] };
    const traces = await readTraces({
      git: this.#ports.git,
      adminDir: this.#adminDir,
      base: this.#commit,
      taken: tree,
      stashes: new Set(this.#stashes),
    });
    const elsewhere: SavedStray[] = [];
    for (const stray of traces.elsewhere) elsewhere.push({ ...stray, ref: await this.#save(stray.oid) });
    if (traces.undone !== null) {
      this.say(`its last commit holds what its files do not; it is kept as ${await this.#save(traces.undone)}`);
    }
    this.#traced = true;
    return { subjects: traces.subjects, elsewhere };
  }

  async #saveTraces(tree: Oid | null): Promise<void> {
    for (const { subject, ref } of (await this.#traces(tree)).elsewhere) {
      this.say(`work in its worktree that its files do not have (${subject}) is kept as ${ref}`);
    }
  }

  /** Removes folder, registration and notes; everything in it must have been rescued. */
  async remove(): Promise<void> {
    const { git, slots } = this.#ports;
    const removed = await git.removeWorktree(this.folder, this.#adminDir);
    if (!removed.ok && removed.failure.kind === 'environment') this.say(removed.failure.message);
    await removeTree(this.#store);
    slots.free(this.slot);
  }

  /** Tells the person something about the Issue's folder. */
  say(message: string): void {
    this.#ports.notice(`${this.issue}: ${message}`, this.issue);
  }

  #save(oid: Oid): Promise<string> {
    return saveCommit(this.#ports.git, { spec: this.#ports.spec, issue: this.issue }, oid);
  }

  async #note(filled: boolean): Promise<void> {
    this.#filled = filled;
    if (this.#commit === null || this.#shown === null) return;
    const facts = { commit: this.#commit, shown: this.#shown, known: this.#known, filled, stashes: this.#stashes };
    await writeFacts(this.#facts, facts);
  }
}

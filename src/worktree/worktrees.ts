/**
 * The folders agents work in: linked worktrees, one for each Issue in progress, used again once their Issue is integrated.
 *
 * 1. An agent gets its folder from `prepare` and gives it back through `takeBack`; nothing else touches its content.
 * 2. Nothing in a folder is overwritten before its content is known: shown by giro, taken back, or saved under salvage.
 * 3. A folder that was released is cleaned for the next Issue; a folder of an unfinished Issue is never removed.
 * 4. What is found at a name and is not giro's is neither entered nor removed.
 * 5. After `prepare` the folder is on a detached HEAD at the given commit, and no branch was made for it.
 *
 * | standing | means                                           | next                                 |
 * |----------|-------------------------------------------------|--------------------------------------|
 * | held     | prepared for its Issue; an agent may be in it   | left, released                       |
 * | left     | stays as it is, also after the run              | held (its own Issue only), released  |
 * | released | its Issue is integrated                         | held (any Issue), removed by `close` |
 */
import { basename, dirname, join } from 'node:path';
import { failed, ok, type Failure, type Result } from '../failure.js';
import { parseIssueId, type IssueId, type Oid } from '../issue.js';
import type { Clock } from '../platform/clock.js';
import { kindOf } from '../platform/files.js';
import { makeFolder } from '../platform/folders.js';
import { realPath } from '../platform/links.js';
import type { WorktreePolicy } from '../policy.js';
import { lockReason, type StandsOn } from './admin.js';
import { GitError, type LinkedWorktree } from './git-types.js';
import { Place } from './place.js';
import type { Order, PlacePorts, TakenBack } from './place-ports.js';
import { Returns } from './returns.js';
import type { SetupFailure } from './setup.js';
import type { Slot } from './slots.js';
import { Trash } from './trash.js';

/** A folder that belongs to one Issue. */
export interface Worktree {
  readonly issue: IssueId;
  readonly slot: Slot;
  readonly folder: string;
  /** The commit it is on. */
  readonly commit: Oid;
}

/** The worktrees of a run. */
export interface Worktrees {
  /** A folder with the files of a tree, on a commit: the Issue's own, a used one, or a new one. */
  prepare(issue: IssueId, commit: Oid, files: Oid): Promise<Result<Worktree>>;
  /** Takes the files; call it once nothing runs in the folder any more. */
  takeBack(worktree: Worktree): Promise<TakenBack>;
  /** What its files stand on, as git says there. */
  standsOn(worktree: Worktree): Promise<StandsOn>;
  /** Its Issue is integrated: the folder may be used for another. */
  release(worktree: Worktree): void;
  /** Its Issue rests unfinished: the folder stays as it is. */
  leave(worktree: Worktree): void;
  /** The folder an Issue has, also from an earlier run; `null` when there is none. */
  find(issue: IssueId): Promise<Worktree | null>;
  /** Releases what an earlier run left to Issues that are integrated by now; the content of their trees is safe. */
  reclaim(integrated: ReadonlyMap<IssueId, readonly Oid[]>): Promise<void>;
  /** Removes released folders. */
  close(): Promise<void>;
}

/** What worktrees need. */
export interface WorktreesPorts extends PlacePorts {
  /** Folder for the worktrees of this Spec. */
  readonly root: string;
  readonly policy: Pick<WorktreePolicy, 'keep'>;
  /** How many new folders are filled at once. */
  readonly makers: number;
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'sleep'>;
}

/** Makes the worktrees of a run. */
export function createWorktrees(ports: WorktreesPorts): Worktrees {
  return new WorktreeRoom(ports);
}

class WorktreeRoom implements Worktrees {
  readonly #ports: WorktreesPorts;
  readonly #places = new Map<IssueId, Place>();
  readonly #released: Place[] = [];
  /** Numbers whose name under the root is not to be had. */
  readonly #taken = new Set<number>();
  readonly #returns: Returns;
  readonly #trash = new Trash();
  #root: Promise<string> | null = null;
  #earlier: Promise<ReadonlyMap<IssueId, LinkedWorktree>> | null = null;

  constructor(ports: WorktreesPorts) {
    this.#ports = ports;
    this.#returns = new Returns(ports.clock, ports.makers);
  }

  async prepare(issue: IssueId, commit: Oid, files: Oid): Promise<Result<Worktree>> {
    const order = { issue, commit, files };
    try {
      const used = (await this.#rescued(order)) ?? (await this.#reuse(order)) ?? (await this.#awaited(order));
      if (used !== null) return await this.#fill(used, order);
      return await this.#inTurn(order);
    } catch (error) {
      // Git could not (a full disk, a file that withstands): the Issue waits or asks, the run goes on.
      if (!(error instanceof GitError)) throw error;
      return failed({ kind: 'environment', message: `no worktree for ${issue}: ${error.message}`, cause: error });
    }
  }

  /** In a new folder, unless one comes back before it is made. */
  async #inTurn(order: Order): Promise<Result<Worktree>> {
    const turn = await this.#returns.turn();
    try {
      // Much may have changed while others were at it.
      const used = (await this.#reuse(order)) ?? (turn === null ? null : await this.#awaited(order));
      if (used !== null) {
        turn?.over();
        return await this.#fill(used, order);
      }
      if (turn === null) return await this.#inTurn(order);
      return await this.#returns.making(async () => {
        const made = await this.#make(order);
        return made.ok ? this.#fill(made.value, order, turn.over) : made;
      });
    } finally {
      turn?.over();
    }
  }

  async #fill({ place, pristine }: Found, order: Order, shown = (): void => undefined): Promise<Result<Worktree>> {
    const filled = await place.fill(order, { pristine, shown });
    return filled.ok ? ok(worktreeOf(place, order.commit)) : failed(setupFailure(filled.failure));
  }

  async takeBack(worktree: Worktree): Promise<TakenBack> {
    const place = this.#placeOf(worktree);
    this.#returns.expect(worktree.issue);
    const taken = await place.takeBack();
    if (taken.tree === null) this.#returns.forget(worktree.issue);
    return taken;
  }

  standsOn(worktree: Worktree): Promise<StandsOn> {
    return this.#placeOf(worktree).standsOn();
  }

  release(worktree: Worktree): void {
    const place = this.#placeOf(worktree);
    if (place.standing === 'released') return;
    place.standing = 'released';
    this.#released.push(place);
    this.#returns.cameBack(worktree.issue);
  }

  leave(worktree: Worktree): void {
    const place = this.#placeOf(worktree);
    this.#returns.forget(worktree.issue);
    if (place.standing === 'held') place.standing = 'left';
    place.hasRested = true;
  }

  async find(issue: IssueId): Promise<Worktree | null> {
    const place = await this.#own(issue);
    const commit = place?.commit ?? null;
    if (place === null || commit === null || (await kindOf(place.folder)) !== 'folder') return null;
    return worktreeOf(place, commit);
  }

  async reclaim(integrated: ReadonlyMap<IssueId, readonly Oid[]>): Promise<void> {
    if (integrated.size === 0) return;
    for (const [issue, linked] of await this.#scan()) {
      const trees = integrated.get(issue);
      if (trees === undefined || this.#places.has(issue)) continue;
      const place = await this.#adopt(issue, linked);
      place.know(trees);
      place.standing = 'released';
      this.#released.push(place);
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#released.splice(0).map((place) => this.#remove(place)));
    await this.#trash.emptied();
  }

  #placeOf({ issue, folder }: Worktree): Place {
    const place = this.#places.get(issue);
    if (place?.folder !== folder) throw new Error(`not a worktree of ${issue}: ${folder}`);
    return place;
  }

  /** The Issue's own folder, with what it holds in safety. */
  async #rescued(order: Order): Promise<Found | null> {
    const place = await this.#own(order.issue);
    if (place === null) return null;
    const at = this.#released.indexOf(place);
    if (at >= 0) this.#released.splice(at, 1);
    place.standing = 'held';
    this.#returns.forget(order.issue);
    // Who else is there was said: it is the Issue's own folder, and is used all the same.
    await this.#ports.vacate(place.folder, 'stays');
    await place.rescue(order);
    return { place, pristine: false };
  }

  async #own(issue: IssueId): Promise<Place | null> {
    const place = this.#places.get(issue);
    if (place !== undefined) return place;
    const linked = (await this.#scan()).get(issue);
    return linked === undefined ? null : this.#adopt(issue, linked);
  }

  async #adopt(issue: IssueId, linked: LinkedWorktree): Promise<Place> {
    const { folder, adminDir } = linked;
    const slot = await this.#ports.slots.take({ prefer: numberOf(folder), except: this.#taken });
    const place = await Place.adopt(this.#ports, { folder, adminDir, slot, issue }, linked);
    this.#places.set(issue, place);
    return place;
  }

  /** Which Issue has which folder from an earlier run, as the reasons of the locks say. */
  #scan(): Promise<ReadonlyMap<IssueId, LinkedWorktree>> {
    return (this.#earlier ??= this.#readRegistrations());
  }

  async #readRegistrations(): Promise<ReadonlyMap<IssueId, LinkedWorktree>> {
    const { git, spec } = this.#ports;
    const root = await this.#rootFolder();
    await this.#trash.sweep(root);
    const found = new Map<IssueId, LinkedWorktree>();
    for (const linked of await git.listWorktrees()) {
      // Admin files can be made to name any folder; those elsewhere are not giro's to look into.
      if (dirname(linked.folder) !== root) continue;
      this.#taken.add(numberOf(linked.folder));
      const issue = parseIssueId((linked.locked ?? '').split(' ').at(-1) ?? '');
      if (issue !== undefined && linked.locked === lockReason(spec, issue) && !found.has(issue))
        found.set(issue, linked);
    }
    return found;
  }

  #rootFolder(): Promise<string> {
    return (this.#root ??= madeFolder(this.#ports.root));
  }

  /** A released folder, with nothing of its last Issue in it but what is kept. */
  async #reuse(order: Order): Promise<Found | null> {
    for (let place = this.#released.pop(); place !== undefined; place = this.#released.pop()) {
      if (!(await this.#emptied(place, order))) continue;
      this.#places.delete(place.issue);
      place.issue = order.issue;
      place.standing = 'held';
      this.#places.set(order.issue, place);
      return { place, pristine: true };
    }
    return null;
  }

  /** A folder that comes back in the time a new one would take. */
  async #awaited(order: Order): Promise<Found | null> {
    await this.#returns.wait([...this.#places.values()].filter(({ standing }) => standing === 'held').length);
    return this.#reuse(order);
  }

  /** A folder in which somebody works whom giro did not start stays as it is. */
  async #isVacated(place: Place, setup: 'stays' | 'goes'): Promise<boolean> {
    if ((await this.#ports.vacate(place.folder, setup)).length === 0) return true;
    place.standing = 'left';
    place.say(`its worktree ${place.folder} is left, since somebody works in it`);
    return false;
  }

  async #emptied(place: Place, order: Order): Promise<boolean> {
    if (!(await this.#isVacated(place, 'stays'))) return false;
    try {
      if (await place.empty(order, this.#ports.policy.keep)) return true;
      place.standing = 'left';
      return false;
    } catch (error) {
      if (!(error instanceof GitError)) throw error;
      place.standing = 'left';
      place.say(`its worktree ${place.folder} cannot be cleaned and is left as it is: ${error.stderr.trim()}`);
      return false;
    }
  }

  async #make({ issue, commit }: Order): Promise<Result<Found>> {
    const { git, slots, spec } = this.#ports;
    await this.#scan();
    const { folder, slot } = await this.#freeName();
    const added = await git.addWorktree(folder, commit, lockReason(spec, issue));
    if (!added.ok) {
      slots.free(slot);
      return added;
    }
    const place = await Place.create(this.#ports, { folder, adminDir: added.value.adminDir, slot, issue });
    this.#places.set(issue, place);
    return ok({ place, pristine: true });
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

  async #remove(place: Place): Promise<void> {
    if (!(await this.#isVacated(place, 'goes'))) return;
    try {
      if ((await place.rescue(null)) === 'left') return;
    } catch (error) {
      if (!(error instanceof GitError)) throw error;
      place.say(`its worktree ${place.folder} is left: ${error.stderr.trim()}`);
      return;
    }
    await place.remove();
    this.#places.delete(place.issue);
  }
}

/** A folder to fill. */
interface Found {
  readonly place: Place;
  /** True: nothing in it is an agent's. */
  readonly pristine: boolean;
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

/** Makes a folder and gives its path without links: git names worktrees by that, whichever way one came. */
async function madeFolder(path: string): Promise<string> {
  await makeFolder(path);
  return (await realPath(path)) ?? path;
}

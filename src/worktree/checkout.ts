/**
 * Gate checkouts: clean folders that hold one code tree, for as long as somebody looks at it (DESIGN 8).
 *
 * 1. A folder has one user at a time, and at most `limit` folders are in use.
 * 2. What a user sees is the tree, what set-up makes, a throw-away `.git`, and of earlier users only what `keep` names.
 * 3. A folder that cannot be made clean is never used again.
 * 4. Only folders that giro made, and noted as its own before it made them, are ever emptied or removed.
 */
import { basename, dirname, join } from 'node:path';
import PQueue from 'p-queue';
import { failed, ok, type Result } from '../failure.js';
import type { Oid } from '../issue.js';
import { kindOf, writeAtomic } from '../platform/files.js';
import { listFolder, makeFolder, removeTree } from '../platform/folders.js';
import { realPath } from '../platform/links.js';
import type { WorktreePolicy } from '../policy.js';
import { specsFolder } from '../spec.js';
import { GitError, type Git } from './git-types.js';
import { removeFound, removeTraps, surveyFolder } from './guard.js';
import { treeMode } from './objects.js';
import { ignorePattern, madeBySetup, type Setup, type SetupFailure, type Vacate } from './setup.js';
import type { Slot, Slots } from './slots.js';
import { dropSetupRepositories, submodulesOf } from './submodules.js';
import { writeThrowawayRepository } from './throwaway.js';
import { Trash } from './trash.js';

/** A clean folder that holds one code tree. */
export interface Checkout {
  readonly folder: string;
  readonly slot: Slot;
  /** Something runs in it from now on: what was seen before does not count any more. */
  enter(): void;
  /** Tracked files that are no longer as the tree has them. */
  changedFiles(): Promise<readonly string[]>;
  /** Brings the tracked files back. */
  restore(): Promise<void>;
}

/** Hands out a checkout of a code tree for as long as `use` runs. */
export type WithCheckout = <T>(
  codeTree: Oid,
  use: (checkout: Checkout) => Promise<T>,
) => Promise<Result<T, SetupFailure>>;

/** What gate checkouts need. */
export interface CheckoutPorts {
  readonly git: Pick<
    Git,
    | 'commonDir'
    | 'hash'
    | 'editTree'
    | 'readTree'
    | 'readPath'
    | 'listTree'
    | 'checkOut'
    | 'advanceFolder'
    | 'cleanFolder'
    | 'changedFiles'
  >;
  readonly policy: Pick<WorktreePolicy, 'keep'>;
  /** Folder for the checkouts of this Spec. */
  readonly root: string;
  readonly slots: Slots;
  readonly setup: Setup;
  readonly vacate: Vacate;
  /** `docs/specs/` as the Spec's base has it: giro's own History must not make a formatter red. */
  readonly baseSpecs: Oid | null;
  /** How many may be in use at once. */
  readonly limit: number;
  readonly notice: (message: string) => void;
}

/** The gate checkouts of a run. */
export interface Checkouts {
  readonly withCheckout: WithCheckout;
  /** Removes the folders. */
  close(): Promise<void>;
}

interface Place {
  readonly folder: string;
  readonly slot: Slot;
  /** Engine storage: the note that the folder is giro's, and the two files below. */
  readonly store: string;
  readonly index: string;
  readonly stamp: string;
  /** What it was filled with; `null` while that is uncertain. */
  tree: Oid | null;
  /** True: its last user was seen to have left the tracked files alone. */
  isUnchanged: boolean;
}

const storeFolder = 'store';
const noteName = 'giro';

/** Makes the gate checkouts of a run. */
export function createCheckouts(ports: CheckoutPorts): Checkouts {
  const pool = new CheckoutPool(ports);
  return { withCheckout: (codeTree, use) => pool.use(codeTree, use), close: () => pool.close() };
}

class CheckoutPool {
  readonly #ports: CheckoutPorts;
  readonly #queue: PQueue;
  readonly #idle: Place[] = [];
  readonly #trash = new Trash();
  readonly #inTheWay = new Set<number>();
  readonly #kept: ReadonlySet<string>;
  #root: Promise<string> | null = null;

  constructor(ports: CheckoutPorts) {
    this.#ports = ports;
    this.#kept = plainNames(ports.policy.keep);
    this.#queue = new PQueue({ concurrency: ports.limit });
  }

  use<T>(codeTree: Oid, use: (checkout: Checkout) => Promise<T>): Promise<Result<T, SetupFailure>> {
    return this.#queue.add(async () => {
      const { git, baseSpecs } = this.#ports;
      const specs = baseSpecs === null ? null : { mode: treeMode, oid: baseSpecs };
      const tree = await git.editTree(codeTree, new Map([[specsFolder, specs]]));
      const filled = await this.#filled(tree);
      if (!filled.ok) return filled;
      const place = filled.value;
      try {
        const ready = await this.#setUp(place, tree);
        return ready.ok ? ok(await use(this.#checkout(place, tree))) : ready;
      } finally {
        this.#idle.push(place);
      }
    });
  }

  #checkout(place: Place, tree: Oid): Checkout {
    const { git } = this.#ports;
    return {
      folder: place.folder,
      slot: place.slot,
      enter() {
        place.isUnchanged = false;
      },
      async changedFiles() {
        // Git would wait for a pipe that the gate left in place of a file with attributes.
        await removeTraps(git, place.folder, tree);
        const changed = await git.changedFiles(place.folder, place.index);
        place.isUnchanged = changed.length === 0;
        return changed;
      },
      restore: () => git.checkOut(place.folder, place.index, tree),
    };
  }

  /** A folder with exactly the files of a tree, but for what is kept: a used one if it can be made clean. */
  async #filled(tree: Oid): Promise<Result<Place, SetupFailure>> {
    for (let place = this.#takeIdle(tree); place !== undefined; place = this.#takeIdle(tree)) {
      if ((await this.#attempt(() => this.#refill(place, tree))).ok) return ok(place);
      await this.#discard(place);
    }
    const place = await this.#make();
    const filled = await this.#attempt(() => this.#fill(place, tree, false));
    if (filled.ok) return ok(place);
    await this.#discard(place);
    return filled;
  }

  /** What git or the system refuse (a full disk, a file that withstands) is an answer; anything else is a bug. */
  async #attempt(work: () => Promise<void>): Promise<Result<void, SetupFailure>> {
    try {
      await work();
      return ok(undefined);
    } catch (error) {
      const tail =
        error instanceof GitError
          ? error.stderr.trim()
          : error instanceof Error && 'code' in error
            ? error.message
            : null;
      if (tail === null) throw error;
      return failed({ kind: 'setup-failed', message: 'a clean checkout could not be made', tail, log: '' });
    }
  }

  /** Best one that held the same tree, else the one used last. */
  #takeIdle(tree: Oid): Place | undefined {
    const same = this.#idle.findLastIndex((place) => place.tree === tree);
    return same < 0 ? this.#idle.pop() : this.#idle.splice(same, 1)[0];
  }

  async #refill(place: Place, tree: Oid): Promise<void> {
    const { git, policy, slots } = this.#ports;
    const before = place.tree;
    const { isUnchanged } = place;
    place.tree = null;
    place.isUnchanged = false;
    // A link would lead the cleaning to whatever it points at.
    if ((await kindOf(place.folder)) !== 'folder') await this.#renew(place);
    await removeTree(join(place.folder, '.git'));
    if (await this.#hasUntracked(place, before)) await git.cleanFolder(place.folder, place.index, policy.keep);
    await this.#fill(place, tree, isUnchanged);
    await slots.renew(place.slot);
  }

  async #fill(place: Place, tree: Oid, isUnchanged: boolean): Promise<void> {
    const { git } = this.#ports;
    const show = isUnchanged ? git.advanceFolder.bind(git) : git.checkOut.bind(git);
    await show(place.folder, place.index, tree);
    place.tree = tree;
  }

  /** Removes what git must not look at, and says whether there is anything for it to clean away. */
  async #hasUntracked(place: Place, tree: Oid | null): Promise<boolean> {
    const { git } = this.#ports;
    const made = new Set(await madeBySetup(place.stamp));
    const known = tree === null ? null : { git, tree, isKept: (name: string) => this.#kept.has(name) };
    const survey = await surveyFolder(place.folder, made, known);
    // Cleaning passes over anything called `.git`, also where it lies among tracked files, and over pipes and the like.
    await Promise.all(survey.repositories.map((path) => removeTree(join(place.folder, path))));
    await removeFound(place.folder, [...survey.traps, ...survey.special]);
    return survey.hasUntracked;
  }

  async #setUp(place: Place, tree: Oid): Promise<Result<void, SetupFailure>> {
    const { git, setup, notice, vacate } = this.#ports;
    const { folder, index, slot, stamp } = place;
    const isolate = async (): Promise<void> => {
      await vacate(folder, 'goes');
      await writeThrowawayRepository(git, { folder, tree, index, exclude: [] });
    };
    const done = await setup({ folder, tree, slot, stamp, name: basename(folder), pristine: true, isolate });
    if (!done.ok) return done;
    if (done.value.ran) {
      await dropSetupRepositories(folder, await submodulesOf(git, tree));
      const changed = await git.changedFiles(folder, index);
      if (changed.length > 0) {
        notice(`[worktree] setup rewrites tracked files, which were put back: ${changed.slice(0, 5).join(', ')}`);
        await git.checkOut(folder, index, tree);
      }
    }
    await writeThrowawayRepository(git, { folder, tree, index, exclude: done.value.made.map(ignorePattern) });
    return ok(undefined);
  }

  /** A new folder under the smallest number whose name is free. */
  async #make(): Promise<Place> {
    const { slots, notice } = this.#ports;
    const root = await (this.#root ??= this.#openRoot());
    for (;;) {
      const slot = await slots.take({ except: this.#inTheWay });
      const name = `g${String(slot.number)}`;
      const folder = join(root, name);
      const store = join(root, storeFolder, name);
      if ((await kindOf(folder)) === null || (await isOurs(store))) {
        const place: Place = {
          folder,
          slot,
          store,
          index: join(store, 'index'),
          stamp: join(store, 'setup.json'),
          tree: null,
          isUnchanged: false,
        };
        await this.#renew(place);
        return place;
      }
      this.#inTheWay.add(slot.number);
      slots.free(slot);
      notice(`${folder} is in the way and not giro's: it is left alone, another name is used`);
    }
  }

  async #openRoot(): Promise<string> {
    await makeFolder(this.#ports.root);
    const root = (await realPath(this.#ports.root)) ?? this.#ports.root;
    await this.#trash.sweep(root);
    return root;
  }

  /** An empty folder in place of what is there, noted as giro's before it exists. */
  async #renew({ folder, store }: Place): Promise<void> {
    await makeFolder(store);
    await writeAtomic(join(store, noteName), '', { sync: false });
    await this.#putAside(folder);
    for (const { name } of await listFolder(store)) if (name !== noteName) await removeTree(join(store, name));
    await makeFolder(folder);
  }

  async #putAside(folder: string): Promise<void> {
    if ((await kindOf(folder)) !== null) await this.#trash.put(dirname(folder), folder);
  }

  async #discard(place: Place): Promise<void> {
    await this.#putAside(place.folder);
    await removeTree(place.store);
    this.#ports.slots.free(place.slot);
  }

  async close(): Promise<void> {
    await this.#queue.onIdle();
    for (const place of this.#idle.splice(0)) await this.#discard(place);
    await this.#trash.emptied();
  }
}

/** Patterns that are only a name, which they match wherever it is; the others are left to git. */
function plainNames(patterns: readonly string[]): ReadonlySet<string> {
  return new Set(patterns.filter((pattern) => /^[^/\\*?[\]!#\s]+$/.test(pattern)));
}

async function isOurs(store: string): Promise<boolean> {
  return (await kindOf(join(store, noteName))) === 'file';
}

/**
 * The merge lane: the only place that moves an integration branch (DESIGN 7).
 *
 * M1 One at a time: candidate, verification and move of one Issue are over before the next one's begin.
 * M2 The branch moves only to a commit whose code tree was verified, by compare-and-swap from the tip it was verified on.
 * M3 A red or conflicting candidate leaves nothing behind: the tip has not moved.
 * M4 The branch is not moved while it is the HEAD of any worktree.
 * M5 What somebody else put on the branch stays: it is built upon. A branch that lost what landed is left alone.
 */
import PQueue from 'p-queue';
import { unreachable } from '../failure.js';
import { shortOid, type Oid } from '../issue.js';
import { specsFolder } from '../spec.js';
import type { Clock } from '../platform/clock.js';
import type { Git } from './git-types.js';

/** What an Issue brings to the lane. */
export interface Mergeable {
  /** A commit with the Issue's code and its base's `docs/specs/`, a child of `base`. */
  readonly commit: Oid;
  /** The newest tip that the Issue's branch contains. */
  readonly base: Oid;
  /** Its code tree. */
  readonly code: Oid;
}

/** What the lane asks about one Issue. `V` is the verdict, which the lane hands through. */
export interface LandRequest<V extends { readonly passed: boolean }> {
  readonly mine: () => Promise<Mergeable>;
  readonly onCandidate: (tip: Oid, code: Oid) => void;
  /** `tip`: what the candidate is a change of. */
  readonly verify: (code: Oid, tip: Oid) => Promise<V>;
  /** Makes the commit to land: this code tree, on this tip. */
  readonly commit: (tip: Oid, code: Oid, verdict: V) => Promise<Oid>;
  readonly onHeld: (message: string) => void;
}

/** How the lane ended for one Issue. */
export type Landing<V> =
  | { readonly kind: 'landed'; readonly commit: Oid; readonly verdict: V }
  | { readonly kind: 'conflict'; readonly tip: Oid; readonly files: readonly string[] }
  | { readonly kind: 'red'; readonly tip: Oid; readonly verdict: V }
  | { readonly kind: 'held'; readonly message: string }
  | { readonly kind: 'stopped' };

/** How a docs-only commit ended. */
export type Recording =
  | { readonly kind: 'recorded'; readonly tip: Oid }
  | { readonly kind: 'held'; readonly message: string }
  /** The tip is another one than the commit was for, and it is not wanted there. */
  | { readonly kind: 'stale'; readonly message: string };

/** What the lane stands on. */
export interface LanePorts {
  readonly git: Git;
  /** Full name of the integration branch. */
  readonly ref: string;
  readonly tip: Oid;
  /** Folder of a worktree that has the branch as its HEAD; `null` when there is none. */
  readonly checkedOut: () => Promise<string | null>;
  /** True when nothing but held Issues is left: waiting longer cannot help. */
  readonly nothingElseMoves: () => boolean;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Trials without a landing before the lane gives up: somebody else keeps moving the branch. */
const maxTrials = 8;

/** The merge lane of one Spec. */
export class Lane {
  readonly #ports: LanePorts;
  readonly #queue = new PQueue({ concurrency: 1 });
  #tip: Oid;
  #held = 0;

  constructor(ports: LanePorts) {
    this.#ports = ports;
    this.#tip = ports.tip;
  }

  /** The verified tip. */
  get tip(): Oid {
    return this.#tip;
  }

  /** How many Issues wait because the branch is checked out. */
  get held(): number {
    return this.#held;
  }

  /** Takes what somebody put on the branch as the tip, when everything that landed is in it. */
  async refresh(): Promise<Oid> {
    await this.#queue.add(async () => this.#follow(await this.#ports.git.readRef(this.#ports.ref)));
    return this.#tip;
  }

  /** Merges, verifies and lands one Issue, after all that came before it. */
  async land<V extends { readonly passed: boolean }>(request: LandRequest<V>): Promise<Landing<V>> {
    for (let trial = 0; trial < maxTrials; trial += 1) {
      const outcome = await this.#queue.add(() => this.#tryOnce(request));
      switch (outcome.kind) {
        case 'moved':
          continue;
        case 'checked-out': {
          const message = heldMessage(this.#ports.ref, outcome.folder);
          if (!(await this.#wait(request, message)))
            return this.#ports.signal.aborted ? { kind: 'stopped' } : { kind: 'held', message };
          trial = -1;
          continue;
        }
        case 'refused':
          return { kind: 'held', message: outcome.message };
        case 'landed':
        case 'conflict':
        case 'red':
        case 'stopped':
          return outcome;
        default:
          return unreachable(outcome);
      }
    }
    return { kind: 'held', message: this.#restless() };
  }

  /** Adds a docs-only commit to the branch, in its turn. `make` gives `null` when its commit is not for this tip. */
  async record(make: (tip: Oid) => Promise<Oid | null>): Promise<Recording> {
    return this.#queue.add(async (): Promise<Recording> => {
      for (let trial = 0; trial < maxTrials; trial += 1) {
        const folder = await this.#ports.checkedOut();
        if (folder !== null) return { kind: 'held', message: heldMessage(this.#ports.ref, folder) };
        const commit = await make(this.#tip);
        if (commit === null) return { kind: 'stale', message: `${this.#branch()} was moved by somebody else` };
        const moved = await this.#move(commit);
        if (moved.kind === 'moved-there') return { kind: 'recorded', tip: this.#tip };
        if (moved.kind === 'refused') return { kind: 'held', message: moved.message };
      }
      return { kind: 'held', message: this.#restless() };
    });
  }

  async #tryOnce<V extends { readonly passed: boolean }>(
    request: LandRequest<V>,
  ): Promise<
    | Exclude<Landing<V>, { kind: 'held' }>
    | { readonly kind: 'moved' }
    | { readonly kind: 'checked-out'; readonly folder: string }
    | { readonly kind: 'refused'; readonly message: string }
  > {
    const { checkedOut } = this.#ports;
    if (this.#stopped()) return { kind: 'stopped' };
    // Looked at before anything is paid for; the move itself looks again.
    const followed = await this.#follow(await this.#ports.git.readRef(this.#ports.ref));
    if (followed.kind === 'refused') return followed;
    const tip = this.#tip;
    const candidate = await this.#candidate(await request.mine(), tip);
    if (candidate.kind === 'conflict') return { kind: 'conflict', tip, files: candidate.files };
    request.onCandidate(tip, candidate.code);
    const verdict = await request.verify(candidate.code, tip);
    if (this.#stopped()) return { kind: 'stopped' };
    if (!verdict.passed) return { kind: 'red', tip, verdict };
    const folder = await checkedOut();
    if (folder !== null) return { kind: 'checked-out', folder };
    const commit = await request.commit(tip, candidate.code, verdict);
    const moved = await this.#move(commit);
    switch (moved.kind) {
      case 'moved-there':
        return { kind: 'landed', commit, verdict };
      case 'moved-away':
        return { kind: 'moved' };
      case 'refused':
        return moved;
    }
  }

  #stopped(): boolean {
    return this.#ports.signal.aborted;
  }

  async #candidate(
    mine: Mergeable,
    tip: Oid,
  ): Promise<
    { readonly kind: 'clean'; readonly code: Oid } | { readonly kind: 'conflict'; readonly files: readonly string[] }
  > {
    const { git } = this.#ports;
    if (mine.base === tip) return { kind: 'clean', code: mine.code };
    const merged = await git.mergeTrees(tip, mine.commit);
    if (merged.kind === 'conflict') return { kind: 'conflict', files: merged.files };
    return { kind: 'clean', code: await git.editTree(merged.tree, new Map([[specsFolder, null]])) };
  }

  async #move(
    commit: Oid,
  ): Promise<
    | { readonly kind: 'moved-there' }
    | { readonly kind: 'moved-away' }
    | { readonly kind: 'refused'; readonly message: string }
  > {
    const { git, ref } = this.#ports;
    const moved = await git.moveRef(ref, commit, this.#tip);
    if (moved.ok) {
      this.#tip = commit;
      return { kind: 'moved-there' };
    }
    if (moved.failure.kind === 'ref-refused') return { kind: 'refused', message: moved.failure.message };
    return this.#follow(moved.failure.actual);
  }

  /** Takes what somebody else made of the branch as the tip, if everything that landed is in it. */
  async #follow(
    actual: Oid | null,
  ): Promise<{ readonly kind: 'moved-away' } | { readonly kind: 'refused'; readonly message: string }> {
    const tip = this.#tip;
    if (actual === tip) return { kind: 'moved-away' };
    if (actual !== null && (await this.#ports.git.isAncestor(tip, actual))) {
      this.#tip = actual;
      return { kind: 'moved-away' };
    }
    const branch = this.#branch();
    const what = actual === null ? 'was deleted' : `was moved to ${shortOid(actual)}, without what landed,`;
    return {
      kind: 'refused',
      message: `${branch} ${what} during the run; bring it back with: git branch -f ${branch} ${tip}`,
    };
  }

  #branch(): string {
    return this.#ports.ref.replace(/^refs\/heads\//, '');
  }

  #restless(): string {
    return `${this.#branch()} keeps being moved by somebody else`;
  }

  /** Waits while the branch is checked out; false when waiting longer cannot help. */
  async #wait(request: { readonly onHeld: (message: string) => void }, message: string): Promise<boolean> {
    const { clock, signal, checkedOut, nothingElseMoves } = this.#ports;
    request.onHeld(message);
    this.#held += 1;
    try {
      for (;;) {
        await clock.sleep(1000, signal);
        if (signal.aborted) return false;
        if ((await checkedOut()) === null) return true;
        if (nothingElseMoves()) return false;
      }
    } finally {
      this.#held -= 1;
    }
  }
}

/** Gives what a person types to free a branch that is checked out in a folder. */
export function detachCommand(folder: string): string {
  const quoted = /^[\w./@+-]+$/.test(folder) ? folder : `'${folder.replaceAll("'", `'\\''`)}'`;
  return `git -C ${quoted} switch --detach`;
}

function heldMessage(ref: string, folder: string): string {
  const branch = ref.replace(/^refs\/heads\//, '');
  return `${branch} is checked out in ${folder}; landing waits. Free it with: ${detachCommand(folder)}`;
}

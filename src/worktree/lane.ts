/**
 * The merge lane: the only place that moves an integration branch (DESIGN 7).
 *
 * M1 One at a time: candidate, verification and move of one Issue are over before the next one's begin.
 * M2 The branch moves only to a commit whose code tree was verified, by compare-and-swap from the tip it was verified on.
 * M3 A red or conflicting candidate leaves nothing behind: the tip has not moved.
 * M4 The branch is not moved while it is the HEAD of any worktree.
 */
import PQueue from 'p-queue';
import { unreachable } from '../failure.js';
import type { Oid } from '../issue.js';
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
  readonly verify: (code: Oid) => Promise<V>;
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
  { readonly kind: 'recorded'; readonly tip: Oid } | { readonly kind: 'held'; readonly message: string };

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
    return { kind: 'held', message: `${this.#ports.ref} keeps being moved by somebody else` };
  }

  /** Adds a docs-only commit to the branch, in its turn. */
  async record(make: (tip: Oid) => Promise<Oid>): Promise<Recording> {
    return this.#queue.add(async (): Promise<Recording> => {
      for (let trial = 0; trial < maxTrials; trial += 1) {
        const folder = await this.#ports.checkedOut();
        if (folder !== null) return { kind: 'held', message: heldMessage(this.#ports.ref, folder) };
        const moved = await this.#move(await make(this.#tip));
        if (moved.kind === 'moved-there') return { kind: 'recorded', tip: this.#tip };
        if (moved.kind === 'refused') return { kind: 'held', message: moved.message };
      }
      return { kind: 'held', message: `${this.#ports.ref} keeps being moved by somebody else` };
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
    const tip = this.#tip;
    const candidate = await this.#candidate(await request.mine(), tip);
    if (candidate.kind === 'conflict') return { kind: 'conflict', tip, files: candidate.files };
    request.onCandidate(tip, candidate.code);
    const verdict = await request.verify(candidate.code);
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
    if (moved.failure.actual === null) return { kind: 'refused', message: `${ref} was deleted during the run` };
    this.#tip = moved.failure.actual;
    return { kind: 'moved-away' };
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

function heldMessage(ref: string, folder: string): string {
  const branch = ref.replace(/^refs\/heads\//, '');
  return `${branch} is checked out in ${folder}; landing waits. Free it with: git -C ${folder} switch --detach`;
}

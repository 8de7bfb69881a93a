/**
 * The branch of one Issue as the engine writes it: commits whose `docs/specs/` is the integration branch's, with this Issue's
 * own file replaced, each moved to by compare-and-swap from the value written last (J2, J4 and J5 of the journal).
 */
import type { IssueId, IssueState, Oid, Phase, SpecSlug } from '../issue.js';
import { shortOid } from '../issue.js';
import type { Clock } from '../platform/clock.js';
import type { Git, MoveFailure } from '../worktree/git-types.js';
import { branchName, issueRef } from './refs.js';
import { codeTree, joinTree, specsTree, withFiles } from './tree.js';
import { commitMessage, type Checkpoint } from './trailers.js';

/** What a branch is written with. */
export interface BranchPorts {
  readonly git: Git;
  readonly spec: SpecSlug;
  readonly clock: Clock;
}

/** Where a branch stands. */
export interface BranchStart {
  readonly issue: { readonly id: IssueId };
  /** The newest record; a person's commits may be above it. */
  readonly commit: Oid | null;
  /** What the ref holds; `null` when there is none. */
  readonly refValue: Oid | null;
}

/** One commit of the record. */
export interface Step {
  readonly checkpoint: Checkpoint;
  readonly subject: string;
  readonly parents: readonly Oid[];
  readonly code: Oid;
  readonly specsFrom: Oid;
  readonly state: { readonly attempt: number; readonly phase: Phase } | null;
  readonly issueState?: IssueState;
}

/** Thrown when a branch did not stand where the engine left it; `lost` of the branch says the same. */
export class BranchMovedError extends Error {
  readonly ref: string;
  constructor(ref: string, message: string) {
    super(message);
    this.ref = ref;
  }
}

/** Writes the branch of one Issue. */
export class IssueBranch {
  /** Its full name. */
  readonly ref: string;
  readonly #ports: BranchPorts;
  readonly #id: IssueId;
  #commit: Oid | null;
  #refValue: Oid | null;
  #lost: string | null = null;

  constructor(ports: BranchPorts, start: BranchStart) {
    this.#ports = ports;
    this.#id = start.issue.id;
    this.ref = issueRef(ports.spec, start.issue.id);
    this.#commit = start.commit;
    this.#refValue = start.refValue;
  }

  /** The newest commit of the record; `null` before the first attempt. */
  get commit(): Oid | null {
    return this.#commit;
  }

  /** Why the branch is not the engine's to write any more; `null` while it is. */
  get lost(): string | null {
    return this.#lost;
  }

  /** Gives the newest commit, where there must be one. */
  required(): Oid {
    if (this.#commit === null) throw new Error(`${this.#id} has no commit of its own yet`);
    return this.#commit;
  }

  /** Makes the next commit, with the Issue's file as given, and moves the branch to it. */
  async advance(step: Step, file: { readonly path: string; readonly text: string }): Promise<Oid> {
    const { git, clock } = this.#ports;
    const joined = await joinTree(git, step.code, await this.specsOf(step.specsFrom));
    const tree = await withFiles(git, joined, new Map([[file.path, file.text]]));
    const message = commitMessage({
      subject: step.subject,
      checkpoint: step.checkpoint,
      trailers: { 'Giro-Issue': this.#id, 'Giro-Tree': tree },
    });
    const commit = await git.writeCommit({ tree, parents: step.parents, message, at: clock.now() });
    this.#commit = commit;
    if (this.#lost !== null) return commit;
    const moved = await git.moveRef(this.ref, commit, this.#refValue);
    if (!moved.ok) {
      this.#lost = lossOf(moved.failure);
      throw new BranchMovedError(this.ref, this.#lost);
    }
    this.#refValue = commit;
    return commit;
  }

  /** The code tree of any commit. */
  async codeOf(commit: Oid): Promise<Oid> {
    return codeTree(this.#ports.git, (await this.#ports.git.readCommit(commit)).tree);
  }

  /** The tree of `docs/specs/` of any commit. */
  async specsOf(commit: Oid): Promise<Oid | null> {
    const { git } = this.#ports;
    return specsTree(git, (await git.readCommit(commit)).tree);
  }
}

function lossOf(failure: MoveFailure): string {
  if (failure.kind === 'ref-refused') return `${branchName(failure.ref)} could not be written: ${failure.message}`;
  const where = failure.actual === null ? 'deleted' : `moved to ${shortOid(failure.actual)}`;
  return `${branchName(failure.ref)} was ${where} by somebody else while giro worked on it`;
}

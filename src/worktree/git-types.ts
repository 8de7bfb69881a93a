/** What giro asks of git, as types. `git.ts` is the only implementation. */
import type { Failure, Result } from '../failure.js';
import type { Oid } from '../issue.js';
import type { Conversation } from '../platform/plumbing.js';
import type { ObjectNames } from '../platform/durable-names.js';
import type { WhileAlone } from '../platform/short-lock.js';

/** Format of object names of a repository. */
export type HashName = 'sha1' | 'sha256';

/** One line of a tree. */
export interface TreeEntry {
  /** `100644`, `100755`, `120000` (symlink), `040000` (tree) or `160000` (submodule). */
  readonly mode: string;
  readonly oid: Oid;
  /** Without `/`; bytes that are not UTF-8 are kept as lone surrogates (see `decodeName`). */
  readonly name: string;
}

/** Where a path of a tree points. */
export type TreeTarget = Omit<TreeEntry, 'name'>;

/** What differs at one name between two trees; `undefined`: nothing is there. */
export interface EntryChange {
  readonly name: string;
  readonly was: TreeTarget | undefined;
  readonly is: TreeTarget | undefined;
}

/** One file of a whole tree. */
export interface TreeFile extends TreeTarget {
  readonly path: string;
}

/** One commit as read. */
export interface CommitInfo {
  readonly oid: Oid;
  readonly tree: Oid;
  readonly parents: readonly Oid[];
  readonly message: string;
  /** Seconds since the epoch. */
  readonly committedAt: number;
}

/** One commit to write. */
export interface NewCommit {
  readonly tree: Oid;
  readonly parents: readonly Oid[];
  /** Ends with one newline after writing, whatever it ended with before. */
  readonly message: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** How one file differs between two trees. */
export interface FileChange {
  readonly path: string;
  readonly status: 'added' | 'modified' | 'deleted' | 'type-changed';
  /** `000000` when there was none. */
  readonly oldMode: string;
  /** `000000` when there is none. */
  readonly newMode: string;
  /** `null` when there was none. */
  readonly oldOid: Oid | null;
  /** `null` when there is none. */
  readonly newOid: Oid | null;
  readonly insertions: number;
  readonly deletions: number;
  /** True: lines were not counted. */
  readonly binary: boolean;
}

/** What merging two commits gives. */
export type MergeOutcome =
  | { readonly kind: 'clean'; readonly tree: Oid }
  | {
      readonly kind: 'conflict';
      /** With conflict markers where git could write them. */
      readonly tree: Oid;
      readonly files: readonly string[];
      readonly messages: readonly string[];
    };

/** Why a ref did not move. */
export type MoveFailure =
  | { readonly kind: 'ref-moved'; readonly ref: string; readonly expected: Oid | null; readonly actual: Oid | null }
  | { readonly kind: 'ref-refused'; readonly ref: string; readonly message: string };

/** Whether a ref moved. */
export type MoveResult = Result<void, MoveFailure>;

/** One commit with the blobs it changed below a folder. */
export interface LoggedCommit {
  readonly commit: Oid;
  readonly message: string;
  /** Against the first parent; `null`: the path is gone. */
  readonly changes: readonly { readonly path: string; readonly oid: Oid | null }[];
}

/** A linked worktree as git's files describe it. */
export interface LinkedWorktree {
  readonly folder: string;
  readonly adminDir: string;
  /** The commit it is on; `null` when it is not born yet or cannot be read. */
  readonly head: Oid | null;
  /** Full name of the branch it is on; `null` when detached. */
  readonly ref: string | null;
  /** Reason of its lock (maybe empty); `null` when unlocked. */
  readonly locked: string | null;
}

/** What is asked about another repository. */
export interface ForeignQuestion {
  /** Its git dir. */
  readonly gitDir: string;
  /** The commit that is pinned. */
  readonly commit: Oid;
  /** Everything that somebody may have made there. */
  readonly tips: readonly Oid[];
  /** What came from elsewhere. */
  readonly known: readonly Oid[];
}

/** What another repository holds. */
export interface ForeignAnswer {
  /** The tree of the pinned commit; `null` when it is not there. */
  readonly tree: Oid | null;
  /** Whether a tip is not behind what is known, or that cannot be told. */
  readonly hasOwn: boolean;
}

/** One repository. Every method is safe to call at any time, also several at once. */
export interface Git {
  readonly commonDir: string;
  readonly hash: HashName;
  /** Version of git such as `2.39.5`; empty when opened only for reading (`runFolder: null`). */
  readonly version: string;
  readonly emptyTree: Oid;

  /** Reads a ref by its full name; `null` when it does not exist or is symbolic. */
  readRef(ref: string): Promise<Oid | null>;
  /** Every ref below a prefix such as `refs/heads/giro/`, without symbolic ones, sorted by name. */
  listRefs(prefix: string): Promise<ReadonlyMap<string, Oid>>;
  /** The names of every ref below a prefix, symbolic ones too, without looking where they point: there may be thousands. */
  listRefNames(prefix: string): Promise<readonly string[]>;
  /** Moves a ref of giro from `from` to `to`, or not at all; `from: null` must not exist, `to: null` deletes. */
  moveRef(ref: string, to: Oid | null, from: Oid | null): Promise<MoveResult>;

  readCommit(oid: Oid): Promise<CommitInfo>;
  /** Entries of a tree; a commit stands for its tree. */
  readTree(oid: Oid): Promise<readonly TreeEntry[]>;
  /** The names at which two trees (or commits) differ, without looking further down; `null`: nothing is there. */
  changedEntries(from: Oid | null, to: Oid): Promise<readonly EntryChange[]>;
  readBlob(oid: Oid): Promise<Buffer>;
  /** Contents of many blobs, in the order asked. */
  readBlobs(oids: readonly Oid[]): Promise<readonly Buffer[]>;
  /** How many bytes an object has, without reading them. */
  sizeOf(oid: Oid): Promise<number>;
  /** What a tree (or the tree of a commit) has at a path; `null` when nothing. */
  readPath(treeOrCommit: Oid, path: string): Promise<TreeTarget | null>;
  /**
   * The bytes of a file of a commit; `null`: there is none. For commits that are looked at once: none of the folders on the way
   * is read here, and nothing is remembered.
   */
  readOnce(commit: Oid, path: string): Promise<Buffer | null>;
  /** All files of a tree, also links and submodules, in git's order. */
  listTree(tree: Oid): Promise<readonly TreeFile[]>;

  /** Writes a blob; durable before it returns. */
  writeBlob(data: string | Uint8Array): Promise<Oid>;
  /** Writes a commit by `giro <giro@localhost>`; durable before it returns. */
  writeCommit(commit: NewCommit): Promise<Oid>;
  /**
   * A tree equal to `tree` but for the given paths (`null`: absent). An entry may be a whole subtree. Empty folders vanish.
   * It is stored, durably, before a commit or a call of git that names it; until then it is only known here.
   */
  editTree(tree: Oid, edits: ReadonlyMap<string, TreeTarget | null>): Promise<Oid>;

  /** True when `ancestor` is `descendant` or behind it; false when one of them does not exist. */
  isAncestor(ancestor: Oid, descendant: Oid): Promise<boolean>;
  /**
   * The commits of many branches that are not in the history of a tip, by one process; `null`: too many to be told, or one of
   * them does not exist.
   */
  notBehind(branches: readonly Oid[], tip: Oid): Promise<ReadonlySet<Oid> | null>;
  /** Full names of the branches and tags whose history has a commit; none when it does not exist. */
  refsWith(commit: Oid): Promise<readonly string[]>;
  /** Full names of the refs below a prefix that are a commit or behind it. */
  refsBehind(commit: Oid, prefix: string): Promise<readonly string[]>;
  mergeBase(left: Oid, right: Oid): Promise<Oid | null>;
  /** Merges two commits without any checkout. */
  mergeTrees(ours: Oid, theirs: Oid): Promise<MergeOutcome>;
  /** Files that differ between two trees or commits; a rename is a deletion and an addition. */
  diffTrees(from: Oid, to: Oid): Promise<readonly FileChange[]>;
  /** Unified diff for a reader, cut after `maxBytes` with a last line that says so. */
  patch(from: Oid, to: Oid, maxBytes: number): Promise<string>;
  /**
   * Commits from a tip down its first parents, newest first, that have a line which an extended regular expression matches;
   * without `not` and what is behind it. One process, however many there are.
   */
  firstParents(tip: Oid, not: readonly Oid[], line: string): Promise<readonly CommitInfo[]>;
  /** Every commit of `not..tips`, newest first, with what it changed below `folder`. */
  logBlobs(tips: readonly Oid[], not: readonly Oid[], folder: string): Promise<readonly LoggedCommit[]>;

  /** Makes the tracked files of a folder equal to a tree; `index` belongs to that folder and may not exist yet. */
  checkOut(folder: string, index: string, tree: Oid): Promise<void>;
  /** The same where `isUntouched` was true, or `changedFiles` named none, a moment ago: only what differs is looked at. */
  advanceFolder(folder: string, index: string, tree: Oid): Promise<void>;
  /** Everything in a folder as a tree, but ignored files and untracked ones that match `exclude` (gitignore patterns). */
  snapshotFolder(folder: string, index: string, exclude?: readonly string[]): Promise<Oid>;
  /** Tracked files of a folder whose content, mode or kind differs from its index, or that are gone. */
  changedFiles(folder: string, index: string): Promise<readonly string[]>;
  /** Whether a folder holds exactly what its index says: no tracked file differs and nothing else is there, ignored or not. */
  isUntouched(folder: string, index: string): Promise<boolean>;
  /** Removes everything from a folder that its index does not track, also ignored files and nested repositories, but not `keep`. */
  cleanFolder(folder: string, index: string, keep: readonly string[]): Promise<void>;

  /** Asks about the objects of another repository, of which nothing else is read. */
  askForeign(question: ForeignQuestion): Promise<ForeignAnswer>;

  /** Registers a locked, detached worktree without files at a folder that does not exist yet. */
  addWorktree(folder: string, commit: Oid, reason: string): Promise<Result<{ readonly adminDir: string }>>;
  /** Removes a worktree of giro: out of the way at once, deleted in the background (`close` waits). */
  removeWorktree(folder: string, adminDir: string): Promise<Result<void>>;
  listWorktrees(): Promise<readonly LinkedWorktree[]>;

  /**
   * Does something while no other giro changes refs or worktrees of this repository: for files of giro's own that several
   * read and write. Moving a ref and handling worktrees takes the same lock, so none of that inside.
   */
  readonly whileAlone: WhileAlone;

  /** How many git processes were started so far. */
  processes(): number;
  close(): Promise<void>;
}

/** A checkout of the person's or of giro's, as git's files describe it. */
export interface CheckedOut {
  readonly path: string;
  /** Full name of the branch; `null` when detached. */
  readonly ref: string | null;
  readonly head: Oid | null;
}

/** What giro knows of the person's checkout. */
export interface UserSide {
  /** Root of the checkout giro was started in; `null` in a bare repository. */
  readonly topLevel: string | null;
  /** The commit it was on when the repository was opened. */
  readonly head: Oid;
  /** Short name of the person's branch then; `null` when detached. */
  readonly branch: string | null;
  /** The main checkout (or the bare repository) first, then every linked one. */
  headsOfWorktrees(): Promise<readonly CheckedOut[]>;
  /** Paths that differ from the commit, untracked ones too, whatever the config says; sorted. */
  uncommitted(): Promise<readonly string[]>;
  /** What landed on a ref, newest first, as a drawing for a person; empty when there is no such ref. */
  logGraph(ref: string): Promise<string>;
  /** Version of git. */
  gitVersion(): Promise<string>;
}

/** What `openGit` gives. */
export type OpenedGit = Git & { readonly user: UserSide };

/** What `openGit` needs. */
export interface OpenRequest {
  /** A folder in the repository. */
  readonly folder: string;
  /** giro's own environment. */
  readonly own: Readonly<Record<string, string | undefined>>;
  /**
   * Where the private git dir goes, told from git's common dir where it is not known before; `null`: only reading is meant, a
   * temporary folder is made when one is needed.
   */
  readonly runFolder: string | null | ((commonDir: string) => string);
  /** How long one call of git may take before it is ended, which throws a `GitError`; a quarter of an hour when absent. */
  readonly callTimeoutMs?: number;
}

/** A git command that failed though nothing expected it; carries what was run. */
export class GitError extends Error {
  readonly command: readonly string[];
  readonly code: number | null;
  readonly stderr: string;

  constructor(command: readonly string[], code: number | null, stderr: string) {
    super(`git ${command.join(' ')}: ${code === null ? 'killed' : `exit ${String(code)}`}: ${stderr.trim()}`);
    this.name = 'GitError';
    this.command = command;
    this.code = code;
    this.stderr = stderr;
  }
}

/** An object that the repository names and does not have, as below the border of a shallow clone. */
export class MissingObject extends GitError {
  constructor(oid: Oid) {
    super(['cat-file', oid], null, 'the object is missing');
    this.message = `object ${oid} is missing`;
    this.name = 'MissingObject';
  }
}

/** One git call. */
export interface GitCall {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string | Uint8Array;
  /** Exit codes that are answers; only 0 when absent. Any other throws a `GitError`. */
  readonly accept?: readonly number[];
  /** Keep only this much of stdout. */
  readonly maxBytes?: number;
  /** Beyond it git is ended, which throws a `GitError`. */
  readonly timeoutMs?: number;
}

/** What a git call answered. */
export interface GitOutput {
  readonly code: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

/** Runs git once. */
export type RunGit = (call: GitCall) => Promise<GitOutput>;

/** Shorthand of an expected failure of the environment. */
export function environmentFailure(
  message: string,
  hint: string,
  cause?: unknown,
): { ok: false; failure: Extract<Failure, { kind: 'environment' }> } {
  return { ok: false, failure: { kind: 'environment', message, hint, ...(cause === undefined ? {} : { cause }) } };
}

/** Where a repository lies. */
export interface Place {
  readonly commonDir: string;
  /** Differs from `commonDir` in a linked worktree. */
  readonly gitDir: string;
  readonly topLevel: string | null;
  readonly hash: HashName;
  /** Refs are not files. */
  readonly reftable: boolean;
}

/** Everything `git.ts` does to the machine for the files beside it: processes, and file work beyond `platform/files`. */
export interface GitMachine {
  readonly binary: string;
  readonly own: OpenRequest['own'];
  /** Built from nothing. */
  readonly environment: Readonly<Record<string, string>>;
  /** The same, but the person's own git config is found. */
  readonly personEnvironment: Readonly<Record<string, string>>;
  run(call: GitCall, cwd: string, env: Readonly<Record<string, string>>): Promise<GitOutput>;
  converse(args: readonly string[], cwd: string, env: Readonly<Record<string, string>>): Conversation;
  /** Counts a process that something else starts. */
  count(): void;
  /** The lock among all processes that change a repository. */
  alone(commonDir: string): WhileAlone;
  /** Ends what was kept to start processes with. */
  close(): Promise<void>;
  readonly started: number;
  realPath(path: string): Promise<string>;
  /** Changes whenever the file does; `null` when it is absent. */
  stamp(path: string): Promise<string | null>;
  temporaryFolder(): Promise<string>;
  /** Puts a loose object in place, its bytes durably; one that is there already is made young again. */
  storeLoose(request: LooseObject): Promise<void>;
  /** The folders of objects, whose names are durable once they are settled. */
  objectNames(objectsDir: string): ObjectNames;
}

/** The kinds of objects that giro writes. */
export type ObjectKind = 'blob' | 'tree' | 'commit';

/** A loose object to store. */
export interface LooseObject {
  readonly objectsDir: string;
  readonly oid: Oid;
  readonly kind: ObjectKind;
  readonly data: Uint8Array;
  /** Value of `core.sharedRepository`. */
  readonly shared: string | null;
}

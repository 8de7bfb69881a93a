/** `Git`, put together from its parts. It starts nothing itself: `git.ts` hands it the machine. */
import { join } from 'node:path';
import { parseOid, type Oid } from '../issue.js';
import type { Result } from '../failure.js';
import { RefNames, type ObjectNames } from '../platform/durable-names.js';
import { silencingOptions } from './git-environment.js';
import { diffFormat, TreeDiffer } from './git-diff.js';
import { Folders } from './git-folders.js';
import { Objects } from './git-objects.js';
import { askForeign } from './git-modules.js';
import { commitFormat, logFormat, parseCommits, parseDiff, parseLog, parseMerge, parseTreeList } from './git-parse.js';
import { PrivateDir } from './git-private.js';
import { assertRefName, FileRefs, ProcessRefs, RefMover, type RefReader } from './git-refs.js';
import {
  GitError,
  type CommitInfo,
  type EntryChange,
  type FileChange,
  type ForeignAnswer,
  type ForeignQuestion,
  type Git,
  type GitCall,
  type GitMachine,
  type GitOutput,
  type HashName,
  type LinkedWorktree,
  type LoggedCommit,
  type MergeOutcome,
  type MoveResult,
  type NewCommit,
  type Place,
  type TreeEntry,
  type TreeFile,
  type TreeTarget,
  type UserSide,
  type ObjectKind,
} from './git-types.js';
import type { WhileAlone } from '../platform/short-lock.js';
import { LinkedWorktrees, readHead } from './git-worktrees.js';
import { mergeApart } from './merge-apart.js';
import { encodeCommit, nameObject } from './objects.js';
import { createUserSide } from './user.js';

/** What opening a repository found out. */
export interface RepositoryRequest {
  readonly machine: GitMachine;
  readonly place: Place;
  readonly version: string;
  readonly runFolder: string | null;
}

/** Trees with more folders are listed by one process instead of one question per folder. */
const maxWalkedFolders = 64;

/** How far back a fork is looked for without git. */
const maxFirstParents = 500;

/** Commits of branches that are listed at once; those of giro have a few each. */
const maxOwnCommits = 100_000;

/** One open repository. */
export class Repository implements Git {
  readonly commonDir: string;
  readonly hash: HashName;
  readonly version: string;
  readonly emptyTree: Oid;
  readonly whileAlone: WhileAlone;
  readonly #machine: GitMachine;
  readonly #place: Place;
  readonly #objectNames: ObjectNames;
  readonly #movedRefs: RefNames;
  readonly #private: PrivateDir;
  readonly #objects: Objects;
  readonly #refs: RefReader;
  readonly #mover: RefMover;
  readonly #differ: TreeDiffer;
  readonly #folders: Folders;
  readonly #worktrees: LinkedWorktrees;
  /** Commits that came into being here and that nothing was built on. */
  readonly #fresh = new Set<Oid>();

  constructor({ machine, place, version, runFolder }: RepositoryRequest) {
    this.commonDir = place.commonDir;
    this.hash = place.hash;
    this.version = version;
    this.emptyTree = nameObject(place.hash, 'tree', Buffer.alloc(0));
    this.#machine = machine;
    this.#place = place;
    this.whileAlone = machine.alone(place.commonDir);
    this.#objectNames = machine.objectNames(join(place.commonDir, 'objects'));
    this.#movedRefs = new RefNames(place.commonDir, place.reftable);
    this.#private = new PrivateDir({ machine, place, runFolder });
    this.#objects = this.#openObjects();
    this.#refs = this.#openRefs();
    this.#mover = this.#openMover();
    this.#differ = this.#openDiffer();
    const realPath = (path: string): Promise<string> => machine.realPath(path);
    const untouchable = [place.commonDir, ...(place.topLevel === null ? [] : [place.topLevel])];
    this.#folders = new Folders({
      run: (call) => this.#inPrivate(call),
      git: this,
      realPath,
      patternFile: (patterns) => this.#private.patternFile(patterns),
      untouchable,
    });
    this.#worktrees = new LinkedWorktrees({
      commonDir: place.commonDir,
      run: (call) => this.#inCommon(call),
      readRef: (ref) => this.#refs.read(ref),
      realPath,
      untouchable,
      whileAlone: this.whileAlone,
    });
  }

  // The parts

  #openObjects(): Objects {
    const converse = async () => {
      const folder = await this.#private.folder();
      return this.#machine.converse(['cat-file', '--batch-command'], folder, this.#private.environment(folder));
    };
    return new Objects({
      hash: this.hash,
      emptyTree: this.emptyTree,
      converse,
      store: (kind, data) => this.#store(kind, data),
      name: (kind, data) => nameObject(this.hash, kind, data),
    });
  }

  #openRefs(): RefReader {
    const { commonDir } = this.#place;
    if (this.#place.reftable) return new ProcessRefs((call) => this.#inCommon(call));
    return new FileRefs({ commonDir, stamp: (path) => this.#machine.stamp(path) });
  }

  #openDiffer(): TreeDiffer {
    return new TreeDiffer(async () => {
      const folder = await this.#private.folder();
      const args = ['diff-tree', '--stdin', ...diffFormat];
      return this.#machine.converse(args, folder, this.#private.environment(folder));
    });
  }

  #openMover(): RefMover {
    const args = [...silencingOptions, 'update-ref', '-m', 'giro', '--stdin'];
    const start = async () => Promise.resolve(this.#machine.converse(args, this.commonDir, this.#commonEnvironment()));
    return new RefMover(start, (ref) => this.#refs.read(ref), this.whileAlone);
  }

  async #store(kind: ObjectKind, data: Uint8Array): Promise<Oid> {
    const oid = nameObject(this.hash, kind, data);
    const { shared } = await this.#private.settings();
    await this.#machine.storeLoose({ objectsDir: join(this.commonDir, 'objects'), oid, kind, data, shared });
    return oid;
  }

  #commonEnvironment(): Readonly<Record<string, string>> {
    return { ...this.#machine.environment, GIT_DIR: this.commonDir };
  }

  #inCommon(call: GitCall): Promise<GitOutput> {
    const args = [...silencingOptions, ...call.args];
    return this.#machine.run({ ...call, args }, this.commonDir, this.#commonEnvironment());
  }

  async #inPrivate(call: GitCall): Promise<GitOutput> {
    const folder = await this.#private.ready();
    return this.#machine.run(call, folder, this.#private.environment(folder));
  }

  /** For calls that write nothing and know no ignore patterns: saves reading the person's settings. */
  async #reading(call: GitCall): Promise<GitOutput> {
    const folder = await this.#private.folder();
    return this.#machine.run(call, folder, this.#private.environment(folder));
  }

  // Refs

  async readRef(ref: string): Promise<Oid | null> {
    assertRefName(ref);
    const stored = await this.#refs.read(ref);
    return stored !== null && 'oid' in stored ? stored.oid : null;
  }

  listRefs(prefix: string): Promise<ReadonlyMap<string, Oid>> {
    return this.#refs.list(prefix);
  }

  listRefNames(prefix: string): Promise<readonly string[]> {
    return this.#refs.names(prefix);
  }

  /** What a ref names is durable before it moves, and the move before anything is done that it tells of. */
  async moveRef(ref: string, to: Oid | null, from: Oid | null): Promise<MoveResult> {
    await this.#objectNames.settle();
    const moved = await this.#mover.move(ref, to, from);
    if (moved.ok) await this.#movedRefs.settle(ref, to === null);
    return moved;
  }

  // Objects

  readCommit(oid: Oid): Promise<CommitInfo> {
    return this.#objects.readCommit(oid);
  }

  readTree(oid: Oid): Promise<readonly TreeEntry[]> {
    return this.#objects.readTree(oid);
  }

  changedEntries(from: Oid | null, to: Oid): Promise<readonly EntryChange[]> {
    return this.#objects.changedEntries(from, to);
  }

  readBlob(oid: Oid): Promise<Buffer> {
    return this.#objects.readBlob(oid);
  }

  readBlobs(oids: readonly Oid[]): Promise<readonly Buffer[]> {
    return this.#objects.readBlobs(oids);
  }

  sizeOf(oid: Oid): Promise<number> {
    return this.#objects.sizeOf(oid);
  }

  readOnce(commit: Oid, path: string): Promise<Buffer | null> {
    return this.#objects.readOnce(commit, path);
  }

  readPath(treeOrCommit: Oid, path: string): Promise<TreeTarget | null> {
    return this.#objects.readPath(treeOrCommit, path);
  }

  async listTree(tree: Oid): Promise<readonly TreeFile[]> {
    const walked = await this.#objects.walk(tree, maxWalkedFolders);
    if (walked !== null) return walked;
    await this.#objects.settle(tree);
    return parseTreeList((await this.#reading({ args: ['ls-tree', '-r', '-z', '--full-tree', tree] })).stdout);
  }

  writeBlob(data: string | Uint8Array): Promise<Oid> {
    return this.#objects.writeBlob(Buffer.from(data));
  }

  async writeCommit(commit: NewCommit): Promise<Oid> {
    for (const parent of commit.parents) this.#fresh.delete(parent);
    const data = encodeCommit(commit);
    const oid = nameObject(this.hash, 'commit', data);
    if (commit.parents.length === 1 && !(await this.#objects.exists(oid))) this.#fresh.add(oid);
    return this.#objects.writeCommit(commit.tree, data);
  }

  editTree(tree: Oid, edits: ReadonlyMap<string, TreeTarget | null>): Promise<Oid> {
    return this.#objects.editTree(tree, edits);
  }

  // History, merging, comparing

  async isAncestor(ancestor: Oid, descendant: Oid): Promise<boolean> {
    // Decided by the exit code: 0 yes, 1 no. 128 also stands for "there is no such commit", which is a no.
    const call = { args: ['merge-base', '--is-ancestor', ancestor, descendant], accept: [0, 1, 128] };
    const { code, stderr } = await this.#reading(call);
    if (code !== 128) return code === 0;
    const known = await Promise.all([this.#objects.exists(ancestor), this.#objects.exists(descendant)]);
    if (known.includes(false)) return false;
    throw new GitError(call.args, code, stderr);
  }

  async notBehind(branches: readonly Oid[], tip: Oid): Promise<ReadonlySet<Oid> | null> {
    const args = ['rev-list', '--stdin', `--max-count=${String(maxOwnCommits)}`];
    const input = [...branches, `^${tip}`, ''].join('\n');
    const { code, stdout } = await this.#reading({ args, input, accept: [0, 128] });
    const found = stdout.toString('latin1').split('\n').slice(0, -1);
    return code === 0 && found.length < maxOwnCommits ? new Set(found.map(parseOid)) : null;
  }

  refsWith(commit: Oid): Promise<readonly string[]> {
    return this.#refNames('--contains', commit, 'refs/heads/', 'refs/tags/');
  }

  refsBehind(commit: Oid, prefix: string): Promise<readonly string[]> {
    return this.#refNames('--merged', commit, prefix);
  }

  async #refNames(relation: '--contains' | '--merged', commit: Oid, ...below: string[]): Promise<readonly string[]> {
    const args = ['for-each-ref', '--format=%(refname)', relation, commit, ...below];
    // 129: there is no such commit, or it is none.
    const { code, stdout } = await this.#inCommon({ args, accept: [0, 129] });
    return code === 0
      ? stdout
          .toString()
          .split('\n')
          .filter((name) => name !== '')
      : [];
  }

  async mergeBase(left: Oid, right: Oid): Promise<Oid | null> {
    const { code, stdout } = await this.#reading({ args: ['merge-base', left, right], accept: [0, 1] });
    return code === 0 ? parseOid(stdout.toString().split('\n')[0] ?? '') : null;
  }

  async mergeTrees(ours: Oid, theirs: Oid): Promise<MergeOutcome> {
    const base = (await this.#forkOf(theirs, ours)) ?? (await this.#forkOf(ours, theirs));
    const apart = base === null ? null : await mergeApart(this, { base, ours, theirs });
    if (apart !== null) return { kind: 'clean', tree: apart };
    // Attributes do not count here (a bare git dir has no files to read them from), so no file of a branch can choose
    // how it is merged.
    const args = ['merge-tree', '--write-tree', '-z', '--name-only', '--messages', ours, theirs];
    const { code, stdout, stderr } = await this.#inPrivate({ args, accept: [0, 1] });
    // Some versions also say 1 for a commit that does not exist.
    if (stdout.length === 0) throw new GitError(args, code, stderr);
    const { tree, files, messages } = parseMerge(stdout);
    return code === 0 ? { kind: 'clean', tree } : { kind: 'conflict', tree, files, messages };
  }

  /**
   * The one common ancestor of a fresh commit and a line of first parents that its only parent is on. Nobody has built on
   * a fresh commit, so there is no other way from the one to the other.
   */
  async #forkOf(fresh: Oid, line: Oid): Promise<Oid | null> {
    if (!this.#fresh.has(fresh)) return null;
    const [parent, ...others] = (await this.readCommit(fresh)).parents;
    if (parent === undefined || others.length > 0) return null;
    let at: Oid | undefined = line;
    for (let steps = 0; at !== undefined && steps < maxFirstParents; steps++) {
      if (at === parent) return parent;
      at = (await this.readCommit(at)).parents[0];
    }
    return null;
  }

  async diffTrees(from: Oid, to: Oid): Promise<readonly FileChange[]> {
    const trees = await Promise.all([this.#objects.treeOf(from), this.#objects.treeOf(to)]);
    if (trees[0] === trees[1]) return [];
    await Promise.all(trees.map((tree) => this.#objects.settle(tree)));
    const compared = await this.#differ.compare(...trees);
    if (compared !== null) return parseDiff(compared);
    // A process of its own says what is wrong.
    return parseDiff((await this.#reading({ args: ['diff-tree', ...diffFormat, ...trees] })).stdout);
  }

  async patch(from: Oid, to: Oid, maxBytes: number): Promise<string> {
    const format = ['-p', '--text', '--no-color', '--no-ext-diff', '--no-textconv', '--no-renames', '--full-index'];
    await Promise.all([this.#objects.settle(from), this.#objects.settle(to)]);
    const { stdout } = await this.#reading({ args: ['diff-tree', '-r', ...format, from, to], maxBytes: maxBytes + 1 });
    if (stdout.length <= maxBytes) return stdout.toString();
    const whole = stdout.subarray(0, stdout.lastIndexOf(0x0a, maxBytes) + 1);
    return `${whole.toString()}[the diff is longer than ${String(maxBytes)} bytes; the rest is left out]\n`;
  }

  async firstParents(tip: Oid, not: readonly Oid[], line: string): Promise<readonly CommitInfo[]> {
    const format = ['-z', `--format=${commitFormat}`, '--encoding=UTF-8', '--extended-regexp', `--grep=${line}`];
    const input = [tip, ...not.map((oid) => `^${oid}`)].join('\n');
    const args = ['log', '--first-parent', '--stdin', ...format];
    return parseCommits((await this.#reading({ args, input: `${input}\n` })).stdout);
  }

  async logBlobs(tips: readonly Oid[], not: readonly Oid[], folder: string): Promise<readonly LoggedCommit[]> {
    if (tips.length === 0) return [];
    // Full history and sparse: commits that change nothing below the folder are listed too.
    const walk = ['--stdin', '--topo-order', '--full-history', '--sparse', '--diff-merges=first-parent'];
    const format = ['-z', '--raw', '--no-abbrev', '--no-renames', `--format=${logFormat}`, '--encoding=UTF-8'];
    const input = [...tips, ...not.map((oid) => `^${oid}`)].join('\n');
    const args = ['log', ...walk, ...format, '--', folder];
    return parseLog((await this.#reading({ args, input: `${input}\n` })).stdout);
  }

  // Work trees

  async checkOut(folder: string, index: string, tree: Oid): Promise<void> {
    await this.#objects.settle(tree);
    return this.#folders.checkOut(folder, index, tree);
  }

  async advanceFolder(folder: string, index: string, tree: Oid): Promise<void> {
    await this.#objects.settle(tree);
    return this.#folders.advance(folder, index, tree);
  }

  snapshotFolder(folder: string, index: string, exclude: readonly string[] = []): Promise<Oid> {
    return this.#folders.snapshot(folder, index, exclude);
  }

  changedFiles(folder: string, index: string): Promise<readonly string[]> {
    return this.#folders.changed(folder, index);
  }

  isUntouched(folder: string, index: string): Promise<boolean> {
    return this.#folders.isUntouched(folder, index);
  }

  cleanFolder(folder: string, index: string, keep: readonly string[]): Promise<void> {
    return this.#folders.clean(folder, index, keep);
  }

  askForeign(question: ForeignQuestion): Promise<ForeignAnswer> {
    return askForeign((call) => this.#reading(call), question);
  }

  addWorktree(folder: string, commit: Oid, reason: string): Promise<Result<{ readonly adminDir: string }>> {
    return this.#worktrees.add(folder, commit, reason);
  }

  removeWorktree(folder: string, adminDir: string): Promise<Result<void>> {
    return this.#worktrees.remove(folder, adminDir);
  }

  listWorktrees(): Promise<readonly LinkedWorktree[]> {
    return this.#worktrees.list();
  }

  // The person, and the end

  /** The person's side; `null` while the repository has no commit. */
  async openUser(): Promise<UserSide | null> {
    const { commonDir, gitDir, topLevel } = this.#place;
    const { head, ref } = await this.#headOf(gitDir);
    if (head === null) return null;
    return createUserSide({
      facts: { topLevel, head, branch: ref?.startsWith('refs/heads/') ? ref.slice('refs/heads/'.length) : null },
      machine: this.#machine,
      commonDir,
      mainHead: () => this.#headOf(commonDir),
      listWorktrees: () => this.listWorktrees(),
      mirror: async () => this.#private.mirror((await this.#headOf(gitDir)).head ?? head),
      readRef: (name) => this.readRef(name),
    });
  }

  async #headOf(gitDir: string): Promise<{ readonly head: Oid | null; readonly ref: string | null }> {
    if (!this.#place.reftable) return readHead(gitDir, (ref) => this.#refs.read(ref));
    const env = { ...this.#commonEnvironment(), GIT_DIR: gitDir };
    const ask = async (...args: string[]): Promise<string> => {
      const output = await this.#machine.run({ args, accept: [0, 1, 128] }, this.commonDir, env);
      return output.code === 0 ? output.stdout.toString().trim() : '';
    };
    const head = await ask('rev-parse', '--verify', '-q', 'HEAD');
    const ref = await ask('symbolic-ref', '-q', 'HEAD');
    return { head: head === '' ? null : parseOid(head), ref: ref === '' ? null : ref };
  }

  processes(): number {
    return this.#machine.started;
  }

  async close(): Promise<void> {
    await this.#mover.close();
    await this.#differ.close();
    await this.#objects.close();
    await this.#worktrees.close();
    await this.#machine.close();
    await this.#private.close();
  }
}

/**
 * The repository of a simulated run: objects and refs that outlast every crash. It names its blobs as git does; what it
 * merges conflicts by whole files.
 */
import { hash } from 'node:crypto';
import { failed, ok } from '../../src/failure.js';
import { parseOid, type Oid } from '../../src/issue.js';
import type {
  CommitInfo,
  FileChange,
  LoggedCommit,
  MergeOutcome,
  MoveResult,
  NewCommit,
  TreeFile,
  TreeTarget,
} from '../../src/worktree/git-types.js';
import { nameObject } from '../../src/worktree/objects.js';

type Tree = ReadonlyMap<string, TreeTarget>;

interface Commit extends CommitInfo {
  /** Longest way to a commit without parents. */
  readonly depth: number;
  /** When it was written, counted. */
  readonly order: number;
}

const folderMode = '040000';
const fileMode = '100644';

/** Objects and refs in memory. */
export class Store {
  readonly #blobs = new Map<Oid, Buffer>();
  readonly #trees = new Map<Oid, Tree>();
  readonly #commits = new Map<Oid, Commit>();
  readonly #refs = new Map<string, Oid>();
  readonly emptyTree = this.#writeTree(new Map());

  readRef(ref: string): Oid | null {
    return this.#refs.get(ref) ?? null;
  }

  listRefs(prefix: string): ReadonlyMap<string, Oid> {
    return new Map([...this.#refs].filter(([ref]) => ref.startsWith(prefix)).sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  moveRef(ref: string, to: Oid | null, from: Oid | null): MoveResult {
    const actual = this.readRef(ref);
    if (actual !== from) return failed({ kind: 'ref-moved', ref, expected: from, actual });
    if (to === null) this.#refs.delete(ref);
    else this.#refs.set(ref, to);
    return ok(undefined);
  }

  commit(oid: Oid): Commit {
    const found = this.#commits.get(oid);
    if (found === undefined) throw new Error(`no such commit: ${oid}`);
    return found;
  }

  tree(oid: Oid): Tree {
    const found = this.#trees.get(this.#commits.get(oid)?.tree ?? oid);
    if (found === undefined) throw new Error(`no such tree: ${oid}`);
    return found;
  }

  blob(oid: Oid): Buffer {
    const found = this.#blobs.get(oid);
    if (found === undefined) throw new Error(`no such blob: ${oid}`);
    return found;
  }

  readPath(from: Oid, path: string): TreeTarget | null {
    let at: TreeTarget = { mode: folderMode, oid: from };
    for (const name of path.split('/')) {
      if (at.mode !== folderMode) return null;
      const next = this.tree(at.oid).get(name);
      if (next === undefined) return null;
      at = next;
    }
    return at;
  }

  /** All files of a tree. */
  files(from: Oid, below = ''): TreeFile[] {
    return [...this.tree(from)].flatMap(([name, target]) =>
      target.mode === folderMode
        ? this.files(target.oid, `${below}${name}/`)
        : [{ ...target, path: `${below}${name}` }],
    );
  }

  /** The text of a file; `null`: it is not there. */
  text(from: Oid, path: string): string | null {
    const found = this.readPath(from, path);
    return found === null ? null : this.blob(found.oid).toString();
  }

  writeBlob(data: string | Uint8Array): Oid {
    const bytes = Buffer.from(data);
    const oid = nameObject('sha1', 'blob', bytes);
    this.#blobs.set(oid, bytes);
    return oid;
  }

  writeCommit({ tree, parents, message, at }: NewCommit): Oid {
    const oid = nameOf('commit', `${tree} ${parents.join(' ')} ${String(at)}\n${message}`);
    if (this.#commits.has(oid)) return oid;
    const depth = 1 + Math.max(0, ...parents.map((parent) => this.commit(parent).depth));
    const order = this.#commits.size;
    const text = `${message.trimEnd()}\n`;
    this.#commits.set(oid, { oid, tree, parents, message: text, committedAt: Math.floor(at / 1000), depth, order });
    return oid;
  }

  editTree(from: Oid, edits: ReadonlyMap<string, TreeTarget | null>): Oid {
    const entries = new Map(this.tree(from));
    const nested = new Map<string, Map<string, TreeTarget | null>>();
    for (const [path, target] of edits) {
      const cut = path.indexOf('/');
      if (cut < 0) {
        if (target === null) entries.delete(path);
        else entries.set(path, target);
        continue;
      }
      const name = path.slice(0, cut);
      const own = nested.get(name) ?? new Map<string, TreeTarget | null>();
      nested.set(name, own.set(path.slice(cut + 1), target));
    }
    for (const [name, own] of nested) {
      const before = entries.get(name);
      const oid = this.editTree(before?.mode === folderMode ? before.oid : this.emptyTree, own);
      if (oid !== this.emptyTree) entries.set(name, { mode: folderMode, oid });
      else if (before?.mode === folderMode) entries.delete(name);
    }
    return this.#writeTree(entries);
  }

  /** A tree of these files. */
  treeOf(files: ReadonlyMap<string, string>): Oid {
    const targets = [...files].map(([path, text]): [string, TreeTarget] => [path, this.#file(text)]);
    return this.editTree(this.emptyTree, new Map(targets));
  }

  isAncestor(ancestor: Oid, descendant: Oid): boolean {
    const { depth } = this.commit(ancestor);
    return this.#walk([descendant], (commit) => commit.depth > depth).has(ancestor);
  }

  notBehind(branches: readonly Oid[], tip: Oid): ReadonlySet<Oid> {
    const known = this.#walk([tip]);
    return new Set([...this.#walk(branches, ({ oid }) => !known.has(oid))].filter((oid) => !known.has(oid)));
  }

  mergeBase(left: Oid, right: Oid): Oid | null {
    const mine = this.#walk([left]);
    const common = [...this.#walk([right])].filter((oid) => mine.has(oid)).map((oid) => this.commit(oid));
    return common.sort((one, other) => other.depth - one.depth)[0]?.oid ?? null;
  }

  mergeTrees(ours: Oid, theirs: Oid): MergeOutcome {
    const base = this.mergeBase(ours, theirs);
    const files: string[] = [];
    const trees = [base ?? this.emptyTree, ours, theirs].map((oid) => ({ mode: folderMode, oid: this.#treeName(oid) }));
    const [common, mine, other] = trees;
    const merged = this.#merge({ common, mine, other, path: '' }, files);
    const tree = merged?.oid ?? this.emptyTree;
    return files.length === 0 ? { kind: 'clean', tree } : { kind: 'conflict', tree, files, messages: [] };
  }

  diffTrees(from: Oid, to: Oid): readonly FileChange[] {
    const before = new Map(this.files(from).map((file) => [file.path, file]));
    const after = new Map(this.files(to).map((file) => [file.path, file]));
    return [...new Set([...before.keys(), ...after.keys()])].sort().flatMap((path): FileChange[] => {
      const [old, now] = [before.get(path), after.get(path)];
      if (old?.oid === now?.oid) return [];
      return [
        {
          path,
          status: old === undefined ? 'added' : now === undefined ? 'deleted' : 'modified',
          oldMode: old?.mode ?? '000000',
          newMode: now?.mode ?? '000000',
          oldOid: old?.oid ?? null,
          newOid: now?.oid ?? null,
          insertions: now === undefined ? 0 : this.#lines(now.oid),
          deletions: old === undefined ? 0 : this.#lines(old.oid),
          binary: false,
        },
      ];
    });
  }

  firstParents(tip: Oid, not: readonly Oid[], line: string): readonly CommitInfo[] {
    const [known, pattern] = [this.#walk(not), new RegExp(line, 'm')];
    const found: CommitInfo[] = [];
    for (let at: Oid | undefined = tip; at !== undefined && !known.has(at); at = this.commit(at).parents[0])
      if (pattern.test(this.commit(at).message)) found.push(this.commit(at));
    return found;
  }

  logBlobs(tips: readonly Oid[], not: readonly Oid[], folder: string): readonly LoggedCommit[] {
    const known = this.#walk(not);
    const news = [...this.#walk(tips, (commit) => !known.has(commit.oid))].filter((oid) => !known.has(oid));
    return news
      .map((oid) => this.commit(oid))
      .sort((one, other) => other.order - one.order)
      .map(({ oid, message, parents: [parent] }) => ({
        commit: oid,
        message,
        changes: this.#changes(
          parent === undefined ? null : this.#folder(parent, folder),
          this.#folder(oid, folder),
        ).map(([path, blob]) => ({ path: `${folder}/${path}`, oid: blob })),
      }));
  }

  #changes(before: Oid | null, after: Oid | null): (readonly [string, Oid | null])[] {
    if (before === after) return [];
    const [was, is] = [before, after].map((oid) => (oid === null ? new Map<string, TreeTarget>() : this.tree(oid)));
    return [...new Set([...(was?.keys() ?? []), ...(is?.keys() ?? [])])].flatMap((name) => {
      const [old, now] = [was?.get(name), is?.get(name)];
      if (old?.oid === now?.oid) return [];
      const [oldFolder, newFolder] = [old, now].map((one) => (one?.mode === folderMode ? one.oid : null));
      if ((oldFolder ?? null) !== null || (newFolder ?? null) !== null) {
        const inner = this.#changes(oldFolder ?? null, newFolder ?? null);
        return inner.map(([path, oid]) => [`${name}/${path}`, oid] as const);
      }
      return [[name, now?.oid ?? null] as const];
    });
  }

  #folder(commit: Oid, path: string): Oid | null {
    return this.readPath(commit, path)?.oid ?? null;
  }

  #merge(
    sides: {
      readonly common: TreeTarget | undefined;
      readonly mine: TreeTarget | undefined;
      readonly other: TreeTarget | undefined;
      readonly path: string;
    },
    conflicts: string[],
  ): TreeTarget | undefined {
    const { common, mine, other, path } = sides;
    if (mine?.oid === other?.oid || other?.oid === common?.oid) return mine;
    if (mine?.oid === common?.oid) return other;
    if (mine?.mode === folderMode && other?.mode === folderMode) {
      const [base, left, right] = [common, mine, other].map((one) =>
        one?.mode === folderMode ? this.tree(one.oid) : new Map<string, TreeTarget>(),
      );
      const entries = new Map<string, TreeTarget>();
      for (const name of new Set([...(left?.keys() ?? []), ...(right?.keys() ?? [])])) {
        const inner = { common: base?.get(name), mine: left?.get(name), other: right?.get(name) };
        const merged = this.#merge({ ...inner, path: path === '' ? name : `${path}/${name}` }, conflicts);
        if (merged !== undefined) entries.set(name, merged);
      }
      return { mode: folderMode, oid: this.#writeTree(entries) };
    }
    conflicts.push(path);
    const [left, right] = [mine, other].map((one) => (one === undefined ? '' : this.blob(one.oid).toString()));
    return this.#file(`<<<<<<< ours\n${left ?? ''}=======\n${right ?? ''}>>>>>>> theirs\n`);
  }

  /** These commits and everything behind them, as far as `further` lets it. */
  #walk(from: readonly Oid[], further: (commit: Commit) => boolean = () => true): ReadonlySet<Oid> {
    const seen = new Set<Oid>(from);
    const open = [...from];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const commit = this.commit(next);
      if (!further(commit)) continue;
      for (const parent of commit.parents) {
        if (seen.has(parent)) continue;
        seen.add(parent);
        open.push(parent);
      }
    }
    return seen;
  }

  #treeName(oid: Oid): Oid {
    return this.#commits.get(oid)?.tree ?? oid;
  }

  #file(text: string): TreeTarget {
    return { mode: fileMode, oid: this.writeBlob(text) };
  }

  #lines(blob: Oid): number {
    return this.blob(blob).toString().split('\n').length - 1;
  }

  #writeTree(entries: Tree): Oid {
    const sorted = [...entries].sort(([one], [other]) => (one < other ? -1 : 1));
    const oid = nameOf('tree', sorted.map(([name, target]) => `${target.mode} ${name} ${target.oid}`).join('\n'));
    this.#trees.set(oid, new Map(sorted));
    return oid;
  }
}

function nameOf(kind: string, text: string): Oid {
  return parseOid(hash('sha1', `${kind}\n${text}`));
}

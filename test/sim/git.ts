/** Git as one life of giro sees it: every call is a step at which it may die. */
import { ok } from '../../src/failure.js';
import type { MoveResult, OpenedGit } from '../../src/worktree/git-types.js';
import type { Oid } from '../../src/issue.js';
import type { Life } from './process.js';
import type { Store } from './store.js';

/** What is told of the moves of refs. */
export interface RefWatch {
  /** How long the move takes before it happens: others may be faster. */
  readonly delayMs: (ref: string) => number;
  readonly moved: (ref: string, to: Oid | null, from: Oid | null) => void;
}

/** Opens the repository for one life. */
export function openStore(store: Store, life: Life, watch: RefWatch & { readonly head: Oid }): OpenedGit {
  const notSimulated = (): never => {
    throw new Error('not simulated');
  };
  return {
    commonDir: '/sim/.git',
    hash: 'sha1',
    version: '2.39.5',
    emptyTree: store.emptyTree,
    readRef: (ref) => life.read(() => store.readRef(ref)),
    listRefNames: (prefix) => life.read(() => [...store.listRefs(prefix).keys()]),
    listRefs: (prefix) => life.read(() => store.listRefs(prefix)),
    async moveRef(ref, to, from): Promise<MoveResult> {
      const delayMs = watch.delayMs(ref);
      if (delayMs > 0) await life.clock.sleep(delayMs);
      return life.step(() => {
        const moved = store.moveRef(ref, to, from);
        if (moved.ok) watch.moved(ref, to, from);
        return moved;
      });
    },
    readCommit: (oid) => life.read(() => store.commit(oid)),
    readTree: (oid) => life.read(() => [...store.tree(oid)].map(([name, target]) => ({ name, ...target }))),
    changedEntries: notSimulated,
    readBlobs: (oids) => life.read(() => oids.map((oid) => store.blob(oid))),
    readBlob: (oid) => life.read(() => store.blob(oid)),
    sizeOf: (oid) => life.read(() => store.blob(oid).length),
    readOnce: (commit, path) =>
      life.read(() => {
        const found = store.readPath(commit, path);
        return found === null ? null : store.blob(found.oid);
      }),
    readPath: (from, path) => life.read(() => store.readPath(from, path)),
    listTree: (tree) => life.read(() => store.files(tree)),
    writeBlob: (data) => life.read(() => store.writeBlob(data)),
    writeCommit: (commit) => life.step(() => store.writeCommit(commit)),
    editTree: (tree, edits) => life.read(() => store.editTree(tree, edits)),
    isAncestor: (ancestor, descendant) => life.read(() => store.isAncestor(ancestor, descendant)),
    notBehind: (branches, tip) => life.read(() => store.notBehind(branches, tip)),
    refsWith: notSimulated,
    refsBehind: notSimulated,
    mergeBase: (left, right) => life.read(() => store.mergeBase(left, right)),
    mergeTrees: (ours, theirs) => life.read(() => store.mergeTrees(ours, theirs)),
    diffTrees: (from, to) => life.read(() => store.diffTrees(from, to)),
    patch: notSimulated,
    firstParents: (tip, not, line) => life.read(() => store.firstParents(tip, not, line)),
    logBlobs: (tips, not, folder) => life.read(() => store.logBlobs(tips, not, folder)),
    checkOut: notSimulated,
    advanceFolder: notSimulated,
    snapshotFolder: notSimulated,
    changedFiles: notSimulated,
    isUntouched: notSimulated,
    cleanFolder: notSimulated,
    askForeign: notSimulated,
    addWorktree: notSimulated,
    removeWorktree: notSimulated,
    listWorktrees: () => life.read(() => []),
    whileAlone: async (work) => ok(await work()),
    processes: () => 0,
    close: () => Promise.resolve(),
    user: {
      topLevel: '/sim',
      head: watch.head,
      branch: 'main',
      headsOfWorktrees: () => life.read(() => [{ path: '/sim', ref: 'refs/heads/main', head: watch.head }]),
      uncommitted: () => life.read(() => []),
      logGraph: () => Promise.resolve(''),
      gitVersion: () => Promise.resolve('2.39.5'),
    },
  };
}

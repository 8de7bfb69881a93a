/** Proofs as git notes: a rendering of what stands in the commits, for tools that read notes (`refs/notes/giro`). */
import { failed, ok, type Result } from '../failure.js';
import type { Oid } from '../issue.js';
import type { Git } from '../worktree/git-types.js';

/** Where the notes are; git shows them with `git log --notes=giro`. */
export const notesRef = 'refs/notes/giro';

type NotesGit = Pick<
  Git,
  | 'readRef'
  | 'moveRef'
  | 'readCommit'
  | 'readPath'
  | 'readBlob'
  | 'writeBlob'
  | 'writeCommit'
  | 'editTree'
  | 'emptyTree'
>;

/** Reads the note of a commit; `null` when it has none. */
export async function readNote(git: NotesGit, commit: Oid): Promise<string | null> {
  const notes = await git.readRef(notesRef);
  if (notes === null) return null;
  const place = await placeOf(git, (await git.readCommit(notes)).tree, commit);
  return place === null ? null : (await git.readBlob(place.oid)).toString('utf8');
}

/** How often somebody else may write notes in the same moment. */
const tries = 10;

/**
 * Writes the notes that are missing, each text made when it is its turn: there may be thousands. A note that is there stays,
 * whatever it says: it may be evidence. Gives how many were written.
 */
export async function writeNotes(
  git: NotesGit,
  texts: ReadonlyMap<Oid, () => string>,
  at: number,
): Promise<Result<number, string>> {
  let refused = '';
  for (let count = 0; count < tries; count += 1) {
    const parent = await git.readRef(notesRef);
    const before = parent === null ? git.emptyTree : (await git.readCommit(parent)).tree;
    const edits = new Map<string, { readonly mode: string; readonly oid: Oid }>();
    for (const [commit, text] of texts) {
      if ((await placeOf(git, before, commit)) === null)
        edits.set(commit, { mode: '100644', oid: await git.writeBlob(text()) });
    }
    if (edits.size === 0) return ok(0);
    const commit = await git.writeCommit({
      tree: await git.editTree(before, edits),
      parents: parent === null ? [] : [parent],
      message: `Proofs of ${String(edits.size)} ${edits.size === 1 ? 'commit' : 'commits'}\n`,
      at,
    });
    const moved = await git.moveRef(notesRef, commit, parent);
    if (moved.ok) return ok(edits.size);
    refused = moved.failure.kind === 'ref-refused' ? moved.failure.message : `${notesRef} keeps moving`;
  }
  return failed(refused);
}

/** Where git keeps the note of a commit: with many notes, the first digits are folders. */
async function placeOf(git: NotesGit, tree: Oid, commit: Oid): Promise<{ readonly oid: Oid } | null> {
  for (let folders = 0; folders <= 3; folders += 1) {
    const parts = Array.from({ length: folders }, (_, index) => commit.slice(2 * index, 2 * index + 2));
    const path = [...parts, commit.slice(2 * folders)].join('/');
    const entry = await git.readPath(tree, path);
    if (entry !== null && entry.mode !== '040000') return { oid: entry.oid };
  }
  return null;
}

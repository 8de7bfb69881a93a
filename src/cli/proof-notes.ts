/** Proofs as notes: written when a run ends, and made anew where they are missing. */
import type { Oid, SpecSlug } from '../issue.js';
import { systemClock } from '../platform/clock.js';
import { renderStatement } from '../report/proof.js';
import { writeNotes } from '../store/notes.js';
import type { Proof } from '../record.js';
import { findValidated, landedProofs, readSpecProof } from '../store/proof.js';
import { checkpointOf } from '../store/trailers.js';
import type { Git } from '../worktree/git-types.js';

/** Writes the notes of all that a tip proves and that have none. */
export async function noteProofs(git: Git, spec: SpecSlug, tip: Oid): Promise<number> {
  const { validated, above } = await findValidated(git, tip);
  const read = validated === null ? null : await readSpecProof(git, { spec, commit: validated });
  const whole = read?.ok === true ? read.value : null;
  const isNewest = above.every(({ message }) => checkpointOf(message) !== 'integrated');
  const landed = whole !== null && isNewest ? whole.issues : await landedProofs(git, spec, await git.readCommit(tip));
  return writeProofs(git, whole === null ? landed : [whole, ...landed]);
}

/** Writes the notes of the given proofs that have none. They can be made at any time: a refusal is no failure of a run. */
export async function writeProofs(git: Git, proofs: readonly Proof[]): Promise<number> {
  const texts = new Map(proofs.map((proof) => [proof.commit, () => renderStatement(proof)]));
  const written = await writeNotes(git, texts, systemClock.now());
  return written.ok ? written.value : 0;
}

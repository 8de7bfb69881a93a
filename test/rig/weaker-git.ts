/** Git that misses one thing, to see that its absence is found. */
import { ok } from '../../src/failure.js';
import type { Oid } from '../../src/issue.js';
import type { OpenedGit } from '../../src/worktree/git-types.js';

/** Moves refs whatever they stood at. */
export function forcedMoves(git: OpenedGit): OpenedGit {
  const moveRef = git.moveRef.bind(git);
  const forced: OpenedGit['moveRef'] = async (ref, to) => moveRef(ref, to, await git.readRef(ref));
  return Object.assign(git, { moveRef: forced });
}

/** Puts an attempt on its branch only with what comes after it. */
export function lateAttempts(git: OpenedGit): OpenedGit {
  const moveRef = git.moveRef.bind(git);
  const skipped = new Map<Oid | null, Oid | null>();
  const late: OpenedGit['moveRef'] = async (ref, to, from) => {
    const seen = skipped.has(from) ? (skipped.get(from) ?? null) : from;
    const begins = to !== null && /^Giro-Checkpoint: working$/m.test((await git.readCommit(to)).message);
    if (!begins) return moveRef(ref, to, seen);
    skipped.set(to, seen);
    return ok(undefined);
  };
  return Object.assign(git, { moveRef: late });
}

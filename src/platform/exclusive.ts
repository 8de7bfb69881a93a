/** Taking over a lock file whose owner is dead, so that exactly one of any number of racers gets it. */
import { createHash, randomUUID } from 'node:crypto';
import { linkExclusive, readIfExists, writeAtomic } from './files.js';
import { removeTree } from './folders.js';
import { isAlive, ownIdentity, parseIdentity } from './identity.js';

/**
 * Replaces the file at `path`, if it still holds `expected`, by a file that holds `next`; true for the one who did it.
 *
 * Renaming the old file away and linking a new one would not do: a slow racer could rename the winner's file. So there is a
 * claim, a second file named after the old content. Whoever links it, alone, may look again and replace; `path` is never
 * absent in between. Invariants:
 * 1. Content `expected` is replaced only by the holder of its claim. (Its owner is dead and no content comes twice.)
 * 2. A claim has at most one living holder: it is made by `link`, and one left by a dead holder is taken over by this very
 *    function.
 */
export async function replaceExclusive(path: string, expected: Buffer, next: string): Promise<boolean> {
  const claim = `${path}.${createHash('sha256').update(expected).digest('hex').slice(0, 16)}`;
  if (!(await holdClaim(claim))) return false;
  try {
    const current = await readIfExists(path);
    if (current?.equals(expected) !== true) return false;
    await writeAtomic(path, next);
    return true;
  } finally {
    await removeTree(claim);
  }
}

async function holdClaim(claim: string): Promise<boolean> {
  const mine = JSON.stringify({ ...ownIdentity(), nonce: randomUUID() });
  if (await linkExclusive(claim, mine)) return true;
  const held = await readIfExists(claim);
  if (held === null) return false;
  const holder = parseIdentity(held.toString('utf8'));
  if (holder === null || isAlive(holder) !== 'dead') return false;
  return replaceExclusive(claim, held, mine);
}

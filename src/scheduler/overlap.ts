/**
 * Which Issues must not be worked on at the same time: what they touch or the resources they use overlap.
 *
 * Two globs overlap if the literal part of one (its path segments before the first with a wildcard) is, or lies under,
 * the literal part of the other. That is too careful on purpose: it never misses a shared file. An Issue that names
 * nothing is unknown, and is not held back.
 */
import { posix } from 'node:path';
import picomatch from 'picomatch';

/** What an Issue claims for itself while it is in progress. */
export interface Claim {
  readonly paths: readonly { readonly glob: string; readonly prefix: string }[];
  readonly resources: readonly string[];
}

/** Reads what an Issue names into a claim. */
export function claimOf(named: { readonly touches: readonly string[]; readonly resources: readonly string[] }): Claim {
  return { paths: named.touches.map((glob) => ({ glob, prefix: prefixOf(glob) })), resources: named.resources };
}

/** Tells whether two globs may match one file. */
export function globsOverlap(left: string, right: string): boolean {
  return prefixesOverlap(prefixOf(left), prefixOf(right));
}

/** Finds the first thing that two claims share, as the left one names it; `undefined` when they are disjoint. */
export function sharedBy(left: Claim, right: Claim): string | undefined {
  return (
    left.resources.find((resource) => right.resources.includes(resource)) ??
    left.paths.find(({ prefix }) => right.paths.some((other) => prefixesOverlap(prefix, other.prefix)))?.glob
  );
}

/** Leases that are held: the claims of the Issues in progress. */
export class Leases {
  readonly #held = new Set<Claim>();

  take(claim: Claim): void {
    if (claimsSomething(claim)) this.#held.add(claim);
  }

  giveBack(claim: Claim): void {
    this.#held.delete(claim);
  }

  /** Tells whether a claim could be taken now, or once `without` is given back. */
  isFree(claim: Claim, without?: Claim): boolean {
    if (!claimsSomething(claim)) return true;
    for (const held of this.#held) if (held !== without && sharedBy(held, claim) !== undefined) return false;
    return true;
  }
}

function claimsSomething(claim: Claim): boolean {
  return claim.paths.length > 0 || claim.resources.length > 0;
}

/** Each ends in a slash, so that whole segments are compared: `src/a/` is no beginning of `src/ab/`. */
function prefixesOverlap(left: string, right: string): boolean {
  return left.startsWith(right) || right.startsWith(left);
}

/** Literal beginning of a glob as a folder with a closing slash; empty for the whole repository. */
function prefixOf(glob: string): string {
  const { base, negated } = picomatch.scan(glob);
  // Everything but something is nearly everything, and a backslash quotes or separates: both are read as the wider claim.
  const literal = negated ? '' : base.includes('\\') ? base.slice(0, base.indexOf('\\')).replace(/[^/]*$/, '') : base;
  const path = posix.normalize(`/${literal}`).replace(/\/$/, '').slice(1);
  return isOutside(literal) || path === '' ? '' : `${path}/`;
}

/** A path that climbs out of the repository says nothing that can be compared. */
function isOutside(literal: string): boolean {
  return posix.normalize(literal).startsWith('..');
}

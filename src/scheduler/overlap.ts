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
  readonly paths: readonly ClaimedPath[];
  readonly resources: readonly string[];
}

interface ClaimedPath {
  readonly glob: string;
  /** The literal part, as a folder with a closing slash; empty for the whole repository. */
  readonly prefix: string;
  /** The prefix and every folder above it, up to the whole repository. */
  readonly folders: readonly string[];
}

/** Reads what an Issue names into a claim. */
export function claimOf(named: { readonly touches: readonly string[]; readonly resources: readonly string[] }): Claim {
  const paths = named.touches.map((glob) => {
    const prefix = prefixOf(glob);
    return { glob, prefix, folders: foldersOf(prefix) };
  });
  return { paths, resources: named.resources };
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

/** Leases that are held: the claims of the Issues in progress. Counted by folder, since every ready Issue asks at every tick. */
export class Leases {
  readonly #held = new Set<Claim>();
  readonly #prefixes = new Counts();
  /** Every folder that is, or holds, a held prefix. */
  readonly #folders = new Counts();
  readonly #resources = new Counts();

  take(claim: Claim): void {
    if (!claimsSomething(claim) || this.#held.has(claim)) return;
    this.#held.add(claim);
    this.#count(claim, 1);
  }

  giveBack(claim: Claim): void {
    if (this.#held.delete(claim)) this.#count(claim, -1);
  }

  /** Tells whether a claim could be taken now. */
  isFree(claim: Claim): boolean {
    return (
      !claim.resources.some((resource) => this.#resources.has(resource)) &&
      !claim.paths.some(
        ({ prefix, folders }) => this.#folders.has(prefix) || folders.some((folder) => this.#prefixes.has(folder)),
      )
    );
  }

  /** Tells whether a claim could be taken once another is given back. */
  isFreeWithout(claim: Claim, other: Claim): boolean {
    if (this.isFree(claim)) return true;
    for (const held of this.#held) if (held !== other && sharedBy(held, claim) !== undefined) return false;
    return true;
  }

  #count(claim: Claim, change: 1 | -1): void {
    for (const resource of claim.resources) this.#resources.add(resource, change);
    for (const { prefix, folders } of claim.paths) {
      this.#prefixes.add(prefix, change);
      for (const folder of folders) this.#folders.add(folder, change);
    }
  }
}

class Counts {
  readonly #counts = new Map<string, number>();

  has(name: string): boolean {
    return this.#counts.has(name);
  }

  add(name: string, change: 1 | -1): void {
    const count = (this.#counts.get(name) ?? 0) + change;
    if (count === 0) this.#counts.delete(name);
    else this.#counts.set(name, count);
  }
}

/** Tells whether a claim names anything. */
export function claimsSomething(claim: Claim): boolean {
  return claim.paths.length > 0 || claim.resources.length > 0;
}

/** Each ends in a slash, so that whole segments are compared: `src/a/` is no beginning of `src/ab/`. */
function prefixesOverlap(left: string, right: string): boolean {
  return left.startsWith(right) || right.startsWith(left);
}

function prefixOf(glob: string): string {
  const { base, negated } = picomatch.scan(glob);
  // Everything but something is nearly everything, and a backslash quotes or separates: both are read as the wider claim.
  const literal = negated ? '' : base.includes('\\') ? base.slice(0, base.indexOf('\\')).replace(/[^/]*$/, '') : base;
  const path = posix.normalize(`/${literal}`).replace(/\/$/, '').slice(1);
  return isOutside(literal) || path === '' ? '' : `${path}/`;
}

function foldersOf(prefix: string): readonly string[] {
  const segments = prefix.split('/').slice(0, -1);
  return ['', ...segments.map((_, index) => `${segments.slice(0, index + 1).join('/')}/`)];
}

/** A path that climbs out of the repository says nothing that can be compared. */
function isOutside(literal: string): boolean {
  return posix.normalize(literal).startsWith('..');
}

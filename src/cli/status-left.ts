/** What `giro status` tells of what a giro that was killed left running. */
import type { SpecSlug } from '../issue.js';
import { tellLeft, type LeftProcess } from './leftovers.js';

/** Adds what is left of a Spec. While a giro runs it, its processes are its own to tell. */
export function withLeft<T extends { readonly running: object | null }>(
  about: T,
  find: () => readonly LeftProcess[],
): T & { readonly left?: readonly LeftProcess[] } {
  const left = about.running === null ? find() : [];
  return left.length === 0 ? about : { ...about, left };
}

/** Says what is left, and what ends it. */
export function leftLines(spec: SpecSlug, left: readonly LeftProcess[] = []): readonly string[] {
  if (left.length === 0) return [];
  return [`left running by a giro that was killed: ${tellLeft(left)}`, `  it is ended by: giro implement ${spec}`];
}

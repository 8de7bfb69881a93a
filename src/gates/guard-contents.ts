/** Reads changed files for the guards: each at most once, none that is too large. */
import type { Oid } from '../issue.js';

/** Where blobs come from. */
export interface BlobSource {
  sizeOf(oid: Oid): Promise<number>;
  readBlob(oid: Oid): Promise<Buffer>;
}

/** What a file holds. */
export type Content =
  | { readonly kind: 'absent' }
  | { readonly kind: 'text'; readonly text: string; readonly bytes: number }
  | { readonly kind: 'binary'; readonly bytes: number }
  /** Too large to be read. */
  | { readonly kind: 'large'; readonly bytes: number }
  | { readonly kind: 'link' }
  | { readonly kind: 'submodule' };

/** Larger files are not read: nothing a person writes is. */
export const readLimit = 8 * 1024 * 1024;

/** As git decides. */
const bytesLookedAt = 8000;

const absent: Content = { kind: 'absent' };

/** The contents of one work. */
export class Contents {
  readonly #blobs: BlobSource;

  constructor(blobs: BlobSource) {
    this.#blobs = blobs;
  }

  /** What a blob holds, by the mode it has in its tree. */
  async of(oid: Oid | null, mode: string): Promise<Content> {
    if (oid === null) return absent;
    if (mode === '160000') return { kind: 'submodule' };
    if (mode === '120000') return { kind: 'link' };
    const size = await this.#blobs.sizeOf(oid);
    if (size > readLimit) return { kind: 'large', bytes: size };
    const data = await this.#blobs.readBlob(oid);
    if (data.subarray(0, bytesLookedAt).includes(0)) return { kind: 'binary', bytes: size };
    return { kind: 'text', text: data.toString('utf8'), bytes: size };
  }

  async sizeOf(oid: Oid): Promise<number> {
    return this.#blobs.sizeOf(oid);
  }
}

/** The text of a content; empty for everything that is none. */
export function textOf(content: Content | null): string {
  return content?.kind === 'text' ? content.text : '';
}

/** Makes the function from places in a text to numbers of lines. */
export function linesIn(text: string): (index: number) => number {
  const ends: number[] = [];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) ends.push(at);
  return (index) => countBelow(ends, index) + 1;
}

/** How many of some ascending numbers are less than another. */
export function countBelow(sorted: readonly number[], value: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? 0) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

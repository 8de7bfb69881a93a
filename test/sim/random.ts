/** Chance that repeats: every draw is a function of the seed and of what it is drawn for, never of when. */

/** Draws for one seed. */
export class Chance {
  readonly #seed: number;

  constructor(seed: number) {
    this.#seed = seed;
  }

  /** Between 0 and 1, always the same for these keys. */
  share(...keys: readonly (string | number)[]): number {
    let hash = Math.imul(this.#seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0;
    for (const character of keys.join('\0')) {
      hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
    }
    hash = Math.imul(hash ^ (hash >>> 16), 0x7feb352d) >>> 0;
    hash = Math.imul(hash ^ (hash >>> 15), 0x846ca68b) >>> 0;
    return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
  }

  /** True in this share of all draws. */
  is(share: number, ...keys: readonly (string | number)[]): boolean {
    return this.share(...keys) < share;
  }

  /** A whole number, both ends included. */
  whole(least: number, most: number, ...keys: readonly (string | number)[]): number {
    return least + Math.floor(this.share(...keys) * (most - least + 1));
  }

  /** One of several, by weight. */
  pick<T extends string>(weights: Readonly<Record<T, number>>, ...keys: readonly (string | number)[]): T {
    const all = Object.entries<number>(weights);
    let left = this.share(...keys) * all.reduce((sum, [, weight]) => sum + weight, 0);
    const found = all.find(([, weight]) => (left -= weight) < 0) ?? all.at(-1);
    return found?.[0] as T;
  }
}

/** A map of which every change is a new one that shares nearly all of the old one: many values, changed one at a time. */

/** A map that never changes; its keys are those that it was made with. */
export class SharedMap<K, V> implements ReadonlyMap<K, V> {
  /** Where the value of each key is; one and the same in all maps that come from one. */
  readonly #places: ReadonlyMap<K, number>;
  readonly #blocks: readonly (readonly V[])[];

  private constructor(places: ReadonlyMap<K, number>, blocks: readonly (readonly V[])[]) {
    this.#places = places;
    this.#blocks = blocks;
  }

  /** Makes a map of entries; of equal keys the last counts. */
  static of<K, V>(entries: Iterable<readonly [K, V]>): SharedMap<K, V> {
    const map = new Map(entries);
    const values = [...map.values()];
    const blocks: (readonly V[])[] = [];
    for (let at = 0; at < values.length; at += blockSize) blocks.push(values.slice(at, at + blockSize));
    return new SharedMap(new Map([...map.keys()].map((key, at) => [key, at])), blocks);
  }

  /** The same with another value of one key; itself when it has no such key. */
  with(key: K, value: V): SharedMap<K, V> {
    const place = this.#places.get(key);
    if (place === undefined) return this;
    const at = Math.floor(place / blockSize);
    const block = (this.#blocks[at] ?? []).with(place % blockSize, value);
    return new SharedMap(this.#places, this.#blocks.with(at, block));
  }

  get size(): number {
    return this.#places.size;
  }

  get(key: K): V | undefined {
    const place = this.#places.get(key);
    return place === undefined ? undefined : this.#blocks[Math.floor(place / blockSize)]?.[place % blockSize];
  }

  has(key: K): boolean {
    return this.#places.has(key);
  }

  keys(): MapIterator<K> {
    return this.#places.keys();
  }

  *values(): MapIterator<V> {
    for (const block of this.#blocks) yield* block;
  }

  *entries(): MapIterator<[K, V]> {
    const values = this.values();
    for (const key of this.keys()) {
      const next = values.next();
      if (next.done !== true) yield [key, next.value];
    }
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.entries();
  }

  forEach(visit: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
    for (const [key, value] of this) visit(value, key, this);
  }
}

/** How many values are copied when one changes, beside the list of blocks. */
const blockSize = 32;

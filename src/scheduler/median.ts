/** Medians, of a list and of what is measured as it goes. */

/** Computes the median; `undefined` of nothing. */
export function median(values: readonly number[]): number | undefined {
  return middle([...values].sort((left, right) => left - right));
}

/** Median of everything measured so far. */
export class RunningMedian {
  readonly #sorted: number[] = [];

  add(value: number): void {
    let low = 0;
    let high = this.#sorted.length;
    while (low < high) {
      const between = (low + high) >>> 1;
      if ((this.#sorted[between] ?? value) <= value) low = between + 1;
      else high = between;
    }
    this.#sorted.splice(low, 0, value);
  }

  get value(): number | undefined {
    return middle(this.#sorted);
  }
}

function middle(sorted: readonly number[]): number | undefined {
  const upper = sorted[sorted.length >>> 1];
  const lower = sorted[(sorted.length - 1) >>> 1];
  return upper === undefined || lower === undefined ? undefined : (lower + upper) / 2;
}

/** Suggestions for names that were mistyped. */

const longestCompared = 120;

/** Finds the allowed names closest to a mistyped one, best first, at most three; none when nothing is close. */
export function nearest<T extends string>(name: string, allowed: readonly T[]): readonly T[] {
  const typed = name.toLowerCase().slice(0, longestCompared);
  const limit = Math.max(1, Math.floor(typed.length / 3));
  return allowed
    .map((candidate) => ({ candidate, distance: distanceTo(typed, candidate.toLowerCase()) }))
    .filter(({ distance }) => distance <= limit)
    .sort((left, right) => left.distance - right.distance)
    .slice(0, 3)
    .map(({ candidate }) => candidate);
}

/** A long name with the right beginning counts as close: `depends` for `depends-on`. */
function distanceTo(typed: string, candidate: string): number {
  if (typed.length >= 3 && (candidate.startsWith(typed) || typed.startsWith(candidate))) return 1;
  return editDistance(typed, candidate.slice(0, longestCompared));
}

/** Counts insertions, deletions, replacements and swaps of neighbours between two texts. */
function editDistance(left: string, right: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= right.length; column += 1) {
      const same = left[row - 1] === right[column - 1];
      const swapped = left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1];
      current.push(
        Math.min(
          at(last, column) + 1,
          at(current, column - 1) + 1,
          at(last, column - 1) + (same ? 0 : 1),
          swapped ? at(beforeLast, column - 2) + 1 : Infinity,
        ),
      );
    }
    beforeLast = last;
    last = current;
  }
  return at(last, right.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Infinity;
}

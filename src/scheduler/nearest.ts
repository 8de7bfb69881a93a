/** The ids a person probably meant. */
import { compareIssueIds, issueNumber } from '../issue.js';
import type { IssueId } from '../issue.js';

const shown = 3;

/** Finds up to three known ids close to a mistyped one, the closest first. */
export function nearestIds(typed: string, known: readonly IssueId[]): readonly IssueId[] {
  const wanted = typed.toLowerCase();
  const number = Number.parseInt(wanted, 10);
  const limit = Math.max(2, Math.floor(wanted.length / 3));
  return known
    .map((id) => ({ id, distance: issueNumber(id) === number ? 0 : editDistance(wanted, id, limit) }))
    .filter(({ distance }) => distance <= limit)
    .sort((left, right) => left.distance - right.distance || compareIssueIds(left.id, right.id))
    .slice(0, shown)
    .map(({ id }) => id);
}

/** Edits between two words; anything above the limit counts as above it. */
function editDistance(left: string, right: string, limit: number): number {
  if (Math.abs(left.length - right.length) > limit) return limit + 1;
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (const [index, letter] of [...left].entries()) {
    const next = [index + 1];
    let before = index + 1;
    for (const [column, other] of [...right].entries()) {
      before = Math.min(
        before + 1,
        (row[column + 1] ?? Infinity) + 1,
        (row[column] ?? Infinity) + (letter === other ? 0 : 1),
      );
      next.push(before);
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

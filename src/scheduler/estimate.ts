/** How long Issues are expected to take. */
import type { IssueId } from '../issue.js';
import { median } from './median.js';

/**
 * Estimates from what Issues took before: own history, else the median of the others, else 1 each.
 *
 * The median keeps one unit in the graph: 1 beside milliseconds would make every Issue without history free.
 */
export function estimateFrom(history: ReadonlyMap<IssueId, number>): (id: IssueId) => number {
  const usable = new Map([...history].filter(([, ms]) => Number.isFinite(ms) && ms > 0));
  const otherwise = median([...usable.values()]) ?? 1;
  return (id) => usable.get(id) ?? otherwise;
}

/** How long the Issues of a Spec are expected to take, from what History tells of their earlier attempts. */
import type { IssueId } from '../issue.js';
import { estimateFrom } from '../scheduler/estimate.js';
import { median } from '../scheduler/median.js';
import { agentDurations, type HistoryEntry } from '../store/history.js';

/**
 * Estimates each Issue by its typical attempt, else by that of the others; integrated ones count among those.
 *
 * Not by the sum: how many attempts are still to come nobody knows, neither of an Issue that has had some nor of one
 * that has had none. Other Specs are not read: they could only change the one number that stands for "unknown".
 */
export function estimatesOf(histories: ReadonlyMap<IssueId, readonly HistoryEntry[]>): (id: IssueId) => number {
  const typical = new Map<IssueId, number>();
  for (const [id, entries] of histories) {
    const ms = median(agentDurations(entries));
    if (ms !== undefined) typical.set(id, ms);
  }
  return estimateFrom(typical);
}

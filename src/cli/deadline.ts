/** When a run is to be over, from what was typed. Loaded with the command line, so it is kept small. */
import { parseDuration } from '../platform/duration.js';

/** When a run is to be over, and how that was typed. */
export interface Deadline {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** When it was asked for. */
  readonly from: number;
  readonly shown: string;
}

/** Reads `07:00`: the next time that a clock on the wall shows it; `undefined`: it is no such time. */
export function deadlineUntil(text: string, now: number): Deadline | undefined {
  const [, hours, minutes] = /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(text) ?? [];
  if (hours === undefined || minutes === undefined) return undefined;
  const at = new Date(now);
  at.setHours(Number(hours), Number(minutes), 0, 0);
  // By the calendar and not by 24 hours: days have 23 or 25 of them twice a year.
  if (at.getTime() <= now) at.setDate(at.getDate() + 1);
  return { at: at.getTime(), from: now, shown: `--until ${text}` };
}

/** Reads `6h`; `undefined`: it is no duration. */
export function deadlineFor(text: string, now: number): Deadline | undefined {
  const ms = parseDuration(text);
  return ms === undefined ? undefined : { at: now + ms, from: now, shown: `--for ${text}` };
}

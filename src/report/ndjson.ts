/** Events as NDJSON: the format of `--json` and of the run's own log, described in `docs/events.md`. */
import type { Event } from '../event.js';

// JSON leaves these as they are; a terminal or a line reader that is shown the raw stream must not act on them.
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Writes an event as one line of JSON, without a line end: the common fields first, nothing in it but plain text. */
export function ndjsonOf(event: Event): string {
  const { v, at, run, type, ...rest } = event;
  return JSON.stringify({ v, at, run, type, ...rest }).replace(unsafe, escaped);
}

/** The same character as JSON escapes, one for each UTF-16 unit. */
function escaped(character: string): string {
  return Array.from({ length: character.length }, (_, index) => {
    return `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`;
  }).join('');
}

/** Durations as people write them in files and read them on the screen. */

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const longestMs = 7 * 86_400_000;

/** Shows what a duration looks like, for messages. */
export const durationExamples = 'write it with units, such as "30s", "5m", "1h30m" or "1d"';

/** Reads `500ms`, `30s`, `5m`, `2h`, `1h30m`, `1d`; `undefined` unless it is more than nothing and at most seven days. */
export function parseDuration(text: string): number | undefined {
  if (!/^(?:\d{1,10}d)?(?:\d{1,10}h)?(?:\d{1,10}m(?!s))?(?:\d{1,10}s)?(?:\d{1,10}ms)?$/.test(text)) return undefined;
  let totalMs = 0;
  for (const [, count, unit] of text.matchAll(/(\d+)(ms|[smhd])/g)) {
    totalMs += Number(count) * (unitMs[unit ?? ''] ?? 0);
  }
  return totalMs > 0 && totalMs <= longestMs ? totalMs : undefined;
}

/** Shows a duration as people read it: `850 ms`, `12.4 s`, `4m12s`, `2h05m`, `1d04h`. */
export function formatDuration(durationMs: number): string {
  const ms = Math.max(0, Math.round(durationMs));
  if (ms < 1_000) return `${ms} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m${twoDigits(seconds % 60)}s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 1_440) return `${Math.floor(minutes / 60)}h${twoDigits(minutes % 60)}m`;
  const hours = Math.round(minutes / 60);
  return `${Math.floor(hours / 24)}d${twoDigits(hours % 24)}h`;
}

/** Reads back what `formatDuration` shows, as exactly as that says it; `undefined`: it is something else. */
export function readDuration(shown: string): number | undefined {
  if (!/^(?:\d+(?:\.\d)? m?s|\d+m\d\ds|\d+h\d\dm|\d+d\d\dh)$/.test(shown)) return undefined;
  return [...shown.matchAll(/(\d+(?:\.\d)?) ?(ms|[smhd])/g)].reduce(
    (totalMs, [, count, unit]) => totalMs + Math.round(Number(count) * (unitMs[unit ?? ''] ?? 0)),
    0,
  );
}

/** Shows a limit as a person set it: `30m`, not `30m00s`. */
export function formatLimit(limitMs: number): string {
  const unit = limitUnits.find(([, size]) => limitMs >= size && limitMs % size === 0);
  return unit === undefined ? `${String(limitMs)} ms` : `${String(limitMs / unit[1])}${unit[0]}`;
}

const limitUnits = [
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatDuration, parseDuration, readDuration } from '../../src/platform/duration.js';

test.each([
  ['500ms', 500],
  ['30s', 30_000],
  ['5m', 300_000],
  ['2h', 7_200_000],
  ['1h30m', 5_400_000],
  ['1d', 86_400_000],
  ['7d', 604_800_000],
  ['1m500ms', 60_500],
  ['0h1m', 60_000],
])('%s is %d ms', (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});

test.each([
  '',
  '30',
  '0s',
  '0m0s',
  '-5m',
  '1.5h',
  '5 m',
  ' 5m',
  '5M',
  '30m1h',
  '1h1h',
  'm',
  '8d',
  '7d1ms',
  '1e3s',
  '99999999999s',
  '5min',
  'NaN',
  '5m\n',
])('%j is no duration', (text) => {
  expect(parseDuration(text)).toBeUndefined();
});

test.each([
  [0, '0 ms'],
  [850, '850 ms'],
  [999.6, '1.0 s'],
  [12_400, '12.4 s'],
  [59_949, '59.9 s'],
  [59_950, '1m00s'],
  [252_000, '4m12s'],
  [3_599_600, '1h00m'],
  [7_500_000, '2h05m'],
  [100_800_000, '1d04h'],
  [-5, '0 ms'],
])('%d ms is shown as %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

test('every sum of units is read back', () => {
  const part = fc.integer({ min: 0, max: 23 });
  fc.assert(
    fc.property(part, part, part, part, (h, m, s, ms) => {
      const total = h * 3_600_000 + m * 60_000 + s * 1_000 + ms;
      expect(parseDuration(`${h}h${m}m${s}s${ms}ms`)).toBe(total === 0 ? undefined : total);
    }),
  );
});

test('what is shown is read back as exactly as it says, and shows the same again', () => {
  fc.assert(
    fc.property(fc.nat(10 * 86_400_000), (ms) => {
      const read = readDuration(formatDuration(ms));
      if (read === undefined) throw new Error('not read');
      expect(formatDuration(read)).toBe(formatDuration(ms));
      // What is cut off is less than one of the smallest unit shown.
      expect(Math.abs(read - ms)).toBeLessThanOrEqual(Math.max(50, ms / 24));
    }),
  );
});

test.each(['', 'by hand', 'interrupted', '4m', '4m 12s', '12.4s', '12.45 s', '-5 ms', '5 ms\n', '1h02m03s'])(
  '%j is nothing that is shown',
  (text) => {
    expect(readDuration(text)).toBeUndefined();
  },
);

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addUsage, formatSpending, formatUsage, noSpending, readUsage, type Usage } from '../src/usage.js';

const usage = fc.record({
  costUsd: fc.option(fc.double({ min: 0, max: 100_000, noNaN: true })),
  tokens: fc.option(fc.nat({ max: 2_000_000_000 })),
});

test.each<[Usage, string]>([
  [{ costUsd: 0.31, tokens: 12_300 }, '$0.31 · 12.3k tokens'],
  [{ costUsd: 0.3141592, tokens: 845 }, '$0.3142 · 845 tokens'],
  [{ costUsd: 0, tokens: 0 }, '$0.00 · 0 tokens'],
  [{ costUsd: 0.00001, tokens: 1_234_567 }, '$0.0001 · 1.3M tokens'],
  [{ costUsd: 12.5, tokens: null }, '$12.50'],
  [{ costUsd: null, tokens: 999_990 }, 'cost unknown · 1.0M tokens'],
  [{ costUsd: null, tokens: null }, 'cost unknown'],
])('%j is shown as %s', (one, shown) => {
  expect(formatUsage(one).join(' · ')).toBe(shown);
});

describe('what is written into the ledger', () => {
  test('is read back as no less than it was, and unknown stays unknown', () => {
    fc.assert(
      fc.property(usage, (one) => {
        const read = readUsage(formatUsage(one));
        expect(read === null).toBe(false);
        expect(read?.costUsd === null).toBe(one.costUsd === null);
        expect(read?.tokens === null).toBe(one.tokens === null);
        expect(read?.costUsd ?? 0).toBeGreaterThanOrEqual((one.costUsd ?? 0) - 1e-7);
        expect(read?.costUsd ?? 0).toBeLessThan((one.costUsd ?? 0) + 0.00011);
        expect(read?.tokens ?? 0).toBeGreaterThanOrEqual(one.tokens ?? 0);
      }),
    );
  });

  test('does not change by being read and written again', () => {
    fc.assert(
      fc.property(usage, (one) => {
        const shown = formatUsage(one);
        expect(formatUsage(readUsage(shown) ?? { costUsd: -1, tokens: -1 })).toEqual(shown);
      }),
    );
  });

  test('a line that tells of no call gives none; of several amounts the last counts', () => {
    expect(readUsage(['exit 0', '12.4 s', '48 tests'])).toBeNull();
    expect(readUsage(['judge ($9.00)', '$0.10', '41 s', '$0.02'])).toEqual({ costUsd: 0.02, tokens: null });
  });
});

test('a sum says what of it is unknown', () => {
  const sum = (...all: readonly Usage[]): string => formatSpending(all.reduce(addUsage, noSpending));
  expect(sum()).toBe('');
  expect(sum({ costUsd: 0.1, tokens: 10 }, { costUsd: 0.2, tokens: 20 })).toBe('$0.30 · 30 tokens');
  expect(sum({ costUsd: 0.1, tokens: null }, { costUsd: null, tokens: null })).toBe('at least $0.10');
  expect(sum({ costUsd: null, tokens: 5 })).toBe('cost unknown · 5 tokens');
});

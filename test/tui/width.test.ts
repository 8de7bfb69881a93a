import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cellsOf, fit, truncate, wrap } from '../../src/tui/width.js';

const titles = ['⏳ 修复登录', '👩‍👩‍👧‍👦 family', 'e\u0301', 'x'.repeat(200), '登录'.repeat(100), 'ab👩‍👩‍👧‍👦', 'ｶﾞ', ''];
const texts = fc.oneof(
  fc.constantFrom(...titles),
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: 'binary' }),
  fc.stringMatching(/^[a-z ]{0,40}$/),
);

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
const clustersOf = (text: string): number => [...segmenter.segment(text)].length;

test('a text is cut by the cells it takes, and says so', () => {
  expect(truncate('⏳ 修复登录', 8, '…')).toBe('⏳ 修复…');
  expect(truncate('⏳ 修复登录', 11, '…')).toBe('⏳ 修复登录');
  expect(truncate('abcdef', 4, '…')).toBe('abc…');
  expect(truncate('abc def', 5, '…')).toBe('abc…');
  expect(truncate('e\u0301e\u0301e\u0301', 2, '~')).toBe('e\u0301~');
  expect(truncate('登录', 1, '…')).toBe('…');
  expect(truncate('登录', 0, '…')).toBe('');
});

test('whatever a text is, cut and filled it takes exactly the cells it is given', () => {
  fc.assert(
    fc.property(texts, fc.nat(50), (text, cells) => {
      expect(cellsOf(truncate(text, cells, '…'))).toBeLessThanOrEqual(cells);
      expect(cellsOf(fit(text, cells, '…'))).toBe(cells);
    }),
  );
});

test('whatever a line is, its pieces are the line, and each fits where a cluster can', () => {
  fc.assert(
    fc.property(texts, fc.integer({ min: 2, max: 50 }), (text, cells) => {
      const pieces = wrap(text, cells);
      expect(pieces.join('')).toBe(text);
      for (const piece of pieces) if (clustersOf(piece) > 1) expect(cellsOf(piece)).toBeLessThanOrEqual(cells);
    }),
  );
});

test('a line of one wide character in a window of one cell ends', () => {
  expect(wrap('登录', 1)).toEqual(['登', '录']);
  expect(wrap('', 10)).toEqual(['']);
});

import { describe, expect, test } from 'vitest';
import { placeAtLine, placeIn, quote, renderDiagnostics } from '../../src/config/diagnostic.js';
import { nearest } from '../../src/config/nearest.js';

const source = (text: string) => ({ file: 'a.md', text });

describe('places', () => {
  test('an offset becomes line and column, whatever the line ends', () => {
    for (const end of ['\n', '\r\n']) {
      const text = ['one', 'two three', ''].join(end);
      expect(placeIn(source(text), text.indexOf('three'), 5)).toEqual({
        file: 'a.md',
        line: 2,
        column: 5,
        length: 5,
        source: 'two three',
      });
      expect(placeAtLine(source(text), 2, 5)).toMatchObject({ line: 2, column: 5, source: 'two three' });
    }
  });

  test('a byte-order mark takes no column, and a length never leaves its line', () => {
    expect(placeIn(source('\uFEFFabc\ndef'), 2, 99)).toEqual({
      file: 'a.md',
      line: 1,
      column: 2,
      length: 2,
      source: 'abc',
    });
    expect(placeIn(source('ab'), 99)).toMatchObject({ line: 1, column: 3, length: 1 });
    expect(placeIn(source('ab\n'), 2)).toMatchObject({ line: 1, column: 3 });
    expect(placeIn(source('ab\n'), 3)).toMatchObject({ line: 2, column: 1, source: '' });
    expect(placeIn(source(''), 0)).toMatchObject({ line: 1, column: 1, source: '' });
  });
});

describe('rendering', () => {
  test('tabs, wide and invisible characters keep the underline below what it marks', () => {
    const text = 'a:\t\u001b[31m日本\u202ekey = 1';
    const found = {
      ...placeIn(source(text), text.indexOf('key'), 3),
      message: 'bad \u001b]0;x\u0007',
      hint: 'one\ntwo\tthree',
    };
    expect(renderDiagnostics([found])).toMatchInlineSnapshot(`
      "a.md:1:12: bad \\u{1b}]0;x\\u{7}
        1 | a:  \\u{1b}[31m日本\\u{202e}key = 1
          |                           ^^^
        fix: one
             two three

      1 problem in 1 file
      "
    `);
  });

  test('a place without a line, and files and problems are counted', () => {
    const list = [
      { file: 'x\ny.md', message: 'is missing' },
      { file: 'b.md', line: 1, column: 1, source: '', message: 'empty' },
    ];
    expect(renderDiagnostics(list)).toBe('x⏎y.md: is missing\n\nb.md:1:1: empty\n\n2 problems in 2 files\n');
    expect(renderDiagnostics([])).toBe('');
  });

  test('a very long line is cut around its mark', () => {
    const text = `${'x'.repeat(500_000)}key${'y'.repeat(500_000)}`;
    const rendered = renderDiagnostics([{ ...placeIn(source(text), 500_000, 3), message: 'bad' }]);
    expect(rendered.length).toBeLessThan(600);
    const [, line = '', marks = ''] = rendered.split('\n');
    expect(line.slice(marks.indexOf('^'), marks.lastIndexOf('^') + 1)).toBe('key');
  });

  test('a quoted text is one short line', () => {
    expect(quote('x'.repeat(80))).toBe(`\`${'x'.repeat(59)}…\``);
    expect(quote('a\nb\u202e')).toBe('`a⏎b\\u{202e}`');
  });
});

test('the nearest names come best first, and nothing far away', () => {
  const allowed = ['state', 'depends-on', 'touches', 'tests', 'gates'] as const;
  expect(nearest('dependson', allowed)).toEqual(['depends-on']);
  expect(nearest('depends', allowed)).toEqual(['depends-on']);
  expect(nearest('Sttae', allowed)).toEqual(['state']);
  expect(nearest('gate', allowed)).toEqual(['gates']);
  expect(nearest('owner', allowed)).toEqual([]);
  expect(nearest('', allowed)).toEqual([]);
  expect(nearest('x'.repeat(100_000), allowed)).toEqual([]);
});

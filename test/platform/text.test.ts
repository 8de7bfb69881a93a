import { describe, expect, test } from 'vitest';
import fc from 'fast-check';
import { printable, printableLines, tailLines } from '../../src/platform/text.js';

/** What fools a terminal or an eye, and what is left of it: on one line, and in lines. */
const hostile: readonly (readonly [name: string, text: string, line: string, lines: string])[] = [
  ['a colour', '\x1b[31mred\x1b[0m', '\\u{1b}[31mred\\u{1b}[0m', 'red'],
  ['a colour in 8 bits', '\x9b31mred', '\\u{9b}31mred', 'red'],
  ['true colour with colons', '\x1b[38:2::1:2:3mx', '\\u{1b}[38:2::1:2:3mx', 'x'],
  ['clear the screen', 'a\x1b[2J\x1b[Hb', 'a\\u{1b}[2J\\u{1b}[Hb', 'ab'],
  ['a private mode', '\x1b[?1049hx', '\\u{1b}[?1049hx', 'x'],
  ['a title, closed by BEL', '\x1b]0;evil\x07x', '\\u{1b}]0;evil\\u{7}x', 'x'],
  [
    'a link, closed by ST',
    '\x1b]8;;http://x\x1b\\t\x1b]8;;\x1b\\',
    '\\u{1b}]8;;http://x\\u{1b}\\t\\u{1b}]8;;\\u{1b}\\',
    't',
  ],
  ['a title in 8 bits', '\x9d0;evil\x9cx', '\\u{9d}0;evil\\u{9c}x', 'x'],
  ['a title never closed', '\x1b]0;evil\nnext', '\\u{1b}]0;evil⏎next', '0;evil\nnext'],
  ['a device control string', '\x1bPq#0\x1b\\x', '\\u{1b}Pq#0\\u{1b}\\x', 'x'],
  ['an application command', '\x1b_G1;\x1b\\x', '\\u{1b}_G1;\\u{1b}\\x', 'x'],
  ['a privacy message', '\x1b^p\x1b\\x', '\\u{1b}^p\\u{1b}\\x', 'x'],
  ['a start of string', '\x1bXs\x1b\\x', '\\u{1b}Xs\\u{1b}\\x', 'x'],
  ['a character set', '\x1b(0x', '\\u{1b}(0x', 'x'],
  ['a reset', '\x1bcx', '\\u{1b}cx', 'x'],
  ['a lone escape at the end', 'x\x1b', 'x\\u{1b}', 'x\\u{1b}'],
  ['a sequence begun and broken', '\x1b[31\nx', '\\u{1b}[31⏎x', '31\nx'],
  ['an enquiry', 'a\x05', 'a\\u{5}', 'a\\u{5}'],
  ['a bell and a null', '\x07\0', '\\u{7}\\u{0}', '\\u{7}\\u{0}'],
  [
    'backspaces',
    'FAILED\b\b\b\b\b\bPASSED',
    'FAILED' + '\\u{8}'.repeat(6) + 'PASSED',
    'FAILED' + '\\u{8}'.repeat(6) + 'PASSED',
  ],
  ['a carriage return', 'FAILED\rPASSED', 'FAILED\\u{d}PASSED', 'PASSED'],
  ['form feed and vertical tab', 'a\fb\vc', 'a\\u{c}b\\u{b}c', 'a\\u{c}b\\u{b}c'],
  ['right to left', 'a\u202egpj.exe', 'a\\u{202e}gpj.exe', 'a\\u{202e}gpj.exe'],
  ['isolates', '\u2066a\u2069', '\\u{2066}a\\u{2069}', '\\u{2066}a\\u{2069}'],
  ['zero width', 'a\u200bb\ufeffc\u2060d', 'a\\u{200b}b\\u{feff}c\\u{2060}d', 'a\\u{200b}b\\u{feff}c\\u{2060}d'],
  ['tag characters', 'a\u{e0041}', 'a\\u{e0041}', 'a\\u{e0041}'],
  ['selectors that hide bytes', 'a\u{e0101}', 'a\\u{e0101}', 'a\\u{e0101}'],
  ['a filler that is a letter', 'a\u3164b', 'a\\u{3164}b', 'a\\u{3164}b'],
  ['a soft hyphen', 'a\u00adb', 'a\\u{ad}b', 'a\\u{ad}b'],
  ['line separators', 'a\u2028b\u2029c\u0085d', 'a\\u{2028}b\\u{2029}c\\u{85}d', 'a\\u{2028}b\\u{2029}c\\u{85}d'],
  ['half a surrogate pair', 'a\ud800b', 'a\\u{d800}b', 'a\\u{d800}b'],
  ['private use', '\ue0b0', '\\u{e0b0}', '\\u{e0b0}'],
  ['delete', 'a\x7f', 'a\\u{7f}', 'a\\u{7f}'],
];

describe('hostile text', () => {
  test.each(hostile)('%s is harmless', (_name, text, line, lines) => {
    expect(printable(text)).toBe(line);
    expect(printableLines(text)).toBe(lines);
  });

  test('whatever it is, nothing but letters, signs and spaces comes out, and once is enough', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const line = printable(text);
        expect(line).toMatch(/^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u);
        expect(printable(line)).toBe(line);
        const lines = printableLines(text);
        expect(lines).toMatch(/^[\p{L}\p{M}\p{N}\p{P}\p{S} \n\t]*$/u);
        expect(printableLines(lines)).toBe(lines);
      }),
    );
  });

  test.each(['\x1b]', '\x1b[', '\x1b[0', '\x1bP', '\u2028', '\r', '\x1b[1;', '\x1b(', ' '])(
    'a megabyte of %j takes no more than its time',
    (unit) => {
      const text = unit.repeat(1_000_000 / unit.length);
      const start = performance.now();
      printableLines(text);
      tailLines(text, 10, 1_000);
      expect(performance.now() - start).toBeLessThan(5_000);
    },
  );
});

describe('honest text', () => {
  test.each(['Grüße, 世界! ¿Qué? – “so” … €5 → ok ✔ ✗ 🎉', 'عربى עברית हिन्दी', 'a\\u{1b}b', 'e\u0301'])(
    '%s stays',
    (text) => {
      expect(printable(text)).toBe(text);
      expect(printableLines(text)).toBe(text);
    },
  );

  test('an emoji loses only its selector', () => {
    expect(printable('⚠\ufe0f ✔\ufe0e')).toBe('⚠ ✔');
  });

  test('unusual spaces become plain ones', () => {
    expect(printable('a\u00a0b\u3000c')).toBe('a b c');
  });

  test('one line shows where lines ended', () => {
    expect(printable('one\ntwo\r\nthree\tfour')).toBe('one⏎two⏎three four');
  });

  test('lines keep their ends and tabs, without carriage returns', () => {
    expect(printableLines('\ta\r\nb\r\r\n\nc\n')).toBe('\ta\nb\n\nc\n');
  });

  test('of a progress bar the last state stays', () => {
    expect(printableLines('10%\r50%\r100%\ndone\r')).toBe('100%\ndone');
    expect(printableLines('\r\x1b[K10%\r\x1b[K20%\r\n')).toBe('20%\n');
  });
});

describe('the tail of a text', () => {
  test('is its last lines', () => {
    expect(tailLines('a\nb\nc\n\n', 2, 100)).toBe('b\nc');
    expect(tailLines('a\nb\nc', 10, 100)).toBe('a\nb\nc');
    expect(tailLines('', 2, 100)).toBe('');
  });

  test('is limited in bytes, at the start of a line', () => {
    expect(tailLines('first\nsecond\nthird', 10, 13)).toBe('second\nthird'.slice(-12));
    expect(tailLines('first\nsecond\nthird', 10, 12)).toBe('second\nthird');
    expect(tailLines('first\nsecond\nthird', 10, 11)).toBe('third');
  });

  test('is the end of a line that is too long alone, at a character', () => {
    expect(tailLines('äöü', 10, 3)).toBe('ü');
    expect(tailLines('🎉🎉', 10, 7)).toBe('🎉');
  });

  test('never exceeds its limits', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary' }),
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 1, max: 20 }),
        (text, lines, bytes) => {
          const tail = tailLines(text, lines, bytes);
          expect(tail.split('\n').length).toBeLessThanOrEqual(lines);
          expect(Buffer.byteLength(tail)).toBeLessThanOrEqual(bytes);
          expect(tail).not.toContain('\ufffd'.repeat(2));
        },
      ),
    );
  });
});

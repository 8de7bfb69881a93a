import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readText, root } from './markdown.js';

/** Turns a screen into SVG as scripts/picture.mjs does. */
function draw(screen: string): string {
  const { stdout, status } = spawnSync(process.execPath, [join(root, 'scripts/picture.mjs'), '--convert'], {
    input: screen,
    encoding: 'utf8',
    timeout: 20_000,
  });
  expect(status).toBe(0);
  return stdout;
}

const texts = (svg: string): readonly string[] =>
  [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text = '']) => text);

/** Every element that was opened is closed, and nothing is in it that could act. */
function expectHarmless(svg: string): void {
  const open: string[] = [];
  for (const [, closing, name, self] of svg.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g)) {
    if (closing === '/') expect(open.pop()).toBe(name);
    else if (self !== '/') open.push(name ?? '');
  }
  expect(open).toEqual([]);
  expect(svg).not.toMatch(/<(?!\/?(?:svg|g|rect|circle|text)\b)|\son\w+=|href|&(?!(?:amp|lt|gt|quot);)/);
}

test('text of a screen is escaped, and what is no text is left out', () => {
  const svg = draw('a <script>alert("1")</script> & b\u001b]0;title\u0007\u0007\u202e c\n');
  expect(texts(svg)[1]).toMatch(/^a &lt;script&gt;alert\(&quot;1&quot;\)&lt;\/script&gt; &amp; b/);
  expectHarmless(svg);
  expect(svg).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
});

test('colours and styles are those of the terminal, also from one line to the next', () => {
  const svg = draw(
    '\u001b[32mgreen\u001b[0m plain \u001b[1;38;5;196mred\u001b[0m\n\u001b[2mdim\nstill \u001b[22mnot\u001b[7mback\n',
  );
  const styleOf = (text: string): string => new RegExp(`<text ([^>]*)>${text}</text>`).exec(svg)?.[1] ?? '';
  expect(styleOf('green')).toMatch(/fill="#[0-9a-f]{6}"/);
  expect(styleOf('plain')).not.toContain('fill');
  expect(styleOf('red')).toMatch(/fill="#ff0000".*font-weight="bold"/);
  expect(styleOf('still')).toContain('opacity');
  expect(styleOf('not')).not.toContain('opacity');
  expect(svg).toMatch(/<rect [^>]*fill="#d5dae3"\/>\n<text [^>]*fill="#1b1f27"[^>]*>back</);
});

test('every character stands in its column, whatever the width of a font', () => {
  const svg = draw('ab ❯ cd\n');
  const places = [...svg.matchAll(/<text x="([\d.]+)" y="57"[^>]*>([^<]*)</g)].map(([, x, text]) => [text, Number(x)]);
  expect(places).toEqual([
    ['ab', 16],
    ['❯', 16 + 3 * 8.4],
    ['cd', 16 + 5 * 8.4],
  ]);
});

test('the picture of the README is of a run in the middle, as the board shows it', () => {
  const svg = readText('docs/images/board.svg');
  const said = texts(svg).join('\n');
  expectHarmless(svg);
  expect(said).toContain('From amounts to a monthly report (tally)');
  for (const word of ['wave 1', 'wave 3', 'running', '01-ledger', '08-command-line', '? help'])
    expect(said).toContain(word);
  for (const state of ['done', 'working', 'judging', 'waiting']) expect(said).toMatch(new RegExp(`^${state}\\b`, 'm'));
  expect(readText('README.md')).toMatch(/!\[[^\]]{20,}\]\(docs\/images\/board\.svg\)/);
});

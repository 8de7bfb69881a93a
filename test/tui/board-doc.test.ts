import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { bindings } from '../../src/tui/keys.js';
import { frame, issue, ui } from './demo.js';

const doc = readFileSync(join(import.meta.dirname, '../../docs/board.md'), 'utf8');

test('docs/board.md has the table of keys that the help shows', () => {
  const rows = bindings.map(({ keys, meaning }) => `| ${keys.map((key) => `\`${key}\``).join(', ')} | ${meaning} |`);
  expect(doc).toContain(`| Keys | What they do |\n|---|---|\n${rows.join('\n')}\n\n`);
});

test('docs/board.md shows a frame as it is drawn, without its empty rows', () => {
  const drawn = frame({
    ui: ui({ selected: issue('03-login-page') }),
    log: ['$ npm test', 'ok 1 - signs in', 'ok 2 - signs out'],
  })
    .replaceAll('eeeeeee', '5b0f7a1')
    .replace(/\n{2,}/g, '\n');
  expect(doc).toContain(`\`\`\`text\n${drawn}\n\`\`\``);
});

test('docs/board.md explains every word of a row', () => {
  const words = [
    'ready',
    'waiting',
    'working',
    'judging',
    'retrying',
    'integrating',
    'verifying',
    'held',
    'done',
    'needs-human',
    'wontfix',
  ];
  for (const word of words) expect(doc).toContain(`\n| ${word} | `);
});

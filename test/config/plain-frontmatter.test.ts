import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readYamlFields, splitFrontmatter } from '../../src/config/frontmatter.js';
import { readPlainFields } from '../../src/config/plain-frontmatter.js';
import type { Field, Value } from '../../src/config/value.js';

/** Both readers on the same text; where an empty value stands does not matter. */
function both(yaml: string): {
  readonly plain: readonly Field[] | undefined;
  readonly full: readonly Field[] | undefined;
} {
  const source = { file: 'x.md', text: `---\n${yaml}---\n` };
  const split = splitFrontmatter(source);
  if (!split.ok || split.value.kind === 'none') return { plain: undefined, full: undefined };
  const { fields, problems } = readYamlFields(source, split.value);
  const plain = readPlainFields(split.value.yaml, split.value.yamlStart);
  return { plain: plain?.map(normal), full: problems.length > 0 ? undefined : fields.map(normal) };
}

function normal(field: Field): Field {
  const isEmpty = field.value.kind === 'null' && field.value.start === field.value.end;
  const nowhere: Value = { kind: 'null', start: 0, end: 0 };
  return isEmpty ? { ...field, value: nowhere } : field;
}

test.each([
  'state: ready\n',
  'state: ready   # by hand\ndepends-on: [01, 010, 02-store]\n',
  'touches: ["src/a b/**", \'x#y\', docs/*.md]\r\nresources: []\r\n',
  '# a comment\n\ndepends-on:\nstate: null\ngap: # none\nvalue: 2.5\n',
  'depends-on: [ 01 ,02 ]  \ngates: [ ]\n',
  'tests: [null, NULL, nulls]\n',
  '',
])('%j is read without the YAML parser, and the same', (yaml) => {
  const { plain, full } = both(yaml);
  expect(plain).toBeDefined();
  expect(plain).toEqual(full);
});

test.each([
  'state: ready\nstate: done\n',
  'touches:\n  - a\n',
  'touches: [a,\n  b]\n',
  'touches: ["a\\n"]\n',
  "touches: ['it''s']\n",
  'state: "é"\n',
  'state: a b\n',
  'state: a:b\n',
  'state: a#b\n',
  'state: -1\n',
  'state: ~\n',
  'state: a\n  b\n',
  'state:\tready\n',
  'state : ready\n',
  '  state: ready\n',
  'touches: [a: b]\n',
  'touches: [a,]\n',
  'touches: [a] b\n',
  'touches: [a]#b\n',
  '# x\ry: 1\n',
])('%j is left to it', (yaml) => {
  expect(both(yaml).plain).toBeUndefined();
});

test('whatever is read without the YAML parser is read the same with it', () => {
  const piece = fc.constantFrom(
    ...[
      'state',
      'depends-on',
      'gap',
      ':',
      ': ',
      ':  ',
      ' ',
      '\t',
      '\n',
      '\r\n',
      '\r',
      '[',
      ']',
      ',',
      ', ',
      '"',
      "'",
      '#',
      ' # ',
    ],
    ...[
      '01',
      '010',
      'a',
      'src/**',
      '*',
      '-',
      '- ',
      '---',
      '...',
      '.',
      '~',
      'null',
      '{',
      '}',
      '\\',
      '&',
      '!',
      '%',
      '?',
      '|',
      '>',
      'é',
    ],
  );
  const word = fc.constantFrom(
    'ready',
    '01',
    '1e5',
    '2026-01-02',
    'null',
    '"a b"',
    "'#'",
    '""',
    'src/**',
    'x # y',
    '~',
    'a b',
  );
  const line = fc.oneof(
    fc
      .tuple(fc.constantFrom('state', 'gap', 'a-b', 'x'), fc.constantFrom(': ', ':   ', ':'), word)
      .map((parts) => parts.join('')),
    fc
      .tuple(fc.constantFrom('tests', 'b'), fc.array(word), fc.constantFrom(', ', ',', ' , '))
      .map(([key, items, comma]) => `${key}: [${items.join(comma)}]`),
    fc.array(piece, { maxLength: 8 }).map((parts) => parts.join('')),
  );
  const end = fc.constantFrom('\n', '\r\n');
  let plainly = 0;
  fc.assert(
    fc.property(fc.array(fc.tuple(line, end), { maxLength: 4 }), (lines) => {
      const { plain, full } = both(lines.map(([text, lineEnd]) => text + lineEnd).join(''));
      if (plain === undefined) return;
      plainly += 1;
      expect(plain).toEqual(full);
    }),
    { numRuns: 5_000 },
  );
  expect(plainly).toBeGreaterThan(500);
});

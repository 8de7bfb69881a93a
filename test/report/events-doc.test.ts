import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import type { Event } from '../../src/event.js';
import { ndjsonOf } from '../../src/report/ndjson.js';

const root = join(import.meta.dirname, '../..');
const source = ts.createSourceFile(
  'event.ts',
  readFileSync(join(root, 'src/event.ts'), 'utf8'),
  ts.ScriptTarget.ES2023,
);
const doc = readFileSync(join(root, 'docs/events.md'), 'utf8');

interface Field {
  readonly name: string;
  readonly optional: boolean;
}

/** The parts of a union type, as fields of each. */
function unionOf(name: string): readonly (readonly ts.PropertySignature[])[] {
  const alias = source.statements.find((each) => ts.isTypeAliasDeclaration(each) && each.name.text === name);
  if (alias === undefined || !ts.isTypeAliasDeclaration(alias) || !ts.isUnionTypeNode(alias.type))
    throw new Error(name);
  return alias.type.types.map((type) =>
    ts.isTypeLiteralNode(type) ? type.members.filter(ts.isPropertySignature) : [],
  );
}

const nameOf = (property: ts.PropertySignature): string => property.name.getText(source);

function literalOf(fields: readonly ts.PropertySignature[], name: string): string {
  return (
    fields
      .find((field) => nameOf(field) === name)
      ?.type?.getText(source)
      .slice(1, -1) ?? ''
  );
}

/** Every type of the union in event.ts, with its own fields. */
const declared = new Map<string, readonly Field[]>(
  unionOf('EventBody').map((properties) => [
    literalOf(properties, 'type'),
    properties
      .map((property) => ({ name: nameOf(property), optional: property.questionToken !== undefined }))
      .filter(({ name }) => name !== 'type'),
  ]),
);

const sections = new Map(
  [...doc.matchAll(/^### `([a-z.]+)`\n([^]*?)(?=^##|(?![^]))/gm)].map(([, type, text]) => [type!, text!]),
);

test('docs/events.md has a section for every event, and for nothing else', () => {
  expect(declared.size).toBeGreaterThan(20);
  expect([...sections.keys()].sort()).toEqual([...declared.keys()].sort());
});

describe.each([...declared])('%s', (type, fields) => {
  const text = sections.get(type) ?? '';

  test('is documented with each of its fields, in their order', () => {
    const rows = [...text.matchAll(/^\| `(\w+)` \| ([^|]+) \|/gm)].map(([, name, is]) => ({
      name,
      optional: is!.includes('optional'),
    }));
    expect(rows).toEqual(fields);
  });

  test('has an example that is one line as giro writes it', () => {
    const example = /^```json\n(.*)\n```$/m.exec(text)?.[1] ?? '';
    const parsed = JSON.parse(example) as Event;
    expect(ndjsonOf(parsed)).toBe(example);
    expect(parsed.type).toBe(type);
    expect(parsed.v).toBe(1);
    const names = Object.keys(parsed).slice(4);
    expect(names).toEqual(fields.map(({ name }) => name).filter((name) => names.includes(name)));
    for (const { name, optional } of fields) if (!optional) expect(names).toContain(name);
  });
});

test('every way a process can end is in the table', () => {
  const kinds = unionOf('Ended').map((properties) => literalOf(properties, 'kind'));
  for (const kind of kinds) expect(doc).toContain(`| \`${kind}\` |`);
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { lastObjectWith } from '../../src/drivers/json.js';

function oneOf(characters: string): fc.Arbitrary<string> {
  return fc.constantFrom(...Array.from(characters));
}

function found(text: string): unknown {
  return lastObjectWith(text, 'status')?.value;
}

test('the last object that has the field is found between other text', () => {
  expect(found('at first {"status":"a"} then\n```json\n{"status": "b"}\n```\nand {"other": 1} } {')).toEqual({
    status: 'b',
  });
});

test('an object inside a complete object is part of it and does not count', () => {
  expect(found('{"type":"message","content":[{"status":"inner"}]}')).toBeUndefined();
  expect(found('{"status":"outer","more":{"status":"inner"}}')).toEqual({
    status: 'outer',
    more: { status: 'inner' },
  });
});

test('of an object that was cut off, the complete ones inside count', () => {
  expect(found('{"log": [1, {"status":"inner"}, ')).toEqual({ status: 'inner' });
  expect(found('{"status":"done"')).toBeUndefined();
});

test('a stray quote or brace before an object hides nothing', () => {
  for (const noise of ['"', '{', '{"', '{"a {', "it's {", '}}}', '{"a":"', '[', '\\"', '{"a": it is broken ']) {
    expect(found(`${noise}{"status":"b"}`), noise).toEqual({ status: 'b' });
  }
});

test('braces and escaped quotes inside strings are text', () => {
  expect(found(String.raw`{"status":"a \" } {\"status\":\"no\"} \\"}`)).toEqual({
    status: String.raw`a " } {"status":"no"} ` + '\\',
  });
});

test('what is not JSON is not found', () => {
  for (const text of [
    "{'status':'a'}",
    '{status:"a"}',
    '{"status":"a",}',
    '{"status":01}',
    '{"status":"a\nb"}',
    '{"status":"\\x"}',
    '{"status" "a"}',
    '{"status":"a" "b":1}',
    '{"status":[1,]}',
    '{"status":]}',
    '{"status":undefined}',
    '["status"]',
  ]) {
    expect(found(text), text).toBeUndefined();
  }
});

test('a name on the prototype is not a field', () => {
  expect(found('{"__proto__":{"status":"done"}}')).toBeUndefined();
  expect(lastObjectWith('{"a":1}', 'toString')).toBeUndefined();
});

test('names that stand twice are told, also when one is escaped', () => {
  expect(lastObjectWith('{"status":"a","b":{"status":1},"stat\\u0075s":"c"}', 'status')?.repeated).toEqual(['status']);
  expect(lastObjectWith('{"status":"a","b":{"status":1}}', 'status')?.repeated).toEqual([]);
});

test('whatever JSON makes of an object is found as it is, wherever it stands', () => {
  const noise = fc.string({ unit: oneOf('ab {}[]":,\\\n1-') });
  fc.assert(
    fc.property(noise, fc.json(), fc.boolean(), (before, inner, spaced) => {
      const value = { status: JSON.parse(inner) as unknown };
      const text = spaced ? JSON.stringify(value, null, 2) : JSON.stringify(value);
      // A line end closes whatever string the noise may have opened.
      expect(found(`${before}\n${text}`)).toEqual(JSON.parse(text));
    }),
    { numRuns: 500 },
  );
});

test('any text is read without throwing', () => {
  fc.assert(
    fc.property(fc.string({ unit: oneOf('{}[]":,\\ntrue1.-eE \n\u0000u') }), (text) => {
      lastObjectWith(text, 'status');
    }),
    { numRuns: 2000 },
  );
});

test(
  'text made to be slow is not: a mebibyte of each takes no longer than one that is harmless',
  { timeout: 20_000 },
  () => {
    const size = 1024 * 1024;
    const fill = (unit: string): string => unit.repeat(Math.ceil(size / unit.length));
    for (const unit of [
      '{',
      '{"',
      '{"a":',
      '{"a":[',
      '{"a":[1,2,3,',
      '{"\\"',
      '{ ',
      '{"a":1}',
      '"',
      '[',
      '{"a":{"b":"c"},"d":',
    ]) {
      lastObjectWith(fill(unit), 'status');
    }
    const depth = Math.floor(size / 6);
    expect(found(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`)).toBeUndefined();
    expect(found(`{"status":"${'x'.repeat(size)}"}`)).toEqual({ status: 'x'.repeat(size) });
  },
);

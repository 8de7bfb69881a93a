/** Finds JSON objects in text that holds other things too. Made for hostile text: each character is read about once. */

/** An object found in a text. */
export interface FoundObject {
  /** Where its opening brace stands. */
  readonly start: number;
  /** Behind its closing brace. */
  readonly end: number;
  readonly value: Readonly<Record<string, unknown>>;
  /** Names that stand more than once on its first level. */
  readonly repeated: readonly string[];
}

/**
 * Finds the last object of a text that has one of the wanted fields itself: not in an object inside it, not by inheritance. Objects
 * inside a complete object are part of it; of an object that was cut off, the complete ones inside count.
 */
export function lastObjectWith(text: string, ...fields: readonly string[]): FoundObject | undefined {
  return objectsFromTheEnd(text, fields).next().value;
}

/** Finds all such objects, the last one first. */
export function* objectsFromTheEnd(text: string, fields: readonly string[]): Generator<FoundObject, undefined> {
  const ends = objectEnds(text);
  const outer: { readonly start: number; readonly end: number }[] = [];
  for (let at = text.indexOf('{'); at !== -1;) {
    const end = ends.get(at);
    if (end !== undefined) outer.push({ start: at, end });
    at = text.indexOf('{', end ?? at + 1);
  }
  for (const { start, end } of outer.reverse()) {
    const value = parseObject(text.slice(start, end));
    if (!fields.some((field) => Object.hasOwn(value, field))) continue;
    yield { start, end, value, repeated: repeatedNames(text, start, ends) };
  }
  return undefined;
}

/**
 * Says whether a text ends inside an object that has one of the fields, or that was begun behind a found one: what was found is
 * then at best a quotation in something that was cut off.
 */
export function endsInside(text: string, found: FoundObject, fields: readonly string[]): boolean {
  const names = fields.map((field) => JSON.stringify(field).replace(/[^\w"]/g, '\\$&')).join('|');
  return (
    new RegExp(`\\{[^{}]*(?:${names})\\s*:`).test(leftOpen(text)) ||
    /\{\s*(?:"|$)/.test(leftOpen(text.slice(found.end)))
  );
}

/** What may stand in an object that is not closed: behind the last closing brace, without the complete objects. */
function leftOpen(text: string): string {
  const rest = withoutObjects(text);
  return rest.slice(rest.lastIndexOf('}') + 1);
}

function withoutObjects(text: string): string {
  const ends = objectEnds(text);
  let rest = '';
  let from = 0;
  for (let at = text.indexOf('{'); at !== -1;) {
    const end = ends.get(at);
    if (end !== undefined) {
      rest += text.slice(from, at);
      from = end;
    }
    at = text.indexOf('{', end ?? at + 1);
  }
  return rest + text.slice(from);
}

/** The text was scanned as one object, so this neither throws nor gives anything else. */
function parseObject(text: string): Record<string, unknown> {
  return JSON.parse(text) as Record<string, unknown>;
}

/** Where each complete object ends. From right to left, so that an inner object is known, and skipped, when the outer is scanned. */
function objectEnds(text: string): ReadonlyMap<number, number> {
  const ends = new Map<number, number>();
  for (let at = text.lastIndexOf('{'); at !== -1; at = at === 0 ? -1 : text.lastIndexOf('{', at - 1)) {
    const end = scanObject(text, at, { ends });
    if (end !== undefined) ends.set(at, end);
  }
  return ends;
}

function repeatedNames(text: string, start: number, ends: ReadonlyMap<number, number>): readonly string[] {
  const seen = new Set<string>();
  const repeated = new Set<string>();
  scanObject(text, start, {
    ends,
    onName: (name) => {
      if (seen.has(name)) repeated.add(name);
      seen.add(name);
    },
  });
  return [...repeated];
}

const space = /[ \t\n\r]*/y;
const string = /"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*"/y;
const scalar = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null/y;

type Expected = 'first-name' | 'name' | 'colon' | 'first-value' | 'value' | 'next';

interface Scan {
  /** Of the objects inside. */
  readonly ends: ReadonlyMap<number, number>;
  /** Told each name of the first level. */
  readonly onName?: (name: string) => void;
}

/** Walks the object that opens at `start`; gives where it ends, or nothing when it is not a complete JSON object. */
function scanObject(text: string, start: number, { ends, onName }: Scan): number | undefined {
  let at = start + 1;
  // Arrays that are open. Inner objects are skipped as a whole, so nothing else nests.
  let arrays = 0;
  let expected: Expected = 'first-name';
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    const match = pattern.exec(text)?.[0];
    if (match !== undefined) at += match.length;
    return match;
  };
  for (;;) {
    take(space);
    const char = text[at];
    if (char === undefined) return undefined;
    if (expected === 'first-name' || expected === 'name') {
      if (char === '}' && expected === 'first-name') return at + 1;
      const name = take(string);
      if (name === undefined) return undefined;
      onName?.(parseName(name));
      expected = 'colon';
    } else if (expected === 'colon') {
      if (char !== ':') return undefined;
      at += 1;
      expected = 'value';
    } else if (expected === 'next') {
      at += 1;
      if (char === ',') expected = arrays > 0 ? 'value' : 'name';
      else if (char === '}' && arrays === 0) return at;
      else if (char === ']' && arrays > 0) arrays -= 1;
      else return undefined;
    } else if (char === '[') {
      at += 1;
      arrays += 1;
      expected = 'first-value';
    } else if (char === ']' && expected === 'first-value') {
      at += 1;
      arrays -= 1;
      expected = 'next';
    } else if (char === '{') {
      const end = ends.get(at);
      if (end === undefined) return undefined;
      at = end;
      expected = 'next';
    } else {
      if ((take(string) ?? take(scalar)) === undefined) return undefined;
      expected = 'next';
    }
  }
}

function parseName(text: string): string {
  return JSON.parse(text) as string;
}

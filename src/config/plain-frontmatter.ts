/**
 * Reads the frontmatter that nearly every Issue has, `key: word` and `key: [a, "b"]`, twenty times faster than a YAML
 * parser, which a status of thousands of Issues needs. It gives exactly what the yaml package gives or nothing at all:
 * at the first line it is not sure of, the whole frontmatter is left to that package.
 */
import type { Field, Value } from './value.js';

const keyLine = /^([a-z][a-z-]*):(?: +|$)/;
const item = /(?:([A-Za-z0-9][A-Za-z0-9_./*-]*)|"([ !#-[\]-~]*)"|'([ -&(-~]*)')/y;
const rest = / *(?: #.*)?$/y;
const between = / *(,|\]) */y;

/** Reads the fields of a plain frontmatter; `undefined` leaves it to the YAML parser. Offsets are moved by `offset`. */
export function readPlainFields(yaml: string, offset: number): readonly Field[] | undefined {
  const fields: Field[] = [];
  for (let start = 0; start < yaml.length;) {
    const end = yaml.indexOf('\n', start);
    if (end === -1) return undefined;
    const line = yaml.slice(start, yaml[end - 1] === '\r' ? end - 1 : end);
    if (line.includes('\r')) return undefined;
    if (line !== '' && !line.startsWith('#')) {
      const field = readLine(line, offset + start);
      if (field === undefined || fields.some(({ key }) => key === field.key)) return undefined;
      fields.push(field);
    }
    start = end + 1;
  }
  return fields;
}

function readLine(line: string, offset: number): Field | undefined {
  const match = keyLine.exec(line);
  const key = match?.[1];
  if (match === null || key === undefined) return undefined;
  const read = line.startsWith('[', match[0].length)
    ? readList(line, match[0].length)
    : readItem(line, match[0].length);
  const value = read ?? { kind: 'null', start: match[0].length, end: match[0].length };
  // An empty value may go on in the next line; what stands there is then no key and ends the reading.
  const isWhole =
    matchAt(rest, line, value.end) !== undefined || (value.kind === 'null' && line.startsWith('#', value.end));
  if (!isWhole) return undefined;
  return { key, keyStart: offset, keyEnd: offset + key.length, value: moved(value, offset) };
}

function readList(line: string, start: number): Value | undefined {
  const items: Value[] = [];
  let at = start + 1;
  while (line[at] === ' ') at += 1;
  if (line[at] === ']') return { kind: 'list', items, start, end: at + 1 };
  for (;;) {
    const value = readItem(line, at);
    const separator = value === undefined ? undefined : matchAt(between, line, value.end);
    if (value === undefined || separator === undefined) return undefined;
    items.push(value);
    if (separator[1] === ']') return { kind: 'list', items, start, end: line.indexOf(']', value.end) + 1 };
    at = value.end + separator[0].length;
  }
}

function readItem(line: string, start: number): Value | undefined {
  const match = matchAt(item, line, start);
  if (match === undefined) return undefined;
  const end = start + match[0].length;
  const [, plain, double, single] = match;
  if (plain !== undefined && /^(?:null|Null|NULL)$/.test(plain)) return { kind: 'null', start, end };
  const text = plain ?? double ?? single ?? '';
  return { kind: 'text', text, quoted: plain === undefined, oneLine: true, start, end };
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text) ?? undefined;
}

function moved(value: Value, by: number): Value {
  const place = { start: value.start + by, end: value.end + by };
  if (value.kind === 'list') return { ...value, ...place, items: value.items.map((entry) => moved(entry, by)) };
  return { ...value, ...place };
}

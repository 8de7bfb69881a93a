/** Reads single frontmatter values into what they must be; every mistake becomes a Diagnostic with its place. */
import { unreachable, type Diagnostic } from '../failure.js';
import { placeIn, quote, suggest, type Place, type SourceText } from './diagnostic.js';
import type { Field, Value } from './value.js';

/** A text of a list with its place, so that later checks can point at it. */
export interface Reference {
  readonly text: string;
  readonly place: Place;
}

/** The frontmatter of one file while it is being read, and what is wrong with it so far. */
export class FieldReader {
  readonly source: SourceText;
  readonly fields: readonly Field[];
  readonly problems: Diagnostic[];

  constructor(source: SourceText, fields: readonly Field[], problems: readonly Diagnostic[]) {
    this.source = source;
    this.fields = fields;
    this.problems = [...problems];
  }

  /** Finds a key's field. */
  field(key: string): Field | undefined {
    return this.fields.find((field) => field.key === key);
  }

  /** Finds the place of a value. */
  placeOf(value: Value): Place {
    return placeIn(this.source, value.start, Math.max(1, value.end - value.start));
  }

  /** Reports a mistake in a value. */
  reportValue(value: Value, message: string, hint: string): void {
    this.problems.push({ ...this.placeOf(value), message, hint });
  }

  /** Reports a mistake in a key. */
  reportKey(field: Field, message: string, hint: string): void {
    const place = placeIn(this.source, field.keyStart, field.keyEnd - field.keyStart);
    this.problems.push({ ...place, message, hint });
  }

  /** Reports a mistake in a field's value; an empty one has nothing to underline, then its key is meant. */
  reportField(field: Field, message: string, hint: string): void {
    if (field.value.end > field.value.start) this.reportValue(field.value, message, hint);
    else this.reportKey(field, message, hint);
  }
}

/** Reports keys that are not allowed, with the nearest that is. */
export function checkKeys(reader: FieldReader, allowed: readonly string[]): void {
  for (const field of reader.fields) {
    if (allowed.includes(field.key)) continue;
    reader.reportKey(field, `unknown key ${quote(field.key)}`, suggest(field.key, allowed, 'allowed keys'));
  }
}

/** Reads one of a few words. */
export function oneOf<T extends string>(reader: FieldReader, key: string, allowed: readonly T[]): T | undefined {
  const field = reader.field(key);
  if (field === undefined) return undefined;
  const { value } = field;
  const found = value.kind === 'text' && value.oneLine ? allowed.find((word) => word === value.text) : undefined;
  if (found === undefined) {
    const typed = value.kind === 'text' ? value.text : '';
    reader.reportField(field, `\`${key}\` is ${describe(value)}`, suggest(typed, allowed, 'allowed'));
  }
  return found;
}

/** Reads a whole number above zero. */
export function positiveInteger(reader: FieldReader, key: string): number | undefined {
  const field = reader.field(key);
  if (field === undefined) return undefined;
  const { value } = field;
  if (value.kind === 'text' && !value.quoted && /^0*[1-9][0-9]{0,8}$/.test(value.text)) return Number(value.text);
  reader.reportField(field, `\`${key}\` is ${describe(value)}, not a whole number above zero`, `such as ${key}: 2`);
  return undefined;
}

/** Reads any finite number. */
export function finiteNumber(reader: FieldReader, key: string): number | undefined {
  const field = reader.field(key);
  if (field === undefined) return undefined;
  const { value } = field;
  const isNumber = value.kind === 'text' && !value.quoted && /^[-+]?[0-9]{1,15}(?:\.[0-9]{1,15})?$/.test(value.text);
  if (isNumber) return Number(value.text);
  reader.reportField(field, `\`${key}\` is ${describe(value)}, not a number`, `such as ${key}: 5`);
  return undefined;
}

/** Reads a list of texts; one text alone is a list of one, nothing an empty list. */
export function textList(reader: FieldReader, key: string, example: string): readonly Reference[] {
  const field = reader.field(key);
  if (field === undefined || field.value.kind === 'null') return [];
  const { value } = field;
  const hint = `write a list of texts: ${key}: ${example}`;
  if (value.kind === 'text' && !value.quoted && /,\s/.test(value.text)) {
    reader.reportValue(value, `\`${key}\` holds several entries in one text: ${quote(value.text)}`, hint);
    return [];
  }
  return (value.kind === 'list' ? value.items : [value]).flatMap((item) => {
    if (item.kind === 'text' && item.text.trim() !== '') return [{ text: item.text, place: reader.placeOf(item) }];
    reader.reportValue(item, `\`${key}\` holds ${describe(item)}, not a text`, hint);
    return [];
  });
}

/** Reads a list of path patterns inside the repository. */
export function globList(reader: FieldReader, key: string, example: string): readonly string[] {
  const references = textList(reader, key, example);
  for (const { text, place } of references) {
    const reason = outsideReason(text);
    if (reason === undefined) continue;
    const hint = `write it from the root of the repository: ${key}: ${example}`;
    reader.problems.push({ ...place, message: `\`${key}\` entry ${quote(text)} ${reason}`, hint });
  }
  return distinct(references.map(({ text }) => text));
}

/** Says why a path or pattern does not stay inside the repository; `undefined` when it does. */
export function outsideReason(pattern: string): string | undefined {
  if (/^(?:[/\\~]|[A-Za-z]:[/\\])/.test(pattern)) return 'is not relative to the repository';
  if (pattern.split(/[/\\]/).includes('..')) return 'leaves the repository with ..';
  return undefined;
}

/** Removes repetitions, keeping the first of each. */
export function distinct<T>(values: readonly T[]): readonly T[] {
  return [...new Set(values)];
}

/** Says in words what somebody wrote. */
export function describe(value: Value): string {
  switch (value.kind) {
    case 'text':
      return value.text.trim() === '' ? 'an empty text' : quote(value.text);
    case 'null':
      return 'empty';
    case 'list':
      return 'a list';
    case 'mapping':
      return 'a mapping';
    default:
      return unreachable(value);
  }
}

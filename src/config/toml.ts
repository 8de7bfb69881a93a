/** Reads TOML with the place of every key and value, so that a mistake can be underlined. */
import { parse, TomlError } from 'smol-toml';
import { failed, ok, type Diagnostic, type Result } from '../failure.js';
import { placeAtLine, placeIn, type Place, type SourceText } from './diagnostic.js';

/** Where in the values something is: keys, and indices of arrays. */
export type TomlPath = readonly (string | number)[];

/** A parsed file. */
export interface TomlFile {
  readonly source: SourceText;
  readonly value: Readonly<Record<string, unknown>>;
  /** Finds a key or its value; what is not written itself is looked for at its parents; the file when nothing is there. */
  locate(path: TomlPath, part: 'key' | 'value'): Place;
}

const largestBytes = 1024 * 1024;
const syntaxHint = 'write one `key = value` a line: texts in quotes, lists in [...], each key and each [table] once';

/** Parses TOML; the first mistake of syntax is a Diagnostic. */
export function parseToml(source: SourceText): Result<TomlFile, readonly Diagnostic[]> {
  if (source.text.length > largestBytes)
    return failed([{ file: source.file, message: 'the file is larger than 1 MiB' }]);
  try {
    const value: Record<string, unknown> = parse(source.text, { unsafeKeyBehaviour: 'throw', maxDepth: 32 });
    return ok({ source, value, locate: locatorOf(source) });
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const reason = (error.message.split('\n', 1)[0] ?? '').replace(/^Invalid TOML document: /, '');
    const place = placeAtLine(source, error.line, error.column);
    return failed([{ ...place, message: `this is not valid TOML: ${reason}`, hint: syntaxHint }]);
  }
}

function locatorOf(source: SourceText): TomlFile['locate'] {
  // Built only when there is something to point at.
  let spans: ReadonlyMap<string, Span> | undefined;
  return (path, part) => {
    spans ??= new TomlScanner(source.text).scan();
    for (let length = path.length; length > 0; length -= 1) {
      const span = spans.get(JSON.stringify(path.slice(0, length)));
      if (span === undefined) continue;
      const [start, end] = part === 'value' || length < path.length ? (span.value ?? span.key) : span.key;
      return placeIn(source, start, end - start);
    }
    return { file: source.file };
  };
}

type Range = readonly [start: number, end: number];

interface Span {
  readonly key: Range;
  /** Absent for a table header. */
  readonly value?: Range;
}

/** Walks over a text that is already known to be valid TOML and notes where keys and values stand. */
class TomlScanner {
  readonly #text: string;
  readonly #spans = new Map<string, Span>();
  readonly #tableCounts = new Map<string, number>();
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  scan(): ReadonlyMap<string, Span> {
    if (this.#text.startsWith('\uFEFF')) this.#at = 1;
    let table: TomlPath = [];
    this.#skip();
    while (this.#at < this.#text.length) {
      if (this.#text[this.#at] === '[') table = this.#header();
      else this.#pair(table);
      this.#skip();
    }
    return this.#spans;
  }

  /** Skips blanks, line ends and comments. */
  #skip(): void {
    this.#at = this.#match(/(?:[\s,]|#[^\n]*)*/y);
  }

  #match(pattern: RegExp): number {
    pattern.lastIndex = this.#at;
    return this.#at + (pattern.exec(this.#text)?.[0].length ?? 0);
  }

  #header(): TomlPath {
    const isArray = this.#text.startsWith('[[', this.#at);
    this.#at += isArray ? 2 : 1;
    const { keys, range } = this.#keys();
    this.#at = this.#match(/[ \t]*\]{1,2}/y);
    const path = this.#insideArrays(keys, isArray);
    this.#note(path, { key: range });
    for (let length = 1; length < path.length; length += 1) this.#note(path.slice(0, length), { key: range });
    return path;
  }

  /** A header speaks of the newest element of every array of tables on its way. */
  #insideArrays(keys: readonly string[], isArray: boolean): TomlPath {
    let path: TomlPath = [];
    for (const [index, key] of keys.entries()) {
      path = [...path, key];
      const name = JSON.stringify(path);
      const count = (this.#tableCounts.get(name) ?? 0) + (isArray && index === keys.length - 1 ? 1 : 0);
      if (count === 0) continue;
      this.#tableCounts.set(name, count);
      path = [...path, count - 1];
    }
    return path;
  }

  #pair(table: TomlPath): void {
    const { keys, range } = this.#keys();
    this.#at = this.#match(/[ \t]*=[ \t]*/y);
    const path = [...table, ...keys];
    const value = this.#value(path);
    for (let length = table.length + 1; length < path.length; length += 1) {
      this.#note(path.slice(0, length), { key: range });
    }
    this.#note(path, { key: range, value });
  }

  /** The first mention of a path wins. */
  #note(path: TomlPath, span: Span): void {
    const name = JSON.stringify(path);
    if (!this.#spans.has(name)) this.#spans.set(name, span);
  }

  #keys(): { readonly keys: readonly string[]; readonly range: Range } {
    const keys: string[] = [];
    this.#at = this.#match(/[ \t]*/y);
    const start = this.#at;
    for (;;) {
      const from = this.#at;
      this.#at = this.#match(/"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s.=\]"'#]+/y);
      const end = this.#at;
      keys.push(keyText(this.#text.slice(from, end)));
      this.#at = this.#match(/[ \t]*\.[ \t]*/y);
      // Without a dot the key is complete; without progress the text is no TOML at all.
      if (this.#at === end || end === from) return { keys, range: [start, end] };
    }
  }

  #value(path: TomlPath): Range {
    const start = this.#at;
    const first = this.#text[start];
    if (first === '[') this.#items(']', (index) => this.#element([...path, index]));
    else if (first === '{') this.#items('}', () => this.#pair(path));
    else this.#at = this.#match(scalar);
    return [start, this.#at];
  }

  #element(path: TomlPath): void {
    const range = this.#value(path);
    this.#note(path, { key: range, value: range });
  }

  #items(close: string, read: (index: number) => void): void {
    this.#at += 1;
    this.#skip();
    for (let index = 0; this.#at < this.#text.length && this.#text[this.#at] !== close; index += 1) {
      const before = this.#at;
      read(index);
      this.#skip();
      if (this.#at === before) this.#at += 1;
    }
    this.#at += 1;
  }
}

const scalar =
  /"""(?:[^\\]|\\[^])*?"{3,5}(?!")|'''[^]*?'{3,5}(?!')|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s,\]}#]+(?: [0-9][^\s,\]}#]*)?/y;

function keyText(written: string): string {
  if (written.startsWith("'")) return written.slice(1, -1);
  if (!written.startsWith('"')) return written;
  const value: unknown = parse(`key = ${written}`)['key'];
  return typeof value === 'string' ? value : written;
}

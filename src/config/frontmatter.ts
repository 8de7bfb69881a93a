/**
 * Cuts a markdown file into frontmatter and body, and reads the frontmatter as YAML. Nothing in a file can choose
 * another language, run code or hide its own fields: what is not exactly understood is a Diagnostic.
 */
import { isUtf8 } from 'node:buffer';
import matter from 'gray-matter';
import { isAlias, isMap, isScalar, isSeq, parseDocument, type Node, type YAMLMap } from 'yaml';
import { failed, ok, type Diagnostic, type Result } from '../failure.js';
import { placeAtLine, placeIn, quote, type SourceText } from './diagnostic.js';
import { conflictMarker, lineAt } from './markdown.js';
import { readPlainFields } from './plain-frontmatter.js';
import type { Field, Value } from './value.js';

const largestFileBytes = 1024 * 1024;
const largestFrontmatterBytes = 64 * 1024;
const mostFrontmatterLines = 1_000;
const deepestNesting = 32;
const mostBrackets = 500;

/** A file cut in two; offsets are into its text. */
export type Split =
  | { readonly kind: 'none'; readonly body: string }
  | {
      readonly kind: 'frontmatter';
      /** The YAML between the fences, line ends included. */
      readonly yaml: string;
      readonly yamlStart: number;
      readonly body: string;
      readonly bodyStart: number;
    };

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Decodes a file's bytes; too large files and invalid UTF-8 are refused. */
export function decode(file: string, bytes: Uint8Array): Result<SourceText, readonly Diagnostic[]> {
  if (bytes.byteLength > largestFileBytes) {
    return failed([
      { file, message: `the file is larger than ${largestFileBytes / 1024} KiB`, hint: 'make it shorter' },
    ]);
  }
  const text = decoder.decode(bytes);
  if (isUtf8(bytes)) return ok({ file, text });
  const place = placeIn({ file, text }, text.indexOf('\uFFFD'));
  return failed([{ ...place, message: 'the file is not valid UTF-8', hint: 'save it as UTF-8' }]);
}

/** Cuts a file at its fences; the body is kept byte for byte. */
export function splitFrontmatter(source: SourceText): Result<Split, readonly Diagnostic[]> {
  const conflict = conflictMarker(source.text);
  if (conflict !== undefined) {
    const message = 'the file holds merge-conflict markers (<<<<<<<, =======, >>>>>>>)';
    const place = placeIn(source, conflict.start, conflict.text.length);
    return failed([{ ...place, message, hint: 'resolve the conflict, then run again' }]);
  }
  const bom = source.text.startsWith('\uFEFF') ? 1 : 0;
  const first = lineAt(source.text, bom);
  if (first.text !== '---') return withoutFence(source, bom);
  const closing = closingFence(source, first.next);
  return closing.ok ? splitAt(source, closing.value) : failed(closing.failure);
}

/** Says why a file that seems to have frontmatter has none; it must never lose its fields without a word. */
function withoutFence(source: SourceText, bom: number): Result<Split, readonly Diagnostic[]> {
  const refuse = (offset: number, message: string, hint: string) =>
    failed([{ ...placeIn(source, offset, lineAt(source.text, offset).text.length), message, hint }]);
  const head = source.text.slice(bom);
  const fix = 'make the first line exactly ---';
  if (/^---[ \t]*[^\s-]/.test(head))
    return refuse(bom, 'only YAML frontmatter is supported', `${fix}, and write YAML below it`);
  if (/^(?:\+\+\+|;;;)[ \t]*\r?\n/.test(head)) return refuse(bom, 'only YAML frontmatter is supported', fix);
  const before = /^[\s\uFEFF\u200B-\u200D\u2060]*/.exec(head)?.[0] ?? '';
  const at = bom + before.length;
  if (!source.text.startsWith('---', at)) return ok({ kind: 'none', body: head });
  if (before.includes('\n')) return refuse(at, 'a blank line stands before the frontmatter', `remove it: ${fix}`);
  if (before !== '') return refuse(bom, 'something invisible stands before the frontmatter', fix);
  const dashes = /^-+/.exec(head)?.[0].length ?? 0;
  if (dashes > 3) return refuse(bom, `the first line has ${dashes} dashes instead of three`, fix);
  return refuse(bom, 'blanks follow the --- that opens the frontmatter', fix);
}

function closingFence(source: SourceText, from: number): Result<number, readonly Diagnostic[]> {
  let lines = 0;
  for (let start = from; start < source.text.length; lines += 1) {
    const line = lineAt(source.text, start);
    if (line.text === '---') return withinLimits(source, { from, end: start, lines });
    if (line.text.startsWith('---')) {
      const message = `${quote(line.text)} does not close the frontmatter`;
      const hint = 'the line that closes it is exactly ---; inside it no other line starts with three dashes';
      return failed([{ ...placeIn(source, start, line.text.length), message, hint }]);
    }
    start = line.next;
  }
  const message = 'the frontmatter is never closed';
  return failed([
    { ...placeAtLine(source, 1), length: 3, message, hint: 'write a line with exactly --- below its last key' },
  ]);
}

function withinLimits(
  source: SourceText,
  { from, end, lines }: { readonly from: number; readonly end: number; readonly lines: number },
): Result<number, readonly Diagnostic[]> {
  const bytes = Buffer.byteLength(source.text.slice(from, end));
  if (bytes <= largestFrontmatterBytes && lines <= mostFrontmatterLines) return ok(end);
  const message = `the frontmatter is larger than ${largestFrontmatterBytes / 1024} KiB or ${mostFrontmatterLines} lines`;
  return failed([{ ...placeAtLine(source, 1), message, hint: 'move text below the closing ---' }]);
}

const plainLines = /^(?:[a-z-]+: [\w[\], -]*\n)+$/;

/** gray-matter makes the cut; by now the text has no shape that it and giro could read differently. */
function splitAt(source: SourceText, closing: number): Result<Split, readonly Diagnostic[]> {
  const { text } = source;
  const bodyStart = lineAt(text, closing).next;
  const yamlStart = lineAt(text, 0).next;
  const yaml = text.slice(yamlStart, closing);
  // Of lines that are nothing but `key: value` there is one way to cut, which needs no second opinion.
  if (plainLines.test(yaml))
    return ok({ kind: 'frontmatter', yaml, yamlStart, body: text.slice(bodyStart), bodyStart });
  // An options object keeps gray-matter's cache out of it; without one, equal texts share one mutable result.
  const file = matter(text.slice(0, bodyStart), { language: 'yaml', engines });
  if (file.content !== '' || file.matter.trim() !== yaml.trim())
    throw new Error(`gray-matter cut ${source.file} elsewhere`);
  return ok({ kind: 'frontmatter', yaml, yamlStart, body: text.slice(bodyStart), bodyStart });
}

/** Every engine that could run code throws; the YAML one is idle, since values are read by the yaml package. */
const engines = {
  yaml: { parse: () => ({}) },
  ...Object.fromEntries(
    ['js', 'javascript', 'json', 'coffee', 'coffeescript', 'cson', 'toml', 'cs'].map((name) => [
      name,
      { parse: refuseEngine },
    ]),
  ),
};

function refuseEngine(): never {
  throw new Error('only YAML frontmatter is supported');
}

/** The keys of a frontmatter, with every mistake in their shape. */
export interface Fields {
  readonly fields: readonly Field[];
  readonly problems: readonly Diagnostic[];
  /** False when it is not even YAML: then nothing about its keys can be said. */
  readonly readable: boolean;
}

/** Reads the keys of the frontmatter with the place of every value; all mistakes at once. */
export function readFields(source: SourceText, split: Split): Fields {
  if (split.kind === 'none') return { fields: [], problems: [], readable: true };
  const plain = readPlainFields(split.yaml, split.yamlStart);
  return plain === undefined ? readYamlFields(source, split) : { fields: plain, problems: [], readable: true };
}

const quoted = 'write one `key: value` a line; a value with a colon or # in it stands in quotes';

/** Reads the keys with the yaml package. */
export function readYamlFields(source: SourceText, split: Extract<Split, { kind: 'frontmatter' }>): Fields {
  const at = (start: number, end: number) => placeIn(source, split.yamlStart + start, end - start);
  const unreadable = (problems: readonly Diagnostic[]): Fields => ({ fields: [], problems, readable: false });
  // The yaml package recurses, and V8 aborts the whole process when a regular expression meets a full stack.
  if (isTooDeep(split.yaml)) {
    const message = 'the frontmatter is nested too deeply';
    return unreadable([{ ...at(0, 1), message, hint: 'write one `key: value` a line' }]);
  }
  const document = parseDocument(split.yaml, { schema: 'failsafe', uniqueKeys: true, prettyErrors: false });
  const errors = document.errors.map(({ code, message, pos }) => ({
    ...at(pos[0], pos[1]),
    ...(code === 'DUPLICATE_KEY'
      ? { message: 'the same key stands here a second time', hint: 'keep one of them' }
      : { message: `the frontmatter is not valid YAML: ${message}`, hint: quoted }),
  }));
  if (document.errors.some(({ code }) => code !== 'DUPLICATE_KEY')) return unreadable(errors);
  const contents: unknown = document.contents;
  if (contents === null || (isScalar(contents) && contents.value === ''))
    return { fields: [], problems: [], readable: true };
  if (!isMap(contents) || contents.flow === true) {
    const message = 'the frontmatter is not a list of keys';
    return unreadable([{ ...at(0, 1), message, hint: 'write one `key: value` a line' }]);
  }
  const problems: Diagnostic[] = [...errors];
  const report: Report = ([start, end], message, hint) => problems.push({ ...at(start, end), message, hint });
  return { fields: fieldsOf(contents, split, report), problems, readable: true };
}

type Range = readonly [start: number, end: number];

type Report = (range: Range, message: string, hint: string) => void;

function fieldsOf(map: YAMLMap, split: Extract<Split, { kind: 'frontmatter' }>, report: Report): readonly Field[] {
  const fields: Field[] = [];
  for (const { key, value } of map.items) {
    if (!isScalar(key) || typeof key.value !== 'string' || !startsItsLine(split.yaml, rangeOf(key)[0])) {
      report(isNode(key) ? rangeOf(key) : [0, 1], 'this is not a plain key', 'write `key: value`');
      continue;
    }
    const [start, end] = rangeOf(key);
    const plain = isNode(value) ? valueOf(value, split, report) : nullAt(end + 1);
    fields.push({
      key: key.value,
      keyStart: split.yamlStart + start,
      keyEnd: split.yamlStart + end,
      value: shifted(plain, split.yamlStart),
    });
  }
  return fields;
}

/** True unless the key is written as `? key` or behind something else, which a splice could not handle. */
function startsItsLine(yaml: string, offset: number): boolean {
  return yaml.slice(yaml.lastIndexOf('\n', offset - 1) + 1, offset).trim() === '';
}

function valueOf(node: Node, split: Extract<Split, { kind: 'frontmatter' }>, report: Report): Value {
  const [start, end] = rangeOf(node);
  const decorated = isAlias(node) || node.tag !== undefined || node.anchor !== undefined;
  if (decorated) report([start, end], 'anchors, aliases and tags are not supported', 'write the value itself');
  if (isScalar(node)) {
    const text = String(node.value);
    const quoted = node.type !== 'PLAIN';
    if (!quoted && /^(?:|~|null|Null|NULL)$/.test(text)) return { kind: 'null', start, end };
    const oneLine = !split.yaml.slice(start, end).includes('\n') && !node.type?.startsWith('BLOCK');
    return { kind: 'text', text, quoted, oneLine, start, end };
  }
  if (isSeq(node)) {
    const items = node.items.map((item) => (isNode(item) ? valueOf(item, split, report) : nullAt(start)));
    return { kind: 'list', items, start, end };
  }
  return { kind: 'mapping', start, end };
}

function isNode(value: unknown): value is Node {
  return isScalar(value) || isMap(value) || isSeq(value) || isAlias(value);
}

function rangeOf(node: Node): Range {
  const [start, end] = node.range ?? [0, 1];
  return [start, end];
}

function nullAt(offset: number): Value {
  return { kind: 'null', start: offset, end: offset };
}

function shifted(value: Value, by: number): Value {
  const moved = { start: value.start + by, end: value.end + by };
  if (value.kind === 'list') return { ...value, ...moved, items: value.items.map((item) => shifted(item, by)) };
  return { ...value, ...moved };
}

/** Bounds how deep the YAML can nest, without parsing it; strings can hide brackets, so their whole count is bounded too. */
function isTooDeep(yaml: string): boolean {
  let open = 0;
  let brackets = 0;
  return yaml.split('\n').some((line) => {
    const indent = line.search(/[^\s?:-]|$/);
    const indicators = line.slice(0, indent).match(/[-?:]/g)?.length ?? 0;
    if (indent > 128 || indicators > deepestNesting) return true;
    for (const char of line) {
      if (char === '[' || char === '{') brackets += 1;
      if (char === '[' || char === '{') open += 1;
      else if (char === ']' || char === '}') open = Math.max(0, open - 1);
      if (open > deepestNesting || brackets > mostBrackets) return true;
    }
    return false;
  });
}

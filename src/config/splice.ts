/**
 * Edits of Issue and Spec files that change nothing but what giro owns: the keys `state`, `attempt`, `phase`, and the
 * `## History` section. Comments, order, quotes, line ends, a byte-order mark and a missing last line end stay.
 */
import { readFields, splitFrontmatter, type Split } from './frontmatter.js';
import { historyHeading, splitHistory } from './markdown.js';
import type { Field } from './value.js';

/** The keys of the frontmatter that giro writes. */
export type EngineKey = 'state' | 'attempt' | 'phase';

/** New values; `null` removes a key, an absent key stays as it is. */
export type FrontmatterChanges = { readonly [Key in EngineKey]?: string | number | null };

const engineKeys: readonly EngineKey[] = ['state', 'attempt', 'phase'];

/** Sets, adds or removes engine keys of a file that can be parsed; frontmatter is made when there is none. */
export function spliceFrontmatter(text: string, changes: FrontmatterChanges): string {
  return engineKeys.reduce((edited, key) => {
    const value = changes[key];
    return value === undefined ? edited : spliceKey(edited, key, value);
  }, text);
}

/** Reads the `## History` section with its heading, with plain line feeds; empty when there is none. */
export function historyOf(text: string): string {
  return splitHistory(bodyOf(text)).history.replace(/\r\n/g, '\n');
}

/** Replaces the `## History` section or appends it behind one blank line; an empty text removes it. */
export function replaceHistory(text: string, history: string): string {
  const { history: old } = splitHistory(bodyOf(text));
  const before = text.slice(0, text.length - old.length);
  if (history === '') return before;
  const end = lineEndOf(text);
  const section = sealed(history).replace(/\n/g, end);
  if (old !== '' || before === '') return before + section;
  const open = before.endsWith('\n') ? '' : end;
  const blank = /\n\r?\n$/.test(before) ? '' : end;
  return before + open + blank + section;
}

/** Takes out everything that the engine noted of the work: the History and the checkpoint. What a person wrote stays. */
export function withoutRecord(text: string): string {
  if (!splitFrontmatter({ file: '', text }).ok) return splitHistory(text).body;
  const told = replaceHistory(text, '');
  const { fields, problems } = readFields({ file: '', text: told }, cutOf(told));
  const isOurs = problems.length === 0 && fields.some(({ key }) => key === 'attempt' || key === 'phase');
  return isOurs ? spliceFrontmatter(told, { attempt: null, phase: null }) : told;
}

/**
 * Keeps a History readable as one: it starts with its heading, ends with a line end, and no line inside it can pass for
 * that heading or for a code fence, which could pair up with one of the body and swallow the heading.
 */
function sealed(history: string): string {
  const [first = '', ...rest] = history.replace(/\r\n?/g, '\n').replace(/\n?$/, '\n').split('\n');
  const lines = first === historyHeading ? rest : [first, ...rest];
  return [historyHeading, ...lines.map((line) => (isForgery(line) ? `    ${line.trimStart()}` : line))].join('\n');
}

function isForgery(line: string): boolean {
  return line === historyHeading || /^ {0,3}(?:```|~~~)/.test(line);
}

function bodyOf(text: string): string {
  return cutOf(text).body;
}

function cutOf(text: string): Split {
  const split = splitFrontmatter({ file: '', text });
  if (!split.ok) throw new Error(`cannot edit a file that cannot be parsed: ${split.failure[0]?.message ?? ''}`);
  return split.value;
}

function lineEndOf(text: string): string {
  const end = text.indexOf('\n');
  return end > 0 && text[end - 1] === '\r' ? '\r\n' : '\n';
}

function spliceKey(text: string, key: EngineKey, value: string | number | null): string {
  const split = cutOf(text);
  const { fields, problems } = readFields({ file: '', text }, split);
  if (problems[0] !== undefined)
    throw new Error(`cannot edit frontmatter that cannot be parsed: ${problems[0].message}`);
  const field = fields.find((candidate) => candidate.key === key);
  if (value === null) return field === undefined ? text : removeLines(text, field);
  if (field !== undefined) return setValue(text, field, scalar(value));
  const line = `${key}: ${scalar(value)}${lineEndOf(text)}`;
  if (split.kind === 'none') return insertFrontmatter(text, line);
  const indent = ' '.repeat(columnOf(text, fields[0]));
  const anchor = anchorFor(fields);
  const at = anchor === undefined ? split.yamlStart + split.yaml.length : nextLine(text, lastOffset(anchor));
  return `${text.slice(0, at)}${indent}${line}${text.slice(at)}`;
}

/** A new key stands behind the last engine key; without one, at the end. */
function anchorFor(fields: readonly Field[]): Field | undefined {
  return fields.findLast((field) => engineKeys.some((key) => key === field.key));
}

function insertFrontmatter(text: string, line: string): string {
  const end = lineEndOf(text);
  const bom = text.startsWith('\uFEFF') ? 1 : 0;
  return `${text.slice(0, bom)}---${end}${line}---${end}${text.slice(bom)}`;
}

function setValue(text: string, field: Field, written: string): string {
  const { value } = field;
  if (value.end > value.start) return text.slice(0, value.start) + written + text.slice(value.end);
  // An empty value may have a comment behind it: write right behind the colon.
  const colon = text.indexOf(':', field.keyEnd) + 1;
  return `${text.slice(0, colon)} ${written}${text.slice(colon)}`;
}

function removeLines(text: string, field: Field): string {
  const start = text.lastIndexOf('\n', field.keyStart) + 1;
  return text.slice(0, start) + text.slice(nextLine(text, lastOffset(field)));
}

/** The last character that belongs to a field: its value may stand on lines of its own. */
function lastOffset(field: Field): number {
  return Math.max(field.keyEnd, field.value.end - 1);
}

function nextLine(text: string, offset: number): number {
  const end = text.indexOf('\n', offset);
  return end === -1 ? text.length : end + 1;
}

function columnOf(text: string, field: Field | undefined): number {
  return field === undefined ? 0 : field.keyStart - (text.lastIndexOf('\n', field.keyStart) + 1);
}

/** Writes a value so that YAML reads back exactly this text. */
function scalar(value: string | number): string {
  const text = String(value);
  return /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/.test(text) && text !== 'null' ? text : JSON.stringify(text);
}

/** Checks values of giro.toml with zod, and says what is wrong in the words of the file. */
import { z } from 'zod';
import type { Diagnostic } from '../failure.js';
import { durationExamples, parseDuration } from '../platform/duration.js';
import { quote, suggest } from './diagnostic.js';
import { outsideReason } from './fields.js';
import { nearest } from './nearest.js';
import type { TomlPath } from './toml.js';

/** A mistake by its path in the values; the place is found later. */
export interface Problem {
  readonly path: TomlPath;
  readonly part: 'key' | 'value';
  readonly message: string;
  readonly hint?: string;
  /** The mistake is in another file, at this place. */
  readonly elsewhere?: Diagnostic;
}

/** What a check gives: a value only when there is no problem. */
export interface Checked<T> {
  readonly problems: readonly Problem[];
  readonly value?: T;
}

/** Checks one table against a strict schema; every key and value that is wrong is a problem of its own. */
export function checkTable<S extends z.ZodObject>(schema: S, input: unknown, path: TomlPath): Checked<z.output<S>> {
  const result = schema.safeParse(input);
  if (result.success) return { problems: [], value: result.data };
  const allowed = Object.keys(schema.shape);
  return { problems: result.error.issues.flatMap((issue) => problemsOf(issue, { input, path, allowed })) };
}

interface Context {
  readonly input: unknown;
  readonly path: TomlPath;
  readonly allowed: readonly string[];
}

function problemsOf(issue: z.core.$ZodIssue, { input, path, allowed }: Context): readonly Problem[] {
  const inner = issue.path.filter((part) => typeof part !== 'symbol');
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => unknownKey([...path, ...inner, key], allowed));
  }
  const at = [...path, ...inner];
  if (inner.length === 0)
    return [{ path: at, part: 'value', message: `${nameOf(at)} must be a table, not ${describe(input)}` }];
  const value = valueAt(input, inner);
  if (value === undefined) {
    return [{ path: at, part: 'value', message: `${nameOf(at)} is missing`, hint: `it ${issue.message}` }];
  }
  const hint: unknown = issue.code === 'custom' ? issue.params?.['hint'] : undefined;
  const message = `${nameOf(at)} ${issue.message}, not ${describe(value)}`;
  return [{ path: at, part: 'value', message, ...(typeof hint === 'string' && hint !== '' ? { hint } : {}) }];
}

/** Reports a key that is not allowed, with the nearest that is. */
export function unknownKey(path: TomlPath, allowed: readonly string[]): Problem {
  const table = path.length > 1 ? ` in [${path.slice(0, -1).map(keyName).join('.')}]` : '';
  const key = String(path.at(-1));
  return { path, part: 'key', message: `unknown key ${quote(key)}${table}`, hint: suggest(key, allowed, 'allowed') };
}

/** Says whether a value is a table. */
export function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

/** Names a value as a person would: its key, or its key and place in a list. */
function nameOf(path: TomlPath): string {
  const last = path.at(-1);
  if (typeof last === 'number') return `entry ${last + 1} of ${nameOf(path.slice(0, -1))}`;
  return quote(last ?? 'the file');
}

function keyName(part: string | number): string {
  return /^[A-Za-z0-9_-]+$/.test(String(part)) ? String(part) : JSON.stringify(part);
}

function valueAt(value: unknown, path: TomlPath): unknown {
  return path.reduce<unknown>((inside, part) => {
    if (Array.isArray(inside)) return typeof part === 'number' ? Array.from<unknown>(inside)[part] : undefined;
    return isTable(inside) ? inside[String(part)] : undefined;
  }, value);
}

/** Says in words what somebody wrote. */
export function describe(value: unknown): string {
  if (typeof value === 'string') return value.trim() === '' ? 'an empty text' : quote(JSON.stringify(value));
  if (typeof value === 'number' || typeof value === 'boolean') return quote(String(value));
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  return isTable(value) ? 'a table' : 'a date';
}

/** A whole number within bounds. */
export function wholeNumber(minimum: number, maximum: number) {
  const error = `must be a whole number between ${minimum} and ${maximum}`;
  return z.int({ error }).min(minimum, { error }).max(maximum, { error });
}

/** A text that is not empty. */
export function filledText(error = 'must be a text') {
  return z.string({ error }).refine((text) => text.trim() !== '' && !text.includes('\0'), { error });
}

/** One of a few words. */
export function word<const T extends readonly [string, ...string[]]>(words: T) {
  const error = `must be one of ${words.join(', ')}`;
  return z.string({ error }).transform((text, context) => {
    const found = words.find((candidate): candidate is T[number] => candidate === text);
    if (found !== undefined) return found;
    const [best] = nearest(text, words);
    context.addIssue({
      code: 'custom',
      message: error,
      params: { hint: best === undefined ? '' : `did you mean \`${best}\`?` },
    });
    return z.NEVER;
  });
}

/** A duration such as `10m`, in milliseconds. */
export function duration() {
  return z.unknown().transform((value, context): number => {
    const ms = typeof value === 'string' ? parseDuration(value) : undefined;
    if (ms !== undefined) return ms;
    context.addIssue({
      code: 'custom',
      message: 'must be a duration of at most 7 days',
      params: { hint: durationExamples },
    });
    return z.NEVER;
  });
}

/** A list of texts. */
export function textListOf(item: z.ZodType<string>, example: string) {
  return z.array(item, { error: `must be a list of texts, such as ${example}` }).readonly();
}

/** Names of environment variables; never values, which do not belong into a file. */
export function variableNames() {
  const error = 'must be the name of an environment variable, without a value';
  return textListOf(z.string({ error }).regex(/^[A-Za-z_][A-Za-z0-9_]*$/, { error }), '["API_KEY"]').default([]);
}

/** A path or pattern inside the repository that cannot reach `.git`. */
export function insidePath() {
  return z.string({ error: 'must be a text' }).superRefine((text, context) => {
    const reason = reasonAgainst(text);
    if (reason !== undefined)
      context.addIssue({ code: 'custom', message: `must be a path inside the repository (it ${reason})` });
  });
}

/** Says why a path may not be copied, linked or kept; `undefined` when it may. */
export function reasonAgainst(path: string): string | undefined {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  if (path.trim() === '' || parts.length === 0) return 'is empty';
  if (parts.some((part) => part.toLowerCase() === '.git')) return 'reaches into .git';
  return outsideReason(path);
}

/** How expected failures travel: as values, never as exceptions. Bugs throw. */

/** An outcome that is either a value or an expected failure. */
export type Result<T, F = Failure> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly failure: F };

/** Wraps a value as a success. */
export function ok<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

/** Wraps an expected failure. */
export function failed<F>(failure: F): { readonly ok: false; readonly failure: F } {
  return { ok: false, failure };
}

/** One mistake in one file, with its place and the way to fix it. */
export interface Diagnostic {
  /** Path as a person would type it, relative to the repository where possible. */
  readonly file: string;
  /** 1-based line; absent when the whole file is meant. */
  readonly line?: number;
  /** 1-based column, counted in UTF-16 units. */
  readonly column?: number;
  /** How many columns to underline; 1 when absent. */
  readonly length?: number;
  /** The text of the line itself, without its line end. */
  readonly source?: string;
  readonly message: string;
  /** What to do about it: allowed values, the nearest name, an example. */
  readonly hint?: string;
}

/** Something that keeps a command from starting or going on; ends in exit 1. */
export type Failure =
  | { readonly kind: 'diagnostics'; readonly diagnostics: readonly Diagnostic[] }
  | { readonly kind: 'usage'; readonly message: string; readonly hint?: string }
  | { readonly kind: 'environment'; readonly message: string; readonly hint?: string; readonly cause?: unknown }
  | { readonly kind: 'locked'; readonly message: string; readonly hint?: string };

/** Ends an exhaustive `switch`; reaching it at run time is a bug. */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${JSON.stringify(value)}`);
}

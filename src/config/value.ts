/** Frontmatter as typed, before anybody says what it means. */

/** A value as typed; offsets are into the file's text. Scalars stay text: `010` is never 8, a date never a timestamp. */
export type Value = { readonly start: number; readonly end: number } & (
  | { readonly kind: 'text'; readonly text: string; readonly quoted: boolean; readonly oneLine: boolean }
  | { readonly kind: 'null' }
  | { readonly kind: 'list'; readonly items: readonly Value[] }
  | { readonly kind: 'mapping' }
);

/** One key of the frontmatter. */
export interface Field {
  readonly key: string;
  readonly keyStart: number;
  readonly keyEnd: number;
  readonly value: Value;
}

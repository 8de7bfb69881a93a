/** What a call of a model cost. Unknown is `null`, never 0. */

/** Money and tokens of one call, as its program reports them. */
export interface Usage {
  readonly costUsd: number | null;
  /** All tokens that were counted: read, written, and from caches. */
  readonly tokens: number | null;
}

/** The usage of a program that does not report any. */
export const unknownUsage: Usage = { costUsd: null, tokens: null };

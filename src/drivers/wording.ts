/** Texts of envelopes: how long they may be, and how a mistake in one is told. */
import { z } from 'zod';

/** More is not kept of a text: it goes into files that people read. The transcript has all of it. */
const longestText = 4000;

/** A text of an envelope, cut where it is longer than anybody reads. */
export function longText() {
  return z.string().transform((value) => (value.length > longestText ? `${value.slice(0, longestText)}…` : value));
}

/** Says in one line what is wrong with an envelope. */
export function describeMistake(error: z.ZodError): string {
  const [issue] = error.issues;
  if (issue === undefined) return 'the envelope is not valid';
  return `the envelope is not valid: ${issue.path.join('.')}: ${issue.message}`;
}

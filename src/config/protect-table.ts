/** `[protect]` of giro.toml, and the limits of `[limits]` on one Issue's changes. Ceilings are here: no file lifts them. */
import { z } from 'zod';
import type { ProtectPolicy } from '../policy.js';
import { checkTable, filledText, insidePath, textListOf, wholeNumber, word, type Checked } from './check.js';

const megabyte = 1024 * 1024;
const largestFile = 100 * megabyte;
const largestMemory = 1024 * 1024 * megabyte;

/** Keys of `[limits]` that bound what one Issue may change. */
export const fileLimits = {
  files: wholeNumber(1, 1_000).default(200),
  lines: wholeNumber(1, 100_000).default(10_000),
  'file-size': size().default(5 * megabyte),
};

/** Keys of `[limits]` that bound what one agent, gate or set-up starts. */
export const processLimits = {
  processes: wholeNumber(16, 16_384).default(4_096),
  memory: size(largestMemory).nullable().default(null),
};

const globs = (example: string) => textListOf(insidePath(), example).default([]);

const schema = z.strictObject({
  paths: globs('["migrations/**"]'),
  tests: globs('["checks/**"]'),
  assertions: textListOf(expression(), '["\\\\bcheck_\\\\w+\\\\("]').default([]),
  scope: word(['open', 'strict']).default('open'),
});

/** Reads `[protect]`. */
export function readProtect(input: unknown): Checked<ProtectPolicy> {
  return checkTable(schema, input ?? {}, ['protect']);
}

/** A size such as `500KB` or `1.5MB`, in bytes. */
function size(largest = largestFile) {
  return z.unknown().transform((value, context): number => {
    const bytes = typeof value === 'string' ? parseSize(value) : undefined;
    if (bytes !== undefined && bytes <= largest) return bytes;
    const isFile = largest === largestFile;
    context.addIssue({
      code: 'custom',
      message: `must be a size of at most ${isFile ? '100MB' : '1024GB'}`,
      params: { hint: `write it with a unit, such as ${isFile ? '"500KB" or "1MB"' : '"512MB" or "8GB"'}` },
    });
    return z.NEVER;
  });
}

function parseSize(text: string): number | undefined {
  const found = /^(\d{1,9}(?:\.\d{1,3})?)\s?(B|KB|MB|GB)$/.exec(text);
  if (found === null) return undefined;
  const bytes = Math.floor(Number(found[1]) * 1024 ** ['B', 'KB', 'MB', 'GB'].indexOf(found[2] ?? ''));
  return bytes > 0 ? bytes : undefined;
}

function expression() {
  return filledText('must be a regular expression').superRefine((text, context) => {
    try {
      if (!new RegExp(text, 'gm').test('')) return;
      context.addIssue({ code: 'custom', message: 'must be a regular expression that does not match nothing at all' });
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      const hint = `${error.message}; in TOML '...' keeps backslashes as they are`;
      context.addIssue({ code: 'custom', message: 'must be a regular expression', params: { hint } });
    }
  });
}

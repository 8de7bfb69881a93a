/** The policy of the user's checkout: giro.toml and `.worktreeinclude`. */
import { join } from 'node:path';
import { decode } from '../config/frontmatter.js';
import { loadPolicy } from '../config/load.js';
import { failed, type Failure, type Result } from '../failure.js';
import { readIfExists } from '../platform/files.js';
import type { Policy } from '../policy.js';

/** Where to look. */
export interface PolicyPlace {
  /** Root of the user's checkout. */
  readonly top: string;
  /** giro's own environment. */
  readonly own: Readonly<Record<string, string | undefined>>;
  readonly processors: number;
}

/** Reads giro.toml from the person's checkout (L9). */
export async function readUserPolicy(request: PolicyPlace): Promise<Result<Policy, Failure>> {
  const bytes = await readIfExists(join(request.top, 'giro.toml'));
  if (bytes === null) {
    return failed({
      kind: 'environment',
      message: `there is no giro.toml in ${request.top}`,
      hint: 'write one with: giro init',
    });
  }
  const include = await readIfExists(join(request.top, '.worktreeinclude'));
  const source = decode('giro.toml', bytes);
  if (!source.ok) return failed({ kind: 'diagnostics', diagnostics: source.failure });
  return loadPolicy({
    text: source.value.text,
    file: 'giro.toml',
    repository: request.top,
    processors: request.processors,
    own: request.own,
    ...(include === null ? {} : { worktreeInclude: include.toString('utf8') }),
  });
}

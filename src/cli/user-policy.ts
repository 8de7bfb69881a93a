/** The policy of the user's checkout: giro.toml and `.worktreeinclude`. */
import { join } from 'node:path';
import { decode } from '../config/frontmatter.js';
import { loadPolicy } from '../config/load.js';
import { failed, type Failure, type Result } from '../failure.js';
import { readIfExists, reasonAgainstReading } from '../platform/files.js';
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
  const wrong = await unreadable(request.top, ['giro.toml', '.worktreeinclude']);
  if (wrong !== null) return failed(wrong);
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

/** A folder, a pipe or a file of somebody else's in the place of a file that is to be read. */
async function unreadable(top: string, names: readonly string[]): Promise<Failure | null> {
  for (const name of names) {
    const path = join(top, name);
    const reason = await reasonAgainstReading(path);
    if (reason === null) continue;
    return {
      kind: 'environment',
      message: `${path} cannot be read: ${reason}`,
      hint: 'put a file there that you can read',
    };
  }
  return null;
}

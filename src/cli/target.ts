/** The router: reads what `giro implement` and `giro status` are given, and picks the level. */
import { isAbsolute, relative, resolve } from 'node:path';
import { checkSpecSlug } from '../config/issue-file.js';
import { failed, ok, type Failure, type Result } from '../failure.js';
import { issueNumber, parseIssueId, type IssueId, type SpecSlug } from '../issue.js';
import { specsFolder } from '../spec.js';

/** What a command works on. The Issue is as typed: a number or `NN-slug`. */
export type Target =
  | { readonly kind: 'spec'; readonly spec: SpecSlug }
  | { readonly kind: 'issue'; readonly spec: SpecSlug; readonly issue: string }
  | { readonly kind: 'backlog' };

/**
 * Reads a target: `auth`, `docs/specs/auth`, `docs/specs/auth/SPEC.md`, `auth/03`, `auth/03-login`,
 * `docs/specs/auth/issues/03-login.md` or `docs/specs`; `docs/specs/auth/issues` is the Spec. Paths may be relative to the current folder or absolute.
 */
export function parseTarget(
  text: string,
  place: { readonly cwd: string; readonly top: string },
): Result<Target, Failure> {
  if (/\s/.test(text) || text.startsWith('goal:')) return later('a goal in words', text);
  if (text.startsWith('github:')) return later('a GitHub repository', text);
  if (text === '') return usage('the target is empty', examples);
  // As a path first, from here or from the top; then as a name, which is the same wherever one stands.
  const name = text.replace(/\/+$/, '');
  const names = [...pathsBelowSpecs(text, place), ...(name === '' ? [] : [name])].map(readName);
  const found = names.find((name) => name.ok);
  if (found !== undefined) return found;
  if (isAbsolute(text) || /^\.\.?(?:\/|$)/.test(text))
    return usage(`${JSON.stringify(text)} is not below ${specsFolder} here`, examples);
  return names.at(0) ?? usage(`${JSON.stringify(text)} is neither a Spec nor an Issue`, examples);
}

const examples = 'examples: auth, docs/specs/auth, auth/03, auth/03-login, docs/specs';

/** Reads `auth`, `auth/SPEC.md`, `auth/03-login` or `auth/issues/03-login.md`; empty: the backlog. */
function readName(inside: string): Result<Target, Failure> {
  if (inside === '') return ok({ kind: 'backlog' });
  const [slug = '', ...rest] = inside.split('/');
  const spec = checkSpecSlug(slug);
  if (!spec.ok) return usage(spec.failure.message, spec.failure.hint);
  if (rest.length === 0 || (rest.length === 1 && (rest[0] === 'SPEC.md' || rest[0] === 'issues')))
    return ok({ kind: 'spec', spec: spec.value });
  const name = (rest[0] === 'issues' ? rest.slice(1) : rest).join('/').replace(/\.md$/, '');
  const isIssue = /^\d{1,9}$/.test(name) || parseIssueId(name) !== undefined;
  if (isIssue) return ok({ kind: 'issue', spec: spec.value, issue: name });
  return usage(`${JSON.stringify(inside)} is neither a Spec nor an Issue`, examples);
}

/** Finds the Issue that was typed among those of a Spec. */
export function findIssue(ids: readonly IssueId[], typed: string): IssueId | undefined {
  const number = Number.parseInt(typed, 10);
  const slug = slugOf(typed);
  return ids.find((id) => issueNumber(id) === number && (slug === undefined || slug === slugOf(id)));
}

function slugOf(name: string): string | undefined {
  return /^\d+-(.+)$/.exec(name)?.[1];
}

/** What a path names below `docs/specs`, seen from the current folder and from the top. */
function pathsBelowSpecs(text: string, place: { readonly cwd: string; readonly top: string }): readonly string[] {
  return [place.cwd, place.top].flatMap((from) => {
    const path = relative(place.top, resolve(from, text)).replaceAll('\\', '/');
    if (path === specsFolder) return [''];
    return path.startsWith(`${specsFolder}/`) ? [path.slice(specsFolder.length + 1)] : [];
  });
}

function later(what: string, text: string): Result<Target, Failure> {
  return usage(
    `${what} is not a target in this version: ${JSON.stringify(text)}`,
    'name a Spec, such as: giro implement auth',
  );
}

function usage(message: string, hint?: string): Result<Target, Failure> {
  return failed({ kind: 'usage', message, ...(hint === undefined ? {} : { hint }) });
}

/** Lists names for a hint: not more than a person reads. */
export function someOf(names: readonly string[]): string {
  const more = names.length - 20;
  return more > 0 ? `${names.slice(0, 20).join(', ')} and ${String(more)} more` : names.join(', ');
}

/** `[worktree]` of giro.toml, and `.worktreeinclude`. */
import { isAbsolute, relative, resolve, sep } from 'node:path';
import { z } from 'zod';
import { failed, ok, type Diagnostic, type Result } from '../failure.js';
import type { WorktreePolicy } from '../policy.js';
import { checkTable, duration, filledText, insidePath, reasonAgainst, textListOf, type Checked } from './check.js';
import { placeAtLine, quote } from './diagnostic.js';
import { distinct } from './fields.js';

const lockFiles = [
  'package-lock.json',
  'pnpm-lock.yaml',
  'yarn.lock',
  'bun.lock',
  'Cargo.lock',
  'go.sum',
  'poetry.lock',
  'uv.lock',
  'requirements*.txt',
];
const dependencyFolders = ['node_modules', '.venv', 'venv', 'vendor/bundle', 'target'];
const quarterHourMs = 15 * 60_000;

const paths = (example: string) => textListOf(insidePath(), example);

/** What `[worktree]` is read against. */
export interface WorktreeContext {
  /** Root of the user's checkout. */
  readonly repository: string;
  readonly home: string | undefined;
  /** Patterns of `.worktreeinclude`, which join `copy`. */
  readonly included: readonly string[];
}

/** Reads `[worktree]`. */
export function readWorktree(input: unknown, context: WorktreeContext): Checked<WorktreePolicy> {
  const { problems, value } = checkTable(schemaFor(context), input ?? {}, ['worktree']);
  if (value === undefined) return { problems };
  const { root, git, setup, inputs, keep, copy, link } = value;
  return {
    problems: [],
    value: {
      ...(root === undefined ? {} : { root }),
      git,
      ...(setup === undefined ? {} : { setup }),
      setupTimeoutMs: value['setup-timeout'],
      inputs,
      keep,
      copy: distinct([...copy, ...context.included]),
      link,
    },
  };
}

function schemaFor(context: WorktreeContext) {
  return z.strictObject({
    root: filledText('must be the path of a folder').transform(rootFolder(context)).optional(),
    git: z.string({ error: 'must be "linked"' }).transform(onlyLinked).default('linked'),
    setup: filledText('must be a shell command, such as "npm ci"').optional(),
    'setup-timeout': duration().default(quarterHourMs),
    inputs: paths('["package-lock.json"]').default(lockFiles),
    keep: paths('["node_modules"]').default(dependencyFolders),
    copy: paths('[".env.test"]').default([]),
    link: paths('["data"]').default([]),
  });
}

function onlyLinked(git: string, context: z.RefinementCtx): 'linked' {
  if (git === 'linked') return git;
  const hint = git === 'sealed' ? '"sealed" is not available in this version' : 'leave it out';
  return refuse(context, 'must be "linked"', hint);
}

function rootFolder({ repository, home }: WorktreeContext) {
  return (root: string, context: z.RefinementCtx): string => {
    const fromHome = root === '~' || root.startsWith('~/');
    if (fromHome && home === undefined)
      return refuse(context, 'must be an absolute path while HOME is not set', rootExample);
    const folder = fromHome && home !== undefined ? home + root.slice(1) : root;
    if (!isAbsolute(folder)) return refuse(context, 'must be absolute or start with ~/', rootExample);
    const path = resolve(folder);
    const inside = relative(resolve(repository), path);
    if (inside === '..' || inside.startsWith(`..${sep}`) || isAbsolute(inside)) return path;
    const hint = `other tools would walk into worktrees inside it; ${rootExample}`;
    return refuse(context, 'must be outside the repository', hint);
  };
}

const rootExample = 'such as root = "~/.cache/giro"';

function refuse(context: z.RefinementCtx, message: string, hint: string): never {
  context.addIssue({ code: 'custom', message, params: { hint } });
  return z.NEVER;
}

/** Reads `.worktreeinclude`: one gitignore pattern a line, as globs from the root of the repository. */
export function readWorktreeInclude(file: string, text: string): Result<readonly string[], readonly Diagnostic[]> {
  const problems: Diagnostic[] = [];
  const globs: string[] = [];
  for (const [index, line] of text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .entries()) {
    const pattern = line.replace(/(?<!\\)\s+$/, '');
    if (pattern === '' || pattern.startsWith('#')) continue;
    const reason = pattern.startsWith('!')
      ? 'takes a pattern back, which is not supported'
      : reasonAgainst(pattern.replace(/^\//, ''));
    if (reason === undefined) globs.push(...globsOf(pattern));
    else {
      const place = { ...placeAtLine({ file, text }, index + 1), length: pattern.length };
      problems.push({
        ...place,
        message: `${quote(pattern)} ${reason}`,
        hint: 'write patterns of files to copy, one a line',
      });
    }
  }
  return problems.length > 0 ? failed(problems) : ok(globs);
}

/** A pattern without a slash matches at any depth; one that matches a folder means everything in it. */
function globsOf(pattern: string): readonly string[] {
  const bare = pattern.replace(/^\//, '').replace(/\/$/, '');
  const glob = /\/./.test(pattern) ? bare : `**/${bare}`;
  return pattern.endsWith('/') ? [`${glob}/**`] : [glob, `${glob}/**`];
}

/** Reads Specs and Issues from commits. */
import { readFields, splitFrontmatter } from '../config/frontmatter.js';
import { parseSpecFolder, type ParsedSpec } from '../config/issue-file.js';
import type { Diagnostic, Result } from '../failure.js';
import type { IssueState, Oid, Phase, SpecSlug } from '../issue.js';
import { specsFolder } from '../spec.js';
import type { CommitInfo, Git } from '../worktree/git-types.js';
import { checkpointOf, trailer } from './trailers.js';

/** One file of a Spec's folder. */
export interface SpecFile {
  /** Path inside the repository. */
  readonly path: string;
  readonly bytes: Buffer;
}

/** One file of a Spec's folder as a commit has it. */
export interface ListedFile {
  /** Path inside the repository. */
  readonly path: string;
  readonly oid: Oid;
}

/** Reads all files of a Spec's folder at a commit; empty when it has none. */
export async function readSpecFiles(git: Git, commit: Oid, slug: SpecSlug): Promise<readonly SpecFile[]> {
  const listed = await listSpecFiles(git, commit, slug);
  const contents = await git.readBlobs(listed.map(({ oid }) => oid));
  return listed.flatMap(({ path }, at) => {
    const bytes = contents[at];
    return bytes === undefined ? [] : [{ path, bytes }];
  });
}

/** Lists all files of a Spec's folder at a commit, unread; empty when it has none. */
export async function listSpecFiles(git: Git, commit: Oid, slug: SpecSlug): Promise<readonly ListedFile[]> {
  const folder = `${specsFolder}/${slug}`;
  const entry = await git.readPath(commit, folder);
  if (entry === null || entry.mode !== '040000') return [];
  const files = await git.listTree(entry.oid);
  return files
    .filter((file) => file.mode === '100644' || file.mode === '100755')
    .map(({ path, oid }) => ({ path: `${folder}/${path}`, oid }));
}

/** Reads a Spec with its Issues at a commit. */
export async function readSpecAt(
  git: Git,
  commit: Oid,
  slug: SpecSlug,
): Promise<Result<ParsedSpec, { readonly kind: 'diagnostics'; readonly diagnostics: readonly Diagnostic[] }>> {
  return parseSpecFolder({ slug, files: await readSpecFiles(git, commit, slug) });
}

/** Reads one file of `docs/specs/` at a commit as text; `null` when it is not there. */
export async function readIssueText(git: Git, commit: Oid, path: string): Promise<string | null> {
  const entry = await git.readPath(commit, path);
  return entry === null ? null : (await git.readBlob(entry.oid)).toString('utf8');
}

/** How many commits a person may have put above the engine's newest one. */
const mostByHand = 1000;

/** Finds the newest commit of the engine on a branch; `byHand`: a person's commits are above it. */
export async function newestRecord(
  git: Pick<Git, 'readCommit'>,
  branch: Oid,
): Promise<{ readonly record: Oid | null; readonly byHand: boolean }> {
  let next: Oid | undefined = branch;
  for (let count = 0; next !== undefined && count < mostByHand; count += 1) {
    const commit: CommitInfo = await git.readCommit(next);
    if (isEngines(commit)) return { record: next, byHand: next !== branch };
    next = commit.parents[0];
  }
  return { record: null, byHand: true };
}

/** An engine commit that a person amended or rebased keeps its trailers, but not the tree that they tell. */
export function isEngines({ message, tree }: CommitInfo): boolean {
  return checkpointOf(message) !== undefined && (trailer(message, 'Giro-Tree') ?? tree) === tree;
}

/** Reads the engine's own keys from an Issue file; a file or a value that cannot be read has none. */
export function readCheckpoint(text: string): {
  readonly state: IssueState | null;
  readonly phase: Phase | null;
  /** The value of `state` as it stands there, known or not. */
  readonly word: string | null;
} {
  const source = { file: '', text };
  const split = splitFrontmatter(source);
  const fields = split.ok ? readFields(source, split.value).fields : [];
  const textOf = (key: string): string | undefined => {
    const value = fields.find((field) => field.key === key)?.value;
    return value?.kind === 'text' ? value.text : undefined;
  };
  const [state, phase] = [textOf('state'), textOf('phase')];
  return {
    state: states.find((known) => known === state) ?? null,
    phase: phases.find((known) => known === phase) ?? null,
    word: state ?? null,
  };
}

const states: readonly IssueState[] = ['ready', 'in-progress', 'done', 'needs-human', 'wontfix'];
const phases: readonly Phase[] = ['working', 'judging', 'integrating'];

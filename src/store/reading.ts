/** What a judge or planner is shown of a commit: its code, and its own Spec without anything that the engine noted there. */
import { splitFrontmatter } from '../config/frontmatter.js';
import type { IssueId, Oid, SpecSlug } from '../issue.js';
import { specsFolder } from '../spec.js';
import type { Git } from '../worktree/git-types.js';
import { readSpecFiles } from './read.js';
import { withFiles } from './tree.js';

/** What there is to read. */
export interface ReadingTree {
  readonly tree: Oid;
  /** Body of SPEC.md. */
  readonly spec: string;
  /** Body of an Issue's file; empty when the commit has none. */
  bodyOf(issue: IssueId): string;
}

/** What a tree to read in is made of. */
export interface ReadingRequest {
  readonly spec: SpecSlug;
  readonly commit: Oid;
  readonly code: Oid;
  /** Takes out of SPEC.md and Issues what the engine noted there. */
  readonly withoutRecord: (text: string) => string;
}

/** Makes the tree: `code` with `docs/specs/<spec>` of `commit`, without History and checkpoint keys. No other Spec is in it. */
export async function readingTree(
  git: Git,
  { spec, commit, code, withoutRecord }: ReadingRequest,
): Promise<ReadingTree> {
  const folder = `${specsFolder}/${spec}`;
  const files = new Map<string, Uint8Array | string>();
  const bodies = new Map<string, string>();
  for (const { path, bytes } of await readSpecFiles(git, commit, spec)) {
    const isText = path === `${folder}/SPEC.md` || (path.startsWith(`${folder}/issues/`) && path.endsWith('.md'));
    const text = isText ? withoutRecord(bytes.toString('utf8')) : null;
    files.set(path, text ?? bytes);
    if (text !== null) bodies.set(path, bodyOf(text));
  }
  return {
    tree: await withFiles(git, code, files),
    spec: bodies.get(`${folder}/SPEC.md`) ?? '',
    bodyOf: (issue) => bodies.get(`${folder}/issues/${issue}.md`) ?? '',
  };
}

function bodyOf(text: string): string {
  const split = splitFrontmatter({ file: '', text });
  return split.ok ? split.value.body : text;
}

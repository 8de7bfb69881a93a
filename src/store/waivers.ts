/** Which reds a person accepted, as the files on an integration branch tell. */
import { historyOf } from '../config/splice.js';
import type { Oid, SpecSlug, Waived } from '../issue.js';
import type { Git } from '../worktree/git-types.js';
import { acceptedIds, waiversOf } from './findings.js';
import { readHistory } from './history.js';
import { listSpecFiles, readCheckpoint, readIssueText, type ListedFile } from './read.js';

/** One waiver that the work stands on. */
export interface Waiver extends Waived {
  /** The Issue it was given for, or the Spec. */
  readonly where: string;
}

/** How many files are held at once: there may be thousands, and most have nothing of this. */
const readAtOnce = 64;

/** Gives the waivers that the integrated work of a Spec stands on at a commit: of its done Issues, and its own. */
export async function readWaivers(git: Git, spec: SpecSlug, commit: Oid): Promise<readonly Waiver[]> {
  const files = await listSpecFiles(git, commit, spec);
  const isSpec = ({ path }: ListedFile): number => Number(path.endsWith('/SPEC.md'));
  const inOrder = [...files].sort((left, right) => isSpec(left) - isSpec(right));
  const found: Waiver[] = [];
  for (let at = 0; at < inOrder.length; at += readAtOnce) {
    const some = inOrder.slice(at, at + readAtOnce);
    const contents = await git.readBlobs(some.map(({ oid }) => oid));
    found.push(...some.flatMap(({ path }, index) => waiversIn(spec, path, contents[index]?.toString('utf8') ?? '')));
  }
  return found;
}

function waiversIn(spec: SpecSlug, path: string, text: string): readonly Waiver[] {
  const issue = /\/issues\/([^/]+)\.md$/.exec(path)?.[1];
  if (issue === undefined && !path.endsWith('/SPEC.md')) return [];
  if (issue !== undefined && readCheckpoint(text).state !== 'done') return [];
  const where = issue ?? spec;
  return waiversOf(readHistory(historyOf(text))).map((waived) => ({ ...waived, where }));
}

/** Gives the ids of the findings that a person accepted for a file of a Spec: SPEC.md, or an Issue. */
export async function readAccepted(git: Git, commit: Oid, path: string): Promise<ReadonlySet<string>> {
  const text = await readIssueText(git, commit, path);
  return acceptedIds(readHistory(text === null ? '' : historyOf(text)));
}

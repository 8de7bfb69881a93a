/** How the Issues of a Spec stand, from refs and blobs alone: what `giro status` shows and a run starts from. */
import { historyOf } from '../config/splice.js';
import type { IssueFacts } from '../event.js';
import type { Issue, IssueId, Oid, SpecSlug } from '../issue.js';
import type { Spec } from '../spec.js';
import type { Git } from '../worktree/git-types.js';
import { lastAttempt, packetQuestion, readHistory } from './history.js';
import { readCheckpoint, readIssueText } from './read.js';
import { issueRefPrefix } from './refs.js';

/** Branches of the Issues of a Spec, by Issue. */
export type IssueBranches = ReadonlyMap<string, Oid>;

/** Lists the Issue branches of a Spec. */
export async function readBranches(git: Git, spec: SpecSlug): Promise<IssueBranches> {
  const prefix = issueRefPrefix(spec);
  const refs = await git.listRefs(prefix);
  return new Map([...refs].map(([ref, oid]) => [ref.slice(prefix.length), oid]));
}

/** Tells how each Issue stands. An Issue in progress is read from its own branch, one at rest from the Spec's files. */
export async function readFacts(
  git: Git,
  request: { readonly spec: Spec; readonly branches: IssueBranches; readonly wave: (id: IssueId) => number },
): Promise<readonly IssueFacts[]> {
  const own = new Map<IssueId, string | null>();
  const read = request.spec.issues.map((issue) => {
    const branch = request.branches.get(issue.id);
    const open = issue.state === 'ready' || issue.state === 'in-progress';
    if (!open || branch === undefined) return undefined;
    return readIssueText(git, branch, issue.path).then((text) => own.set(issue.id, text));
  });
  await Promise.all(read.filter((reading) => reading !== undefined));
  return request.spec.issues.map((issue) => factsOf(issue, own.get(issue.id) ?? null, request.wave(issue.id)));
}

function factsOf(issue: Issue, own: string | null, wave: number): IssueFacts {
  const common = { id: issue.id, title: issue.title, wave, dependsOn: issue.dependsOn };
  const mine = own === null ? null : readCheckpoint(own);
  // A branch that says `done` is one that landed: what the integration branch says counts.
  if (own === null || mine === null || mine.state !== 'in-progress') {
    const question = issue.state === 'needs-human' ? { question: packetQuestion(issue.history) } : {};
    return { ...common, state: issue.state, attempts: lastAttempt(readHistory(issue.history)), ...question };
  }
  const attempts = lastAttempt(readHistory(historyOf(own)));
  return { ...common, state: 'in-progress', attempts, ...(mine.phase === null ? {} : { phase: mine.phase }) };
}

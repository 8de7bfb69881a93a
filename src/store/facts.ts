/** How the Issues of a Spec stand, from refs and blobs alone: what `giro status` shows and a run starts from. */
import { historyOf } from '../config/splice.js';
import type { IssueFacts } from '../event.js';
import type { Issue, IssueId, IssueState, Oid, SpecSlug } from '../issue.js';
import type { Spec } from '../spec.js';
import type { Git } from '../worktree/git-types.js';
import { closings, entriesOf, lastAttempt, packetQuestion, readHistory, type HistoryEntry } from './history.js';
import { spendingOf } from './ledger.js';
import { newestRecord, readCheckpoint, readIssueText } from './read.js';
import { issueRefPrefix } from './refs.js';

/** Branches of the Issues of a Spec, by Issue. */
export type IssueBranches = ReadonlyMap<string, Oid>;

/** The Issues of a Spec, and where they are looked for. */
interface FactsRequest {
  readonly spec: Spec;
  readonly branches: IssueBranches;
  readonly wave: (id: IssueId) => number;
}

/** Lists the Issue branches of a Spec. */
export async function readBranches(git: Git, spec: SpecSlug): Promise<IssueBranches> {
  const prefix = issueRefPrefix(spec);
  const refs = await git.listRefs(prefix);
  return new Map([...refs].map(([ref, oid]) => [ref.slice(prefix.length), oid]));
}

/** The same, but for Issues at rest, which may be thousands, and whose branches nothing goes on from. */
export async function readOpenBranches(
  git: Git,
  spec: SpecSlug,
  atRest: (issue: string) => boolean,
): Promise<IssueBranches> {
  const names = await branchNames(git, spec);
  const wanted = names.filter((issue) => !atRest(issue));
  if (wanted.length === names.length) return readBranches(git, spec);
  const values = await Promise.all(wanted.map((issue) => git.readRef(issueRefPrefix(spec) + issue)));
  return new Map(
    wanted.flatMap((issue, at): [string, Oid][] => {
      const oid = values[at] ?? null;
      return oid === null ? [] : [[issue, oid]];
    }),
  );
}

/** The branches of those Issues of a Spec that are told from their branches. */
export function readWorkedOn(git: Git, { slug, issues }: Spec): Promise<IssueBranches> {
  const asleep = new Set<string>(issues.filter((issue) => !isWorkedOn(issue)).map(({ id }) => id));
  return readOpenBranches(git, slug, (issue) => asleep.has(issue));
}

function isWorkedOn({ state }: Issue): boolean {
  return state === 'ready' || state === 'in-progress';
}

/** Names the Issues of a Spec that have a branch. */
export async function branchNames(git: Git, spec: SpecSlug): Promise<readonly string[]> {
  const prefix = issueRefPrefix(spec);
  return (await git.listRefNames(prefix)).map((ref) => ref.slice(prefix.length));
}

/** How an Issue stands, and the History that says so. */
export interface IssueStanding {
  readonly facts: IssueFacts;
  readonly history: readonly HistoryEntry[];
}

/** Tells how each Issue stands. An Issue in progress is read from its own branch, one at rest from the Spec's files. */
export async function readFacts(git: Git, request: FactsRequest): Promise<readonly IssueFacts[]> {
  return (await readStandings(git, request)).map(({ facts }) => facts);
}

/** The same with the History of each. */
export async function readStandings(git: Git, request: FactsRequest): Promise<readonly IssueStanding[]> {
  const own = new Map<IssueId, string | null>();
  const read = request.spec.issues.map((issue) => {
    const branch = request.branches.get(issue.id);
    if (!isWorkedOn(issue) || branch === undefined) return undefined;
    return readOwn(git, branch, issue.path).then((text) => own.set(issue.id, text));
  });
  await Promise.all(read.filter((reading) => reading !== undefined));
  return request.spec.issues.map((issue) => standingOf(issue, own.get(issue.id) ?? null, request.wave(issue.id)));
}

/** The file as the engine wrote it last, below what a person may have put on the branch. */
async function readOwn(git: Git, branch: Oid, path: string): Promise<string | null> {
  const { record } = await newestRecord(git, branch);
  return record === null ? null : readIssueText(git, record, path);
}

function standingOf(issue: Issue, own: string | null, wave: number): IssueStanding {
  const common = { id: issue.id, title: issue.title, wave, dependsOn: issue.dependsOn };
  const published = entriesOf(issue);
  const mine = own === null ? null : { ...readCheckpoint(own), history: readHistory(historyOf(own)) };
  // What landed or was answered since is not on the branch.
  if (mine === null || closings(published) > closings(mine.history)) return atRest(issue.state, common, published);
  // Escalated, but giro ended before the integration branch could show it.
  if (mine.state === 'needs-human') return atRest('needs-human', common, mine.history);
  if (mine.state !== 'in-progress') return atRest(issue.state, common, published);
  const attempts = lastAttempt(mine.history);
  const phase = mine.phase === null ? {} : { phase: mine.phase };
  const facts = { ...common, state: 'in-progress' as const, attempts, ...phase, ...spent(mine.history) };
  return { facts, history: mine.history };
}

function atRest(
  state: IssueState,
  common: Pick<IssueFacts, 'id' | 'title' | 'wave' | 'dependsOn'>,
  history: readonly HistoryEntry[],
): IssueStanding {
  const question = state === 'needs-human' ? { question: packetQuestion(history) } : {};
  return { facts: { ...common, state, attempts: lastAttempt(history), ...question, ...spent(history) }, history };
}

function spent(history: readonly HistoryEntry[]): Pick<IssueFacts, 'spending'> {
  const spending = spendingOf(history);
  return spending.calls === 0 ? {} : { spending };
}

/** The code of a simulated world: what workers make of it, and what is wrong with it. Pure. */
import type { IssueId } from '../../src/issue.js';
import type { Play, Script, ScriptedIssue } from './script.js';

/** Files of a code tree, by path. */
export type Files = ReadonlyMap<string, string>;

/** The code that everything starts from. */
export const baseFiles: Files = new Map([
  ['base.txt', 'base\n'],
  ['shared-1.txt', 'top\n'],
  ['shared-2.txt', 'top\n'],
]);

/** The file of an Issue's own. */
export function ownFile(issue: IssueId): string {
  return `src/${issue}.txt`;
}

/** The Issue of an id; one that a planner wrote stands alone. */
export function issueIn({ issues }: Pick<Script, 'issues'>, id: IssueId): ScriptedIssue {
  const alone = { dependsOn: [], touches: [], resources: [], maxAttempts: null, shared: null, against: null };
  return issues.find((issue) => issue.id === id) ?? { id, ...alone };
}

/** What a worker has to know. */
export interface Work {
  readonly issue: IssueId;
  readonly attempt: number;
  /** How often a person answered before. */
  readonly life: number;
  readonly play: Play;
}

/** The files after an attempt. */
export function worked(script: Script, before: Files, work: Work): Files {
  const { issue, attempt, play } = work;
  if (play === 'nothing') return before;
  const files = new Map([...before].map(([path, text]) => [path, resolved(text, play === 'overrule')]));
  const { shared } = issueIn(script, issue);
  if (shared !== null) files.set(shared, withLine(files.get(shared) ?? '', issue));
  const isGood = play === 'good' || play === 'blocked-good' || play === 'overrule';
  const mistake = play === 'same' ? 'bad\n' : `bad ${String(attempt)}\n`;
  files.set(ownFile(issue), isGood ? good(script, before, work) : mistake);
  return files;
}

/** Half of that, as an agent leaves it that is killed. */
export function halfWorked(before: Files, { issue, attempt }: Work): Files {
  return new Map([...before, [ownFile(issue), `half of ${String(attempt)}\n`]]);
}

/** Whoever sees what does not go with it may make both go together. */
function good({ chance, issues }: Script, before: Files, { issue, attempt, life }: Work): string {
  const others = issues.filter((one) => one.against === issue || issueIn({ issues }, issue).against === one.id);
  const seen = others.filter((one) => before.has(ownFile(one.id)));
  const isSeen = life >= 2 || chance.is(0.7, 'cure', issue, attempt);
  return ['good', ...(isSeen ? seen.map((one) => `with ${one.id}`) : []), ''].join('\n');
}

/** Both sides, or the own one whole. Of a conflict within a conflict nobody can tell which that is. */
function resolved(text: string, ownOnly: boolean): string {
  const marks = text.split('\n').filter((line) => /^(<{7}|>{7})/.test(line)).length;
  if (marks === 0) return text;
  const told = ownOnly && marks === 2 ? (text.split('=======\n')[0] ?? '') : text;
  return [...new Set(told.split('\n').filter((line) => line !== '' && !/^(<{7}|={7}|>{7})/.test(line))), ''].join('\n');
}

function withLine(text: string, line: string): string {
  return text.split('\n').includes(line) ? text : `${text}${line}\n`;
}

/** Everything that is wrong with code; empty: it is green. */
export function wrongs({ issues }: Script, files: Files): readonly string[] {
  const found: string[] = [];
  for (const [path, text] of files) {
    if (text.includes('<<<<<<<')) found.push(`${path}: conflict markers`);
    else if (path.startsWith('src/') && !text.startsWith('good')) found.push(`${path}: ${text.trim()}`);
  }
  for (const { id, against } of issues) {
    if (against === null) continue;
    const [mine, theirs] = [files.get(ownFile(id)), files.get(ownFile(against))];
    if (mine === undefined || theirs === undefined) continue;
    if (!mine.includes(`with ${against}`) && !theirs.includes(`with ${id}`))
      found.push(`${id} and ${against} do not go together`);
  }
  return found;
}

/** What the Spec as a whole lacks. */
export function lacking({ gaps }: Script, files: Files): readonly string[] {
  const closed = [...files.keys()].filter((path) => /^src\/\d+-gap/.test(path)).length;
  return closed >= gaps ? [] : [`the Spec lacks ${String(gaps - closed)} of its parts`];
}

/** What an Issue that landed must have left in every later tip. */
export function lost({ issues }: Script, files: Files, id: IssueId): readonly string[] {
  const shared = issues.find((issue) => issue.id === id)?.shared ?? null;
  const isThere = files.get(ownFile(id))?.startsWith('good') === true;
  const inShared = shared === null || (files.get(shared) ?? '').split('\n').includes(id);
  return [...(isThere ? [] : [ownFile(id)]), ...(inShared ? [] : [shared])];
}

/** Where a Spec starts that depends on others: at their proven tips (DESIGN 3). */
import { failed, ok, type Failure, type Result } from '../failure.js';
import { shortOid, type Oid, type SpecSlug } from '../issue.js';
import type { Policy } from '../policy.js';
import { specsFolder } from '../spec.js';
import { readSpecAt } from '../store/read.js';
import type { Along } from '../store/integration.js';
import { integrationRef } from '../store/refs.js';
import { checkpointOf, trailer } from '../store/trailers.js';
import { codeTree } from '../store/tree.js';
import type { OpenedGit } from '../worktree/git-types.js';
import { proofHolds } from './landing.js';

/** What stacking is decided from. */
interface StackSource {
  readonly git: OpenedGit;
  readonly policy: Policy;
}

/** The proven work of a Spec that others depend on. */
type ProvedTip =
  | { readonly kind: 'proved'; readonly tip: Oid }
  | { readonly kind: 'unproved'; readonly why: string }
  /** There is no such Spec. */
  | { readonly kind: 'none' };

/** Finds the proven work of a Spec: on its branch, else in the history of the person's commit. */
export async function provedTip({ git, policy }: StackSource, spec: SpecSlug): Promise<ProvedTip> {
  const tip = await git.readRef(integrationRef(spec));
  if (tip === null) return provedInHead(git, spec);
  const read = await readSpecAt(git, tip, spec);
  if (!read.ok || read.value.spec.state !== 'done') return { kind: 'unproved', why: `giro/${spec} is not proved` };
  return (await proofHolds(git, policy, tip))
    ? { kind: 'proved', tip }
    : { kind: 'unproved', why: `the proof of giro/${spec} does not hold for the gates of now` };
}

async function provedInHead(git: OpenedGit, spec: SpecSlug): Promise<ProvedTip> {
  const { head } = git.user;
  const tip = await proofIn(git, spec, head);
  if (tip !== null) return { kind: 'proved', tip };
  if ((await git.readPath(head, `${specsFolder}/${spec}/SPEC.md`)) === null) return { kind: 'none' };
  return { kind: 'unproved', why: `there is no giro/${spec}, and no proof of it in your commit ${shortOid(head)}` };
}

/** The newest commit in the history of another that proves a Spec. */
async function proofIn(git: OpenedGit, spec: SpecSlug, commit: Oid): Promise<Oid | null> {
  const folder = `${specsFolder}/${spec}`;
  const log = await git.logBlobs([commit], [], folder);
  const proved = log.find(
    ({ message, changes }) =>
      checkpointOf(message) === 'validated' &&
      trailer(message, 'Giro-Validated') !== undefined &&
      changes.some(({ path }) => path === `${folder}/SPEC.md`),
  );
  return proved?.commit ?? null;
}

/** Where a Spec starts. */
export interface Stack {
  /** What a first run makes `giro/<spec>` from. */
  readonly base: Oid;
  /** Proven tips that go through the lane before anything starts. */
  readonly along: readonly Along[];
}

/** Finds where a Spec starts, or what it depends on that is not proved. */
export async function stackOf(
  source: StackSource,
  spec: { readonly slug: SpecSlug; readonly dependsOn: readonly SpecSlug[]; readonly tip: Oid | null },
): Promise<Result<Stack, Failure>> {
  const { git } = source;
  const { head } = git.user;
  const wanted: Along[] = [];
  for (const on of spec.dependsOn) {
    const found = await provedTip(source, on);
    if (found.kind === 'proved') wanted.push({ name: `giro/${on}`, tip: found.tip, proved: true });
    // One that has an earlier proof of it goes on with that.
    else if (spec.tip === null || (await proofIn(git, on, spec.tip)) === null)
      return failed(notProved(spec.slug, on, found));
  }
  if (spec.tip !== null) return ok({ base: head, along: await missingIn(git, spec.tip, wanted) });
  const apart = await missingIn(git, head, wanted);
  const [first] = apart;
  if (first === undefined) return ok({ base: head, along: [] });
  // Where the person's commit is needed as well, it is what the branch is made from.
  const inHead = await Promise.all(wanted.map(({ tip }) => git.isAncestor(tip, head)));
  const needsHead = inHead.includes(true) && !(await git.isAncestor(head, first.tip));
  return ok(
    needsHead ? { base: head, along: apart } : { base: first.tip, along: await missingIn(git, first.tip, apart) },
  );
}

function notProved(spec: SpecSlug, on: SpecSlug, found: Exclude<ProvedTip, { kind: 'proved' }>): Failure {
  const message =
    found.kind === 'none'
      ? `${spec} depends on ${on}, which does not exist`
      : `${spec} depends on ${on}, which it cannot start from: ${found.why}`;
  const hint =
    found.kind === 'none'
      ? 'mend depends-on in SPEC.md'
      : `giro implement ${on}, or all of them: giro implement ${specsFolder}`;
  return { kind: 'usage', message, hint };
}

/** Those whose work a commit does not have, without what another of them brings anyway. */
async function missingIn(git: OpenedGit, commit: Oid, wanted: readonly Along[]): Promise<readonly Along[]> {
  const missing: Along[] = [];
  for (const one of wanted) if (!(await git.isAncestor(one.tip, commit))) missing.push(one);
  const tops: Along[] = [];
  for (const one of missing) {
    const others = missing.filter((other) => other.tip !== one.tip);
    const isInside = await Promise.all(others.map((other) => git.isAncestor(one.tip, other.tip)));
    if (!isInside.includes(true) && !tops.some((top) => top.tip === one.tip)) tops.push(one);
  }
  return tops;
}

/** Says what comes along with a Spec, one line each. */
export async function alongNotices(git: OpenedGit, stack: Stack, fresh: boolean): Promise<readonly string[]> {
  const { head } = git.user;
  const lines: string[] = [];
  if (fresh && stack.base !== head) {
    lines.push(
      `starts at the proven ${shortOid(stack.base)}, not at your commit: ${await whatComes(git, head, stack.base)}`,
    );
  }
  for (const { name, tip } of stack.along) {
    lines.push(`takes along ${name}, proved at ${shortOid(tip)}: ${await whatComes(git, head, tip)}`);
  }
  return lines;
}

/** What a commit has that the person's has not. */
async function whatComes(git: OpenedGit, head: Oid, tip: Oid): Promise<string> {
  const codeOf = async (commit: Oid): Promise<Oid> => codeTree(git, (await git.readCommit(commit)).tree);
  const common = (await git.mergeBase(head, tip)) ?? head;
  const changes = await git.diffTrees(await codeOf(common), await codeOf(tip));
  const shown = changes.slice(0, 5).map(({ path }) => path);
  const more = changes.length > shown.length ? ` and ${String(changes.length - shown.length)} more` : '';
  return changes.length === 0 ? 'no code differs' : `${shown.join(', ')}${more} come along`;
}

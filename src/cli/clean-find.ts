/** Finds what is left of a Spec on this machine, and decides for each thing whether it can go. Removes nothing. */
import { basename, dirname, join } from 'node:path';
import { parseIssueId, type IssueId, type IssueState, type Oid, type SpecSlug } from '../issue.js';
import { bytesOnDisk } from '../platform/disk.js';
import { kindOf } from '../platform/files.js';
import { listFolder } from '../platform/folders.js';
import { realPath } from '../platform/links.js';
import { occupantsOf } from '../platform/occupants.js';
import { readBranches, readStandings, type IssueBranches } from '../store/facts.js';
import { readSpecAt } from '../store/read.js';
import { branchName, integrationRef, issueRef, issueRefPrefix } from '../store/refs.js';
import { lockReason } from '../worktree/admin.js';
import { notesOn } from '../worktree/facts.js';
import type { LinkedWorktree, OpenedGit } from '../worktree/git-types.js';
import { filesToSave, type IgnoredPath } from '../worktree/ignored.js';
import { takeInventory } from '../worktree/inventory.js';
import { salvagePrefix } from '../worktree/salvage.js';
import type { RoomOwner } from '../worktree/room.js';
import { goes, stays, type Found } from './clean-items.js';
import { leftRunning } from './leftovers.js';
import { halfRegistrations } from './clean-registrations.js';

/** Where to look, and how. */
export interface FindPorts {
  readonly git: OpenedGit;
  /** The folder outside of the repository with everything of its Specs. */
  readonly room: string;
  readonly owner: RoomOwner;
  /** How long what is to end has for it. */
  readonly graceMs: number;
  /** A folder for an index. */
  readonly scratch: string;
  /** Also what holds work that is nowhere else: it is saved first. */
  readonly save: boolean;
}

/** A Spec as its branches tell it. */
interface View {
  readonly spec: SpecSlug;
  readonly tip: Oid | null;
  /** `null`: the Spec on its branch cannot be read. */
  readonly states: ReadonlyMap<string, IssueState> | null;
  readonly branches: IssueBranches;
  /** Full names of the Issues' branches of which the integration branch has every commit. */
  readonly integrated: ReadonlySet<string>;
  /** Full names of branches that are checked out somewhere, with where. */
  readonly checkedOut: ReadonlyMap<string, string>;
}

/** Finds everything of a Spec. */
export async function findOfSpec(ports: FindPorts, spec: SpecSlug): Promise<readonly Found[]> {
  const view = await readView(ports.git, spec);
  const linked = (await ports.git.listWorktrees()).filter(({ locked }) => locked?.startsWith(`giro ${spec} `) === true);
  const found: Found[] = [];
  for (const one of linked) found.push(await worktree(ports, view, one));
  found.push(...(await halfRegistrations(ports.git.commonDir, spec)));
  for (const [name, oid] of view.branches) found.push(await branch(ports, view, { name, oid }));
  found.push(...(await own(ports, view)), ...(await rest(ports, spec, linked)), ...(await salvage(ports, spec)));
  return found;
}

async function readView(git: OpenedGit, spec: SpecSlug): Promise<View> {
  const tip = await git.readRef(integrationRef(spec));
  const branches = await readBranches(git, spec);
  const heads = await git.user.headsOfWorktrees();
  const checkedOut = new Map(heads.flatMap(({ ref, path }) => (ref === null ? [] : [[ref, path] as const])));
  const common = { spec, tip, branches, checkedOut };
  if (tip === null) return { ...common, states: null, integrated: new Set() };
  const integrated = new Set(await git.refsBehind(tip, issueRefPrefix(spec)));
  return { ...common, integrated, states: await statesAt(git, spec, { tip, branches }) };
}

async function statesAt(
  git: OpenedGit,
  slug: SpecSlug,
  { tip, branches }: { readonly tip: Oid; readonly branches: IssueBranches },
): Promise<ReadonlyMap<string, IssueState> | null> {
  const parsed = await readSpecAt(git, tip, slug);
  if (!parsed.ok) return null;
  const standings = await readStandings(git, { spec: parsed.value.spec, branches, wave: () => 0 });
  return new Map(standings.map(({ facts }) => [facts.id, facts.state]));
}

/** What an Issue's worktree and branch are good for. */
interface Claim {
  /** `live`: a run goes on from it; `done`: integrated; `over`: nothing will go on from it. */
  readonly kind: 'live' | 'done' | 'over';
  readonly say: string;
}

function claimOf({ spec, tip, states }: View, issue: string): Claim {
  if (tip === null) return { kind: 'over', say: `there is no branch giro/${spec} any more` };
  if (states === null) return { kind: 'live', say: `the Spec on giro/${spec} cannot be read` };
  const state = states.get(issue);
  if (state === undefined) return { kind: 'over', say: 'the Spec has no such Issue any more' };
  if (state === 'done') return { kind: 'done', say: `integrated in giro/${spec}` };
  if (state === 'wontfix') return { kind: 'over', say: 'wontfix' };
  return { kind: 'live', say: `${state}: the next run goes on from it` };
}

// Worktrees

async function worktree(ports: FindPorts, view: View, linked: LinkedWorktree): Promise<Found> {
  const { folder } = linked;
  const { spec } = view;
  const issue = parseIssueId((linked.locked ?? '').split(' ').at(-1) ?? '');
  const fields = { kind: 'worktree', spec, issue: issue ?? null, name: folder } as const;
  if (issue === undefined || linked.locked !== lockReason(spec, issue))
    return stays({ ...fields, why: 'its lock does not say whose it is' });
  const root = await realRoot(ports.room, spec);
  if (dirname(folder) !== root) {
    const why = `it is not in ${root}, where giro keeps those of this repository`;
    return stays({ ...fields, why, hint: `was the repository moved, or [worktree] root changed? ${byHand(folder)}` });
  }
  if (ports.owner.kind === 'other') return stays({ ...fields, why: othersText(ports.owner) });
  const kind = await kindOf(folder);
  if (kind === null) return deleted({ folder, root, linked, issue, spec });
  if (kind !== 'folder') return stays({ ...fields, why: `what is there is a ${kind}`, hint: 'look at it' });
  const bytes = await bytesOnDisk(folder);
  const claim = claimOf(view, issue);
  if (claim.kind === 'live') return stays({ ...fields, bytes, why: claim.say });
  const left = new Set(leftRunning(ports.git.commonDir)(spec).map(({ pid }) => pid));
  const occupant = occupantsOf(folder).find(({ pid }) => !left.has(pid));
  if (occupant !== undefined)
    return stays({ ...fields, bytes, why: `process ${String(occupant.pid)} (${occupant.name}) is in it` });
  return filled(ports, view, { linked, issue, bytes, claim });
}

function byHand(folder: string): string {
  return `by hand, when nothing in it is wanted: git worktree remove --force --force '${folder}'`;
}

function othersText(owner: Extract<RoomOwner, { kind: 'other' }>): string {
  return `the folder says that it belongs to ${owner.repository} on ${owner.host}`;
}

/** Links on the way count as where they lead, as git has it. */
async function realRoot(room: string, spec: SpecSlug): Promise<string> {
  return (await realPath(join(room, spec))) ?? join((await realPath(room)) ?? room, spec);
}

async function deleted(one: {
  readonly folder: string;
  readonly root: string;
  readonly linked: LinkedWorktree;
  readonly issue: IssueId;
  readonly spec: SpecSlug;
}): Promise<Found> {
  const { folder, root, linked, issue, spec } = one;
  const fields = { kind: 'worktree', spec, issue, name: folder } as const;
  // A disk that is not mounted looks the same.
  if ((await kindOf(root)) === null)
    return stays({
      ...fields,
      why: `it is not there, and neither is ${root}: maybe a disk is not mounted`,
      hint: byHand(folder),
    });
  // Another machine with the same repository may have it.
  if ((await kindOf(notesOn(folder).facts)) === null)
    return stays({
      ...fields,
      why: 'it is not there, and nothing says that it ever was on this machine',
      hint: byHand(folder),
    });
  const why = 'its folder was deleted, only the registration is left; commits that were made there are saved first';
  return goes({ ...fields, why }, { kind: 'worktree', linked, issue, safe: [] });
}

async function filled(
  ports: FindPorts,
  view: View,
  one: { readonly linked: LinkedWorktree; readonly issue: IssueId; readonly bytes: number; readonly claim: Claim },
): Promise<Found> {
  const { git, scratch } = ports;
  const { linked, issue, bytes, claim } = one;
  const { folder } = linked;
  const fields = { kind: 'worktree', spec: view.spec, issue, name: folder, bytes } as const;
  const own = view.branches.get(issue);
  const kept = [view.tip, own ?? null].filter((oid) => oid !== null);
  const safe = await Promise.all(kept.map(async (oid) => (await git.readCommit(oid)).tree));
  const inventory = await takeInventory({ git, linked, safe, scratch });
  if (inventory.kind === 'unclear')
    return stays({ ...fields, why: `${claim.say}, but ${inventory.why}`, hint: byHand(folder) });
  const { ignored, unsaved, strays } = inventory;
  const work = workText(unsaved, strays);
  if (work !== null && !ports.save)
    return stays({
      ...fields,
      ignored,
      why: `${claim.say}, but ${work}`,
      hint: 'giro clean --save puts that under refs/giro/salvage first',
    });
  const others = ignored.filter((path) => path.kind === 'other');
  const files = await filesToSave(
    folder,
    others.map(({ path }) => path),
  );
  if (files === null)
    return stays({
      ...fields,
      ignored,
      why: `${claim.say}, but ${tooMuchText(others)}`,
      hint: `move away what you want, then ${byHand(folder)}`,
    });
  const saves = [...(work === null ? [] : [work]), ...(files.length === 0 ? [] : [filesText(files)])];
  const why = work === null ? `${claim.say}, and all of its files are in commits that stay` : claim.say;
  return goes({ ...fields, ignored, why, saves }, { kind: 'worktree', linked, issue, safe });
}

/** What of a worktree is nowhere else; `null`: nothing. */
function workText(unsaved: readonly string[], strays: readonly string[]): string | null {
  const parts = [
    ...(unsaved.length === 0 ? [] : [`no commit has its ${someNames(unsaved)}`]),
    ...(strays.length === 0 ? [] : [`no branch has what was committed in it (${someNames(strays)})`]),
  ];
  return parts.length === 0 ? null : parts.join(', and ');
}

function filesText(files: readonly string[]): string {
  return `ignored ${files.length === 1 ? 'file' : 'files'} ${someNames(files)}`;
}

function tooMuchText(others: readonly IgnoredPath[]): string {
  return `ignored files in it are nowhere else and too much to save: ${someNames(others.map(({ path }) => path))}`;
}

function someNames(names: readonly string[]): string {
  const more = names.length - 3;
  return `${names.slice(0, 3).join(', ')}${more > 0 ? ` and ${String(more)} more` : ''}`;
}

// Branches

async function branch(
  { git, save }: FindPorts,
  view: View,
  { name, oid }: { readonly name: string; readonly oid: Oid },
): Promise<Found> {
  const { spec } = view;
  const issue = parseIssueId(name);
  const ref = `refs/heads/giro-issue/${spec}/${name}`;
  const fields = { kind: 'branch', spec, issue: issue ?? null, name: ref } as const;
  if (issue === undefined || ref !== issueRef(spec, issue))
    return stays({ ...fields, why: 'it is not named as an Issue' });
  const where = view.checkedOut.get(ref);
  if (where !== undefined) return stays({ ...fields, why: `it is checked out in ${where}` });
  const claim = claimOf(view, issue);
  if (claim.kind === 'live') return stays({ ...fields, why: claim.say });
  const holder = view.integrated.has(ref) ? integrationRef(spec) : await holderOf(git, oid);
  const safely = { kind: 'branch', ref, oid, save: null } as const;
  if (holder !== null)
    return goes({ ...fields, why: `${claim.say}, and every commit of it is in ${branchName(holder)}` }, safely);
  const why = `${claim.say}, but no other branch has its commits`;
  if (save) return goes({ ...fields, why, saves: ['its commits'] }, { ...safely, save: issue });
  return stays({ ...fields, why, hint: 'giro clean --save puts them under refs/giro/salvage first' });
}

/** A branch or tag that keeps a commit; the Issues' own branches do not count, as they may go themselves. */
export async function holderOf(git: Pick<OpenedGit, 'refsWith'>, oid: Oid): Promise<string | null> {
  return (await git.refsWith(oid)).find((name) => !name.startsWith('refs/heads/giro-issue/')) ?? null;
}

/** The Spec's own branch is what `giro status` and a run read: it is for the person to remove. */
async function own({ git }: FindPorts, { spec, tip }: View): Promise<readonly Found[]> {
  if (tip === null) return [];
  const fields = { kind: 'branch', spec, name: integrationRef(spec) } as const;
  const holder = (await git.refsWith(tip)).find((name) => !/^refs\/heads\/giro(?:-issue)?\//.test(name));
  const where = holder === undefined ? 'not merged anywhere yet' : `merged into ${branchName(holder)}`;
  const hint = holder === undefined ? {} : { hint: `when the Spec is over for good: git branch -D giro/${spec}` };
  return [stays({ ...fields, why: `what giro knows of the Spec; ${where}`, ...hint })];
}

// What else is in the folder of the Spec

async function rest(ports: FindPorts, spec: SpecSlug, linked: readonly LinkedWorktree[]): Promise<readonly Found[]> {
  const root = await realRoot(ports.room, spec);
  const registered = new Set(linked.map(({ folder }) => basename(folder)));
  const found: Found[] = [];
  for (const { name, kind } of await listFolder(root)) {
    if (registered.has(name)) continue;
    const path = join(root, name);
    if (name === 'store') {
      found.push(...(await staleNotes(ports.owner, spec, { root, registered })));
      continue;
    }
    const fields = { spec, name: path, bytes: await bytesOnDisk(path) } as const;
    if (kind === 'folder' && isThrowaway(name)) found.push(throwaway(ports.owner, fields));
    else
      found.push(
        stays({ ...fields, kind: 'folder', why: foreignText(name), hint: 'look at it, and remove it by hand' }),
      );
  }
  return found;
}

/** What giro noted about worktrees that are gone. */
async function staleNotes(
  owner: RoomOwner,
  spec: SpecSlug,
  { root, registered }: { readonly root: string; readonly registered: ReadonlySet<string> },
): Promise<readonly Found[]> {
  const store = join(root, 'store');
  const found: Found[] = [];
  for (const { name } of await listFolder(store)) {
    if (registered.has(name) || (await kindOf(join(root, name))) !== null || owner.kind !== 'ours') continue;
    const path = join(store, name);
    const fields = { kind: 'checkouts', spec, name: path, bytes: await bytesOnDisk(path) } as const;
    found.push(goes({ ...fields, why: 'notes about a worktree that is gone' }, { kind: 'folder', path }));
  }
  return found;
}

/** What a run makes for gates, judges and planners, and what it has put away to be deleted. */
function isThrowaway(name: string): boolean {
  return name === 'gates' || name === 'reading' || /^\.trash-[0-9a-f]{16}$/.test(name);
}

function throwaway(owner: RoomOwner, fields: Pick<Found['item'], 'spec' | 'name' | 'bytes'>): Found {
  switch (owner.kind) {
    case 'ours':
      return goes(
        { ...fields, kind: 'checkouts', why: 'made by a run that is over, from commits that stay' },
        { kind: 'folder', path: fields.name },
      );
    case 'other':
      return stays({ ...fields, kind: 'checkouts', why: othersText(owner) });
    case 'unmarked':
      return stays({
        ...fields,
        kind: 'checkouts',
        why: 'nothing says that it is of this repository; the next run does',
      });
  }
}

function foreignText(name: string): string {
  if (name === 'aside') return 'repositories that agents had made in their worktrees';
  if (/^w[0-9]+-[0-9a-f]{8}$/.test(name)) return 'it stood in the place of a worktree, and was put aside';
  return 'it is no worktree of this repository';
}

// Salvage

async function salvage({ git }: FindPorts, spec: SpecSlug): Promise<readonly Found[]> {
  const found: Found[] = [];
  for (const [ref, oid] of await git.listRefs(salvagePrefix(spec))) {
    const fields = { kind: 'salvage', spec, name: ref } as const;
    const holder = await holderOf(git, oid);
    found.push(
      holder === null
        ? stays({
            ...fields,
            why: 'saved work that is nowhere else',
            hint: `look at it: giro clean --salvage show ${ref.slice('refs/giro/salvage/'.length)}`,
          })
        : goes({ ...fields, why: `every commit of it is in ${branchName(holder)}` }, { kind: 'ref', ref, oid }),
    );
  }
  return found;
}

/** `giro clean --salvage`: what was saved under `refs/giro/salvage/`, to be listed, looked at, brought back or thrown away. */
import { resolve } from 'node:path';
import { failed, ok, type Failure, type Result } from '../failure.js';
import { parseSpecSlug, shortOid, type Oid, type SpecSlug } from '../issue.js';
import { systemClock } from '../platform/clock.js';
import { printable, printableLines } from '../platform/text.js';
import { removeTree } from '../platform/folders.js';
import { branchName, integrationRef } from '../store/refs.js';
import { takeLock } from '../store/lock.js';
import type { FileChange, OpenedGit } from '../worktree/git-types.js';
import { salvageFolder } from '../worktree/salvage.js';
import { failing, openForCleaning, type OpenForCleaning } from './clean.js';
import { holderOf } from './clean-find.js';
import { confirm } from './confirm.js';
import { exitCodes, type ExitCode } from './exit.js';
import { restoreInto, restoreOnBranch } from './restore.js';
import { write, type Terminal } from './show.js';
import { someOf } from './target.js';

/** What was typed. */
export interface SalvagedOptions {
  readonly words: readonly string[];
  readonly yes: boolean;
  readonly json: boolean;
  readonly patch: boolean;
  readonly folder: string;
}

/** One thing that was saved. */
export interface Saved {
  /** Full name. */
  readonly ref: string;
  readonly commit: Oid;
  readonly spec: string;
  readonly issue: string;
  /** When the commit was made. */
  readonly at: string;
  /** Its subject, which says why it was saved or what somebody had committed. */
  readonly why: string;
  /** What its files are compared with. */
  readonly base: Oid;
  readonly files: readonly FileChange[];
  /** A branch or tag that has its commits too. */
  readonly alsoIn: string | null;
}

/** What is asked for. */
type Asked =
  | { readonly kind: 'list'; readonly spec: SpecSlug | null }
  | { readonly kind: 'show' | 'drop'; readonly name: string }
  | { readonly kind: 'restore'; readonly name: string; readonly folder: string | null };

/** What doing it needs. */
interface Doing extends OpenForCleaning {
  readonly options: SalvagedOptions;
  readonly terminal: Terminal;
}

/** Runs the command. */
export async function salvaged(options: SalvagedOptions, terminal: Terminal): Promise<ExitCode> {
  const asked = readWords(options.words);
  if (!asked.ok) return failing([asked.failure]);
  const opened = await openForCleaning(options.folder, terminal);
  if (!opened.ok) return failing([opened.failure]);
  const { git, runFolder } = opened.value;
  try {
    const done = await act({ ...opened.value, options, terminal }, asked.value);
    if (!done.ok) return failing([done.failure]);
    write(terminal, options.json ? `${JSON.stringify({ format_version: 1, ...done.value.json })}\n` : done.value.text);
    return exitCodes.proof;
  } finally {
    await git.close();
    await removeTree(runFolder);
  }
}

function readWords(words: readonly string[]): Result<Asked, Failure> {
  const [verb = '', name, folder, ...more] = words;
  if (name === undefined) {
    const spec = parseSpecSlug(verb);
    if (verb === '' || spec !== undefined) return ok({ kind: 'list', spec: spec ?? null });
    return usage(`${JSON.stringify(verb)} is not the name of a Spec`);
  }
  if (more.length > 0) return usage('too many words');
  if (verb === 'restore') return ok({ kind: verb, name, folder: folder ?? null });
  if (folder !== undefined) return usage('too many words');
  if (verb === 'show' || verb === 'drop') return ok({ kind: verb, name });
  return usage(`${JSON.stringify(verb)} is none of show, restore and drop`);
}

function usage(message: string): Result<never, Failure> {
  return failed({ kind: 'usage', message, hint: 'such as: giro clean --salvage show auth/01-login/1' });
}

/** What is printed, in both ways. */
interface Told {
  readonly text: string;
  readonly json: object;
}

async function act(doing: Doing, asked: Asked): Promise<Result<Told, Failure>> {
  const { git, options } = doing;
  if (asked.kind === 'list') return ok(await list(git, asked.spec));
  const found = await find(git, asked.name);
  if (!found.ok) return found;
  const saved = found.value;
  switch (asked.kind) {
    case 'show':
      return ok(await show(git, saved, options.patch));
    case 'restore': {
      const { folder } = asked;
      const to = folder === null ? null : resolve(options.folder, folder);
      const done = to === null ? await restoreOnBranch(git, saved) : await restoreInto(doing, saved, to);
      if (!done.ok) return done;
      const { branch, files } = { branch: null, files: null, ...done.value };
      return ok({ text: `${done.value.lines.join('\n')}\n`, json: { restored: saved.ref, branch, folder: to, files } });
    }
    case 'drop':
      return drop(doing, saved);
  }
}

// Reading

async function list(git: OpenedGit, spec: SpecSlug | null): Promise<Told> {
  const refs = await git.listRefs(spec === null ? salvageFolder : `${salvageFolder}${spec}/`);
  const all: Saved[] = [];
  for (const [ref, oid] of refs) all.push(await readSaved(git, ref, oid));
  if (all.length === 0) {
    const text = spec === null ? 'nothing is saved\n' : `nothing of ${spec} is saved\n`;
    return { text, json: { salvage: [] } };
  }
  const lines = all.flatMap((saved) => [
    `${shortName(saved.ref)}  ${saved.at}  ${countText(saved.files)}${saved.alsoIn === null ? '' : `  also in ${branchName(saved.alsoIn)}`}`,
    `    ${printable(saved.why)}`,
  ]);
  const [first] = all;
  const more = first === undefined ? [] : ['', `look at one: giro clean --salvage show ${shortName(first.ref)}`];
  return { text: `${[...lines, ...more].join('\n')}\n`, json: { salvage: all } };
}

function shortName(ref: string): string {
  return ref.slice(salvageFolder.length);
}

async function find(git: OpenedGit, typed: string): Promise<Result<Saved, Failure>> {
  const name = typed.replace(/^refs\/giro\/salvage\//, '');
  const refs = await git.listRefs(salvageFolder);
  const oid = refs.get(`${salvageFolder}${name}`);
  if (oid !== undefined) return ok(await readSaved(git, `${salvageFolder}${name}`, oid));
  const below = [...refs.keys()].map(shortName);
  const near = below.filter((one) => one.startsWith(`${name}/`));
  const hint = below.length === 0 ? 'nothing is saved' : `known: ${someOf(near.length > 0 ? near : below)}`;
  return failed({ kind: 'usage', message: `nothing is saved as ${JSON.stringify(typed)}`, hint });
}

async function readSaved(git: OpenedGit, ref: string, commit: Oid): Promise<Saved> {
  const { message, parents, committedAt } = await git.readCommit(commit);
  const [spec = '', issue = ''] = shortName(ref).split('/');
  const why = message.split('\n', 1)[0] ?? '';
  const alsoIn = await holderOf(git, commit);
  const base = await baseOf(git, { commit, spec, parent: parents[0] ?? null, isOwn: why.startsWith('giro: ') });
  const at = new Date(committedAt * 1000).toISOString().replace('.000', '');
  return { ref, commit, spec, issue, at, why, base, files: await git.diffTrees(base, commit), alsoIn };
}

/** What giro saved stands on what was shown there; of commits that somebody made all since the Spec's branch counts. */
async function baseOf(
  git: OpenedGit,
  of: { readonly commit: Oid; readonly spec: string; readonly parent: Oid | null; readonly isOwn: boolean },
): Promise<Oid> {
  const spec = parseSpecSlug(of.spec);
  const tip = of.isOwn || spec === undefined ? null : await git.readRef(integrationRef(spec));
  const fork = of.isOwn ? null : await git.mergeBase(of.commit, tip ?? git.user.head);
  return (fork === of.commit ? null : fork) ?? of.parent ?? git.emptyTree;
}

function countText(files: readonly FileChange[]): string {
  const [added, removed] = [sum(files, 'insertions'), sum(files, 'deletions')];
  const count = files.length === 1 ? '1 file' : `${String(files.length)} files`;
  return `${count}, +${String(added)} -${String(removed)}`;
}

function sum(files: readonly FileChange[], what: 'insertions' | 'deletions'): number {
  return files.reduce((all, file) => all + file[what], 0);
}

const mostPatchBytes = 4 * 1024 * 1024;

async function show(git: OpenedGit, saved: Saved, withPatch: boolean): Promise<Told> {
  const patch = withPatch ? await git.patch(saved.base, saved.commit, mostPatchBytes) : null;
  const head = [
    saved.ref,
    `saved of ${saved.spec}/${saved.issue}, ${saved.at}: ${saved.why}`,
    `commit ${shortOid(saved.commit)}, compared with ${shortOid(saved.base)}: ${countText(saved.files)}`,
    ...(saved.alsoIn === null ? [] : [`also in ${branchName(saved.alsoIn)}`]),
  ].map(printable);
  const rows = saved.files.map(
    ({ path, status, binary, insertions, deletions }) =>
      `  ${status.padEnd(12)} ${binary ? 'binary' : `+${String(insertions)} -${String(deletions)}`}  ${printable(path)}`,
  );
  const name = shortName(saved.ref);
  const ways = [
    `  giro clean --salvage restore ${name}            # onto a new branch`,
    `  giro clean --salvage restore ${name} ../rescued # into a new folder`,
  ];
  const body = patch === null ? ['', ...rows, '', ...ways] : ['', printableLines(patch)];
  return { text: `${[...head, ...body].join('\n')}\n`, json: { ...saved, ...(patch === null ? {} : { patch }) } };
}

// Throwing away

async function drop(doing: Doing, saved: Saved): Promise<Result<Told, Failure>> {
  const { git, options, terminal } = doing;
  if (saved.alsoIn === null && !options.yes) {
    if (options.json || !(terminal.stdin.isTTY && terminal.stdout.isTTY)) {
      return failed({
        kind: 'usage',
        message: `nothing was removed: what ${saved.ref} holds is nowhere else`,
        hint: 'look at it with show; drop it with --yes',
      });
    }
    write(terminal, (await show(git, saved, false)).text);
    const isMeant = await confirm('\nNo branch has this. Throw it away? [y/N] ');
    if (!isMeant) return ok({ text: 'it stays\n', json: { dropped: null } });
  }
  return dropLocked(doing, saved);
}

/** A run may be offering it to an attempt. */
async function dropLocked({ git, run }: Doing, saved: Saved): Promise<Result<Told, Failure>> {
  const spec = parseSpecSlug(saved.spec);
  if (spec === undefined) return usage(`${saved.ref} is of no Spec`);
  const lock = await takeLock({ commonDir: git.commonDir, spec, run, at: systemClock.iso() });
  if (!lock.ok) return lock;
  try {
    const moved = await git.moveRef(saved.ref, null, saved.commit);
    if (!moved.ok)
      return failed({ kind: 'environment', message: `${saved.ref} could not be removed`, hint: 'try again' });
  } finally {
    await lock.value.release();
  }
  const back = `git update-ref ${saved.ref} ${saved.commit}`;
  const text = `dropped ${saved.ref}\nuntil git collects garbage it can be had back: ${back}\n`;
  return ok({ text, json: { dropped: saved.ref, commit: saved.commit } });
}

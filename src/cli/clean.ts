/** `giro clean [spec]`: shows what is left on this machine, and removes what is safe to remove. */
import { randomBytes } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import { availableParallelism, homedir } from 'node:os';
import { join } from 'node:path';
import { failed, ok, type Failure, type Result } from '../failure.js';
import { parseSpecSlug, type SpecSlug } from '../issue.js';
import { systemClock } from '../platform/clock.js';
import { listFolder, removeTree } from '../platform/folders.js';
import { printable } from '../platform/text.js';
import { integrationRef } from '../store/refs.js';
import { whyLocked } from '../store/lock.js';
import { openGit } from '../worktree/git.js';
import type { OpenedGit } from '../worktree/git-types.js';
import { ownerOf, roomOf } from '../worktree/room.js';
import { salvageFolder } from '../worktree/salvage.js';
import { findOfSpec, type FindPorts } from './clean-find.js';
import { countOf, keyOf, listText, stays, sumOf, type CleanItem, type Found } from './clean-items.js';
import { findLogs } from './clean-logs.js';
import { removeFolders, removeOfSpec, type Removed } from './clean-remove.js';
import { confirm } from './confirm.js';
import { exitCodes, type ExitCode } from './exit.js';
import { renderFailure } from './failure-text.js';
import { refuse } from './refuse.js';
import { write, type Terminal } from './show.js';
import { parseTarget } from './target.js';
import { readUserPolicy } from './user-policy.js';

/** What was typed. */
export interface CleanOptions {
  /** At most the name of one Spec; none: everything of the repository. */
  readonly words: readonly string[];
  readonly yes: boolean;
  readonly dryRun: boolean;
  readonly save: boolean;
  readonly passes: boolean;
  /** Age from which logs go; `null`: none. */
  readonly logsMs: number | null;
  readonly json: boolean;
  readonly folder: string;
}

/** What the parts of the command share. */
interface Cleaning {
  readonly options: CleanOptions;
  readonly terminal: Terminal;
  readonly find: FindPorts;
  readonly specs: readonly SpecSlug[];
  readonly run: string;
  readonly runFolder: string;
}

/** Runs the command. */
export async function clean(options: CleanOptions, terminal: Terminal): Promise<ExitCode> {
  const opened = await openForCleaning(options.folder, terminal);
  if (!opened.ok) return failing([opened.failure]);
  const { git, run, runFolder } = opened.value;
  try {
    const find = await findPorts(git, { options, terminal, runFolder });
    const specs = await specsOf(find, options);
    if (!specs.ok) return failing([specs.failure]);
    return await cleanIn({ options, terminal, find, specs: specs.value, run, runFolder });
  } finally {
    await git.close();
    await removeTree(runFolder);
  }
}

/** A repository, open for as long as something is cleaned in it. */
export interface OpenForCleaning {
  readonly git: OpenedGit;
  /** Named in locks. */
  readonly run: string;
  /** Removed by who opened it. */
  readonly runFolder: string;
}

/** Opens the repository with a folder of its own beside those of runs. */
export async function openForCleaning(folder: string, terminal: Terminal): Promise<Result<OpenForCleaning, Failure>> {
  const looked = await openGit({ folder, own: terminal.env, runFolder: null });
  if (!looked.ok) return looked;
  const { commonDir } = looked.value;
  await looked.value.close();
  const run = `clean-${randomBytes(4).toString('hex')}`;
  const runFolder = join(commonDir, 'giro', 'runs', run);
  const git = await openGit({ folder, own: terminal.env, runFolder });
  return git.ok ? ok({ git: git.value, run, runFolder }) : git;
}

/** Says what kept it from being done. */
export function failing(failures: readonly Failure[]): ExitCode {
  failures.forEach(refuse);
  return failures.length === 0 ? exitCodes.proof : exitCodes.error;
}

/** As `[limits] grace`, where giro.toml cannot be read. */
const defaultGraceMs = 10_000;

async function findPorts(
  git: OpenedGit,
  given: { readonly options: CleanOptions; readonly terminal: Terminal; readonly runFolder: string },
): Promise<FindPorts> {
  const { options, terminal, runFolder } = given;
  const own = terminal.env;
  const top = git.user.topLevel;
  const policy = top === null ? null : await readUserPolicy({ top, own, processors: availableParallelism() });
  // What else is wrong in giro.toml is no matter here: without it the worktrees are where they are without `root`.
  const root = policy?.ok === true ? policy.value.worktree.root : undefined;
  const cache = own['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  const room = roomOf(root ?? join(cache, 'giro'), git.commonDir);
  const owner = await ownerOf(room, git.commonDir);
  const graceMs = policy?.ok === true ? policy.value.limits.graceMs : defaultGraceMs;
  return { git, room, owner, graceMs, scratch: join(runFolder, 'look'), save: options.save };
}

/** Every Spec that left something here, or the one that was named. */
async function specsOf(find: FindPorts, options: CleanOptions): Promise<Result<readonly SpecSlug[], Failure>> {
  const { git } = find;
  const known = await knownSpecs(find);
  const [word, ...more] = options.words;
  if (word === undefined) return ok(known);
  if (more.length > 0)
    return failed({
      kind: 'usage',
      message: 'giro clean takes one Spec, or none for all',
      hint: 'see: giro clean --help',
    });
  const cwd = await realpath(options.folder);
  const target = parseTarget(word, { cwd, top: git.user.topLevel ?? cwd });
  if (!target.ok) return target;
  if (target.value.kind === 'backlog') return ok(known);
  if (target.value.kind === 'issue')
    return failed({
      kind: 'usage',
      message: 'giro clean takes a Spec, not one Issue',
      hint: `try: giro clean ${target.value.spec}`,
    });
  const { spec } = target.value;
  if (known.includes(spec) || (await git.readRef(integrationRef(spec))) !== null) return ok([spec]);
  const hint = known.length === 0 ? 'nothing of any Spec is' : `known: ${known.join(', ')}`;
  return failed({ kind: 'usage', message: `nothing of a Spec ${spec} is here`, hint });
}

async function knownSpecs({ git, room }: FindPorts): Promise<readonly SpecSlug[]> {
  const prefixes = ['refs/heads/giro-issue/', salvageFolder];
  const refs = await Promise.all(
    prefixes.map(async (prefix) => [...(await git.listRefs(prefix)).keys()].map((ref) => ref.slice(prefix.length))),
  );
  const locks = (await git.listWorktrees()).map(({ locked }) => /^giro (\S+) \S+$/.exec(locked ?? '')?.[1] ?? '');
  const folders = (await listFolder(room)).filter(({ kind }) => kind === 'folder').map(({ name }) => name);
  const names = new Set([...refs.flat().map((name) => name.split('/')[0] ?? ''), ...locks, ...folders]);
  return [...names].sort().flatMap((name) => parseSpecSlug(name) ?? []);
}

async function cleanIn(cleaning: Cleaning): Promise<ExitCode> {
  const { options, terminal } = cleaning;
  const found = await findAll(cleaning);
  const items = found.map(({ item }) => item);
  const going = items.filter(({ fate }) => fate === 'remove');
  if (!options.json) write(terminal, listText(items));
  const asks = !options.yes && !options.dryRun && !options.json && going.length > 0;
  if (asks && !(terminal.stdin.isTTY && terminal.stdout.isTTY)) {
    return failing([
      {
        kind: 'usage',
        message: 'nothing was removed: there is no terminal to ask on',
        hint: 'giro clean --yes removes what can go; --dry-run only shows it',
      },
    ]);
  }
  const isMeant = options.yes && !options.dryRun ? true : asks && (await isConfirmed(going));
  const done = isMeant ? await removeAll(cleaning, found) : nothing;
  if (options.json) write(terminal, `${JSON.stringify(jsonOf(items, done))}\n`);
  else write(terminal, doneText(done, asks || options.yes ? going : []));
  return failing(done.failures);
}

const nothing: Removed = { gone: [], notices: [], failures: [] };

async function findAll({ find, options, specs, run }: Cleaning): Promise<readonly Found[]> {
  const { commonDir } = find.git;
  const found: Found[] = [];
  for (const spec of specs) {
    const locked = await whyLocked(commonDir, spec);
    if (locked === null) found.push(...(await findOfSpec(find, spec)));
    else {
      const [why = '', ...more] = renderFailure(locked).split('\n');
      const hint = more.length === 0 ? {} : { hint: more.join(' ').trim() };
      found.push(stays({ kind: 'spec', spec, name: spec, why: why.replace(/^giro: /, ''), ...hint }));
    }
  }
  if (options.words.length > 0) return found;
  const { logsMs: olderThanMs, passes } = options;
  return [...found, ...(await findLogs({ commonDir, own: run, olderThanMs, passes, now: systemClock.now() }))];
}

function isConfirmed(going: readonly CleanItem[]): Promise<boolean> {
  return confirm(`\nRemove what can go (${countOf(going)})? [y/N] `);
}

async function removeAll(cleaning: Cleaning, found: readonly Found[]): Promise<Removed> {
  const { find, specs, run, runFolder, options } = cleaning;
  const parts: Removed[] = [];
  for (const spec of specs) {
    const shown = found.map(({ item }) => item).filter((item) => item.spec === spec && item.fate === 'remove');
    if (shown.length > 0) parts.push(await removeOfSpec({ ...find, run, runFolder }, spec, shown));
  }
  const wanted = new Set(found.filter(({ item }) => item.spec === null).map(({ item }) => keyOf(item)));
  if (wanted.size > 0) {
    // A run may have begun while a person thought.
    const { logsMs: olderThanMs, passes } = options;
    const now = systemClock.now();
    const again = await findLogs({ commonDir: find.git.commonDir, own: run, olderThanMs, passes, now });
    parts.push(await removeFolders(again.filter(({ item }) => wanted.has(keyOf(item)))));
  }
  return {
    gone: parts.flatMap(({ gone }) => gone),
    notices: parts.flatMap(({ notices }) => notices),
    failures: parts.flatMap(({ failures }) => failures),
  };
}

function jsonOf(items: readonly CleanItem[], { gone, notices }: Removed): object {
  const keys = new Set(gone.map(keyOf));
  return {
    format_version: 1,
    items: items.map((item) => ({ ...item, removed: keys.has(keyOf(item)) })),
    removed: gone.length,
    bytes: sumOf(gone),
    notices,
  };
}

function doneText({ gone, notices }: Removed, wanted: readonly CleanItem[]): string {
  if (wanted.length === 0) return '';
  const lines = notices.map(printable);
  if (gone.length === 0) return `${['', ...lines, 'nothing was removed'].join('\n')}\n`;
  const left = wanted.length - gone.length;
  const rest = left > 0 ? `; ${String(left)} stayed, as something changed meanwhile` : '';
  return `${['', ...lines, `removed ${countOf(gone)}${rest}`].join('\n')}\n`;
}

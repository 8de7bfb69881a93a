/** `giro status [target]`: where everything stands, from refs and blobs alone; starts nothing and takes no lock. */
import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { ok, type Failure, type Result } from '../failure.js';
import { parseSpecSlug, type SpecSlug } from '../issue.js';
import { kindOf } from '../platform/files.js';
import { listFolder } from '../platform/folders.js';
import { specsFolder } from '../spec.js';
import type { OpenedGit } from '../worktree/git-types.js';
import { packetText } from './packet-text.js';
import { exitCodes, type ExitCode } from './exit.js';
import { renderFailure } from './failure-text.js';
import { leftRunning } from './leftovers.js';
import { stopFileOf, stopLines } from './status-stop.js';
import { write, type Terminal } from './show.js';
import { findIssue, parseTarget, someOf, type Target } from './target.js';
import { type SpecStatusJson, readSpec, packetFor, newestHistory } from './status-read.js';
import { overview, specText, askingText, issueText } from './status-text.js';

/** What was typed. */
export interface StatusOptions {
  readonly target: string | null;
  readonly json: boolean;
  readonly folder: string;
}

/** What the command works with. */
export interface StatusPorts {
  readonly terminal: Terminal;
  /** The repository, which may still be on its way. */
  readonly opening: Promise<Result<OpenedGit>>;
}

/** Runs the command. */
export async function status(options: StatusOptions, ports: StatusPorts): Promise<ExitCode> {
  const { terminal } = ports;
  const opened = await ports.opening;
  if (!opened.ok) return refuse(opened.failure);
  const git = opened.value;
  try {
    const target = await readTarget(git, options);
    if (!target.ok) return refuse(target.failure);
    return target.value.kind === 'backlog'
      ? await showAll(git, options, terminal)
      : await showOne(git, { ...options, ...target.value }, terminal);
  } finally {
    await git.close();
  }
}

function refuse(failure: Failure): ExitCode {
  process.stderr.write(`${renderFailure(failure)}\n`);
  return exitCodes.error;
}

async function readTarget(git: OpenedGit, options: StatusOptions): Promise<Result<Target, Failure>> {
  if (options.target === null) return ok({ kind: 'backlog' });
  return parseTarget(options.target, { cwd: await realpath(options.folder), top: git.user.topLevel ?? options.folder });
}

/** All Specs; one that cannot be read does not hide the others. */
async function showAll(git: OpenedGit, options: StatusOptions, terminal: Terminal): Promise<ExitCode> {
  const top = git.user.topLevel;
  const specs: SpecStatusJson[] = [];
  const failures: Failure[] = [];
  const leftOf = leftRunning(git.commonDir);
  for (const slug of await knownSpecs(git, top)) {
    const read = await readSpec(git, slug, { top, terminal, leftOf });
    if (read.ok) specs.push(read.value);
    else failures.push(read.failure);
  }
  const stop = await stopFileOf(git.commonDir, null);
  if (options.json) write(terminal, `${JSON.stringify({ ...stop, specs })}\n`);
  else if (specs.length > 0 || failures.length === 0)
    write(terminal, [overview(specs), ...stopLines(stop).map((line) => `${line}\n`)].join(''));
  failures.forEach(refuse);
  return failures.length > 0 ? exitCodes.error : exitCodes.proof;
}

async function showOne(
  git: OpenedGit,
  wanted: Pick<StatusOptions, 'json'> & Exclude<Target, { kind: 'backlog' }>,
  terminal: Terminal,
): Promise<ExitCode> {
  const place = { top: git.user.topLevel, terminal, leftOf: leftRunning(git.commonDir) };
  const read = await readSpec(git, wanted.spec, place);
  if (!read.ok) return refuse(read.failure);
  const spec = read.value;
  if (wanted.kind === 'spec') {
    const packet = await packetFor(git, spec, null);
    if (wanted.json) write(terminal, `${JSON.stringify(packet === null ? spec : { ...spec, packet })}\n`);
    else write(terminal, packet === null ? specText(spec) : `${specText(spec)}\n${packetText(packet)}\n`);
    return exitCodes.proof;
  }
  const ids = spec.issues.map((issue) => issue.id);
  const id = findIssue(ids, wanted.issue);
  const issue = spec.issues.find((one) => one.id === id);
  if (issue === undefined) {
    const message = `the Spec ${spec.spec} has no Issue ${JSON.stringify(wanted.issue)}`;
    return refuse({ kind: 'usage', message, hint: `known: ${someOf(ids)}` });
  }
  const packet = await packetFor(git, spec, issue);
  if (wanted.json) write(terminal, `${JSON.stringify(packet === null ? spec : { ...spec, packet })}\n`);
  else
    write(
      terminal,
      packet === null ? issueText(spec, issue, await newestHistory(git, spec, issue)) : askingText(spec, issue, packet),
    );
  return exitCodes.proof;
}

async function knownSpecs(git: OpenedGit, top: string | null): Promise<readonly SpecSlug[]> {
  const branches = [...(await git.listRefs('refs/heads/giro/')).keys()].map((ref) =>
    ref.slice('refs/heads/giro/'.length),
  );
  const folders: string[] = [];
  for (const entry of top === null ? [] : await listFolder(join(top, specsFolder))) {
    const isSpec = top !== null && (await kindOf(join(top, specsFolder, entry.name, 'SPEC.md'))) === 'file';
    if (entry.kind === 'folder' && isSpec) folders.push(entry.name);
  }
  const names = new Set([...branches, ...folders]);
  return [...names].sort().flatMap((name) => parseSpecSlug(name) ?? []);
}

/** Finds what the repository and its giro.toml are like, for `giro doctor`. Takes no lock and writes nothing. */
import { lstatSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { renderFailure } from './failure-text.js';
import { childEnvironment } from '../platform/environment.js';
import { kindOf, readIfExists } from '../platform/files.js';
import { isStartable } from '../platform/startable.js';
import type { Failure, Result } from '../failure.js';
import type { GateDefinition, Policy } from '../policy.js';
import { findStopFile } from '../store/stop.js';
import type { OpenedGit } from '../worktree/git-types.js';
import type { PolicyFacts, ProgramFacts, RepositoryFacts } from './doctor-checks.js';
import { readUserPolicy } from './user-policy.js';

type Own = Readonly<Record<string, string | undefined>>;

/** Looks at the repository. */
export async function lookAtRepository(opened: Result<OpenedGit, Failure>): Promise<RepositoryFacts> {
  if (!opened.ok) return refusal(opened.failure);
  const git = opened.value;
  const { commonDir, user } = git;
  const { topLevel: top } = user;
  const isThere = async (name: string): Promise<boolean> => top !== null && (await kindOf(join(top, name))) !== null;
  return {
    kind: 'open',
    top,
    isShallow: (await kindOf(join(commonDir, 'shallow'))) !== null,
    hasSubmodules: await isThere('.gitmodules'),
    hasLfs: top !== null && /\bfilter=lfs\b/.test((await readIfExists(join(top, '.gitattributes')))?.toString() ?? ''),
    isCaseBlind: isCaseBlind(commonDir),
    hasGiroBranch: (await git.readRef('refs/heads/giro')) !== null,
    stopFile: (await findStopFile(commonDir, null))?.path ?? null,
    headMs: (await git.readCommit(user.head)).committedAt,
  };
}

/** Outside of a repository is no fault of the machine. */
function refusal(failure: Failure): RepositoryFacts {
  if (failure.kind === 'diagnostics') throw new Error('opening a repository reads no file of a person');
  const hint = failure.hint ?? null;
  return failure.message.endsWith('is not in a git repository')
    ? { kind: 'none' }
    : { kind: 'refused', message: failure.message, hint };
}

/** A folder that is there under another spelling too. */
function isCaseBlind(folder: string): boolean {
  const name = basename(folder);
  const other = name === name.toUpperCase() ? name.toLowerCase() : name.toUpperCase();
  if (other === name) return false;
  try {
    return lstatSync(join(dirname(folder), other)).ino === lstatSync(folder).ino;
  } catch {
    return false;
  }
}

/** Looks at giro.toml and the programs that it names; `top`: `null` without a checkout. */
export async function lookAtPolicy(top: string | null, own: Own): Promise<PolicyFacts> {
  if (top === null) return { kind: 'none' };
  if ((await kindOf(join(top, 'giro.toml'))) === null) return { kind: 'missing' };
  const read = await readUserPolicy({ top, own, processors: availableParallelism() });
  if (!read.ok) return { kind: 'wrong', message: wrongText(read.failure) };
  const { limits, worktree } = read.value;
  return {
    kind: 'read',
    agents: limits.agents,
    gates: limits.gates,
    root: worktree.root ?? null,
    programs: programsOf(read.value, { top, own }),
  };
}

function wrongText(failure: Failure): string {
  if (failure.kind !== 'diagnostics')
    return (
      renderFailure(failure)
        .replace(/^giro: /, '')
        .split('\n')[0] ?? ''
    );
  const [first, ...more] = failure.diagnostics;
  if (first === undefined) return 'it cannot be read';
  const place = first.line === undefined ? '' : `line ${String(first.line)}: `;
  return `${place}${first.message}${more.length === 0 ? '' : `, and ${String(more.length)} more`}`;
}

function programsOf(
  { drivers, roles, gates }: Policy,
  { top, own }: { readonly top: string; readonly own: Own },
): readonly ProgramFacts[] {
  const env = childEnvironment(own);
  const isFound = (program: string): boolean => isStartable(program, { cwd: top, env });
  const hasJudge = gates.some(({ kind }) => kind !== 'command');
  const used = new Set([roles.worker, roles.planner, ...(hasJudge ? [roles.judge] : [])]);
  return [
    ...[...drivers.byName.values()].flatMap((driver): ProgramFacts[] => {
      if (driver.kind !== 'command') return [];
      const [program] = driver.run;
      return [{ name: `driver ${driver.name}`, program, isFound: isFound(program), isUsed: used.has(driver.name) }];
    }),
    ...gates.flatMap((gate): ProgramFacts[] => {
      const program = programOf(gate);
      return program === null ? [] : [{ name: `gate ${gate.name}`, program, isFound: isFound(program), isUsed: true }];
    }),
  ];
}

/** The first word of a gate's command, where that is a program on PATH; the rest only a shell can tell. */
function programOf(gate: GateDefinition): string | null {
  if (gate.kind !== 'command') return null;
  const [, word] = /^\s*(?:[A-Za-z_][A-Za-z0-9_]*=[^\s'"$`]*\s+)*([A-Za-z0-9_.+-]+)(?=\s|$)/.exec(gate.run) ?? [];
  return word === undefined || isOfTheShell.has(word) ? null : word;
}

/** What bash has itself. */
const isOfTheShell: ReadonlySet<string> = new Set(
  `. : alias bg break builtin case cd command continue declare do done echo elif else esac eval exec exit export false fi for
  function getopts hash if in kill let local printf pushd popd pwd read readonly return select set shift shopt source test then
  time times trap true type typeset ulimit umask unset until wait while`.split(/\s+/),
);

/** What the facts of a machine and a repository mean for giro. Pure: one line for each check, and the way to mend it. */
import { formatBytes } from '../platform/disk.js';
import type { CgroupsHere } from '../platform/cgroups.js';
import { shellWord } from '../platform/text.js';

/** One thing that was looked at. */
export interface Check {
  readonly area: 'machine' | 'repository' | 'giro.toml' | 'processes' | 'terminal';
  readonly name: string;
  /** A problem keeps giro from working here; a note does not. */
  readonly status: 'ok' | 'note' | 'problem';
  readonly detail: string;
  readonly fix: string | null;
}

/** A folder that giro writes to. */
export interface FolderFacts {
  readonly name: string;
  readonly path: string;
  /** The folder, or the nearest one above that is there. */
  readonly isWritable: boolean;
  /** As the system calls it; empty: it does not say. */
  readonly fileSystem: string;
  readonly isNoExec: boolean;
  readonly freeBytes: number;
}

/** A program that giro.toml names. */
export interface ProgramFacts {
  /** What for: `driver claude`, `gate test`. */
  readonly name: string;
  readonly program: string;
  readonly isFound: boolean;
  readonly isUsed: boolean;
}

/** What was found about the machine. */
export interface MachineFacts {
  readonly node: string;
  readonly git: { readonly path: string; readonly version: string } | null;
  readonly shell: string | null;
  readonly folders: readonly FolderFacts[];
  /** Files that a process may have open; `null`: not known. */
  readonly openFiles: number | null;
  readonly platform: string;
  readonly isRoot: boolean;
  readonly cgroups: CgroupsHere;
  readonly hasEnvironments: boolean;
  readonly bubblewrap: boolean;
  readonly userNamespaces: 'allowed' | 'refused' | 'unknown';
  readonly nowMs: number;
  readonly terminal: TerminalFacts;
}

/** What was found about the terminal. */
export interface TerminalFacts {
  readonly isTerminal: boolean;
  readonly board: boolean;
  readonly columns: number | null;
  readonly rows: number | null;
  readonly hasColors: boolean;
  readonly hasUnicode: boolean;
  readonly ci: boolean;
}

/** What was found about the repository; `refused`: giro cannot open it. */
export type RepositoryFacts =
  | { readonly kind: 'none' }
  | { readonly kind: 'refused'; readonly message: string; readonly hint: string | null }
  | {
      readonly kind: 'open';
      /** `null`: bare. */
      readonly top: string | null;
      readonly isShallow: boolean;
      readonly hasSubmodules: boolean;
      readonly hasLfs: boolean;
      readonly isCaseBlind: boolean;
      /** A branch `giro` leaves no room for `giro/<spec>`. */
      readonly hasGiroBranch: boolean;
      readonly stopFile: string | null;
      readonly headMs: number;
    };

/** What was found in giro.toml. */
export type PolicyFacts =
  | { readonly kind: 'none' }
  | { readonly kind: 'missing' }
  | { readonly kind: 'wrong'; readonly message: string }
  | {
      readonly kind: 'read';
      readonly agents: number;
      readonly gates: number;
      /** `[worktree] root`. */
      readonly root: string | null;
      readonly programs: readonly ProgramFacts[];
    };

/** Everything that was found. */
export interface DoctorFacts {
  readonly machine: MachineFacts;
  readonly repository: RepositoryFacts;
  readonly policy: PolicyFacts;
}

/** Checks everything. */
export function checksOf({ machine, repository, policy }: DoctorFacts): readonly Check[] {
  const atOnce = policy.kind === 'read' ? policy.agents + policy.gates : 8;
  return [
    nodeCheck(machine),
    gitCheck(machine),
    shellCheck(machine),
    ...machine.folders.flatMap(folderChecks),
    openFilesCheck(machine, atOnce),
    clockCheck(machine, repository),
    ...(machine.git === null ? [] : repositoryChecks(repository)),
    ...policyChecks(policy),
    limitsCheck(machine),
    orphansCheck(machine),
    sandboxCheck(machine),
    ...(machine.isRoot ? [rootCheck] : []),
    terminalCheck(machine.terminal),
  ];
}

type Found = Omit<Check, 'area' | 'name'>;

function ok(detail: string): Found {
  return { status: 'ok', detail, fix: null };
}

function note(detail: string, fix: string | null = null): Found {
  return { status: 'note', detail, fix };
}

function problem(detail: string, fix: string | null): Found {
  return { status: 'problem', detail, fix };
}

function atLeast(version: string, wanted: readonly [number, number]): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > wanted[0] || (major === wanted[0] && minor >= wanted[1]);
}

function nodeCheck({ node }: MachineFacts): Check {
  const found = atLeast(node, [20, 19]) ? ok(node) : problem(`${node} is too old`, 'install Node.js 20.19 or newer');
  return { area: 'machine', name: 'node', ...found };
}

function gitCheck({ git }: MachineFacts): Check {
  const here = { area: 'machine', name: 'git' } as const;
  if (git === null) return { ...here, ...problem('is not installed', 'install git 2.38 or newer') };
  if (!atLeast(git.version, [2, 38]))
    return { ...here, ...problem(`${git.version} (${git.path}) is too old`, 'install git 2.38 or newer') };
  return { ...here, ...ok(`${git.version} (${git.path})`) };
}

function shellCheck({ shell }: MachineFacts): Check {
  const found = shell === null ? problem('there is no bash, which runs gates', 'install bash') : ok(shell);
  return { area: 'machine', name: 'shell for gates', ...found };
}

const littleBytes = 2_000_000_000;
const tooLittleBytes = 100_000_000;

function folderChecks(facts: FolderFacts): readonly Check[] {
  return [{ area: 'machine', name: facts.name, ...folderFound(facts) }];
}

function folderFound({ path, isWritable, fileSystem, isNoExec, freeBytes }: FolderFacts): Found {
  const where = fileSystem === '' ? path : `${path} (${fileSystem})`;
  if (!isWritable)
    return problem(`${where} cannot be written`, `make it yours: chown -R "$(id -un)" ${shellWord(path)}`);
  const free = `${where}, ${formatBytes(freeBytes)} free`;
  if (freeBytes < tooLittleBytes) return problem(free, 'free some space: giro clean');
  if (isNoExec)
    return note(`${free}; programs there cannot be started (noexec)`, 'set [worktree] root to another disk');
  if (/^(?:nfs|cifs|smb|9p|fuse\.sshfs|afs)/.test(fileSystem))
    return note(
      `${free}; a network file system is slow for worktrees`,
      'set [worktree] root to a disk of this machine',
    );
  return freeBytes < littleBytes ? note(free, 'every agent and gate has a checkout of its own') : ok(free);
}

/** Each agent or gate takes a few files of giro, and git more. */
function openFilesCheck({ openFiles }: MachineFacts, atOnce: number): Check {
  const here = { area: 'machine', name: 'open files' } as const;
  if (openFiles === null) return { ...here, ...note('the limit is not known') };
  const wanted = 128 + 16 * atOnce;
  if (openFiles >= wanted) return { ...here, ...ok(`${String(openFiles)} at once`) };
  const fix = `raise it: ulimit -n ${String(Math.max(1024, wanted))}`;
  const detail = `${String(openFiles)} at once; ${String(atOnce)} agents and gates may need ${String(wanted)}`;
  return { ...here, ...(openFiles < 64 ? problem(detail, fix) : note(detail, fix)) };
}

const dayMs = 86_400_000;
/** Nothing of giro is older. */
const earliestMs = Date.UTC(2026, 0, 1);

function clockCheck({ nowMs }: MachineFacts, repository: RepositoryFacts): Check {
  const here = { area: 'machine', name: 'clock' } as const;
  const shown = new Date(nowMs).toISOString().slice(0, 16).replace('T', ' ');
  if (nowMs < earliestMs) return { ...here, ...problem(`it says ${shown} UTC`, 'set the clock of this machine') };
  if (repository.kind === 'open' && repository.headMs > nowMs + dayMs)
    return { ...here, ...note(`it says ${shown} UTC, and HEAD was committed after that`, 'look at the clock') };
  return { ...here, ...ok(`${shown} UTC`) };
}

function repositoryChecks(facts: RepositoryFacts): readonly Check[] {
  const named = (name: string, found: Found): Check => ({ area: 'repository', name, ...found });
  if (facts.kind === 'none') return [named('git', note('not in a repository: only the machine was looked at'))];
  if (facts.kind === 'refused') return [named('git', problem(facts.message, facts.hint))];
  if (facts.top === null)
    return [named('checkout', problem('a bare repository has no files to read', 'run giro in a clone or a worktree'))];
  const odd: readonly (Check | false)[] = [
    facts.hasGiroBranch &&
      named(
        'branches',
        problem('a branch called giro leaves no room for giro/<spec>', 'rename it: git branch -m giro other'),
      ),
    facts.isShallow && named('history', note('a shallow clone: merging may lack a base', 'git fetch --unshallow')),
    facts.hasSubmodules &&
      named(
        'submodules',
        note('are empty for agents and gates unless giro.toml fills them', 'list them: [worktree] copy = ["lib"]'),
      ),
    facts.hasLfs && named('LFS', note('files stay pointers in worktrees and gates', 'set-up can fetch them')),
    facts.isCaseBlind &&
      named(
        'file names',
        note('this disk takes upper and lower case for the same; giro refuses names that differ only by that'),
      ),
    facts.stopFile !== null &&
      named('STOP file', note('keeps giro from starting', `take it away: rm ${shellWord(facts.stopFile)}`)),
  ];
  return [named('checkout', ok(facts.top)), ...odd.filter((check) => check !== false)];
}

function policyChecks(facts: PolicyFacts): readonly Check[] {
  const named = (name: string, found: Found): Check => ({ area: 'giro.toml', name, ...found });
  switch (facts.kind) {
    case 'none':
      return [];
    case 'missing':
      return [named('file', note('there is none yet', 'write one with: giro init'))];
    case 'wrong':
      return [named('file', problem(facts.message, 'see all of it: giro implement <spec> --dry-run'))];
    case 'read':
      return [
        named('file', ok(`${String(facts.agents)} agents and ${String(facts.gates)} gates at once`)),
        ...facts.programs.map((one) => named(one.name, programFound(one))),
      ];
  }
}

function programFound({ program, isFound, isUsed }: ProgramFacts): Found {
  if (isFound) return ok(program);
  const isPath = program.includes('/');
  const detail = `${program} cannot be started: ${isPath ? 'it is not there or not executable' : 'no such program on PATH'}`;
  const fix = isPath ? 'write it and chmod +x it, or change giro.toml' : 'install it, or change giro.toml';
  return isUsed ? problem(detail, fix) : note(`${detail} (no role uses it)`);
}

function limitsCheck({ cgroups }: MachineFacts): Check {
  const here = { area: 'processes', name: 'limits' } as const;
  if (cgroups.kind === 'none') return { ...here, ...note(`none: ${cgroups.why}`, cgroups.fix) };
  const controllers = new Set(cgroups.hierarchies.flatMap((one) => one.controllers));
  const how = `cgroups of version ${cgroups.kind === 'v1' ? '1' : '2'}`;
  if (!controllers.has('memory'))
    return {
      ...here,
      ...note(`of the number of processes (${how}); memory is not limited: that controller is not there`),
    };
  return { ...here, ...ok(`of processes and memory (${how})`) };
}

function orphansCheck({ platform, hasEnvironments }: MachineFacts): Check {
  const here = { area: 'processes', name: 'left running' } as const;
  if (hasEnvironments) return { ...here, ...ok('is found by its mark and ended') };
  const why = platform === 'linux' ? '/proc does not show environments' : `${platform} does not show environments`;
  return { ...here, ...note(`only process groups are ended: ${why}; after a kill -9 of giro look yourself`) };
}

function sandboxCheck({ bubblewrap, userNamespaces }: MachineFacts): Check {
  const detail = `bubblewrap ${bubblewrap ? 'is installed' : 'is not installed'}, user namespaces: ${userNamespaces}; not used yet`;
  return { area: 'processes', name: 'sandbox', ...ok(detail) };
}

const rootCheck: Check = {
  area: 'processes',
  name: 'user',
  ...note('giro runs as root, and so do agents and gates', 'run it as an ordinary user'),
};

function terminalCheck(facts: TerminalFacts): Check {
  const shown = facts.board ? 'the board' : 'one line per event';
  const why = facts.board ? '' : facts.ci ? ' (CI)' : facts.isTerminal ? '' : ' (no terminal)';
  const size = facts.columns === null || facts.rows === null ? [] : [`${String(facts.columns)}x${String(facts.rows)}`];
  const traits = [facts.hasColors ? 'colors' : 'no colors', facts.hasUnicode ? 'unicode' : 'ASCII', ...size];
  const isSmall = facts.board && ((facts.columns ?? 80) < 60 || (facts.rows ?? 24) < 15);
  const detail = `${shown}${why}; ${traits.join(', ')}`;
  return { area: 'terminal', name: 'shows', ...(isSmall ? note(detail, 'make the window larger') : ok(detail)) };
}

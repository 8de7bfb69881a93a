/** What a run leaves running, and what a giro that was killed left: found by mark, ended, and said (docs/durability.md). */
import type { Emit } from '../event.js';
import type { Failure } from '../failure.js';
import type { SpecSlug } from '../issue.js';
import type { Clock } from '../platform/clock.js';
import {
  noConfinement,
  openConfinement,
  removeLeftGroups,
  type Confinement,
  type ProcessLimits,
} from '../platform/confinement.js';
import type { Environment } from '../platform/environment.js';
import { realPath } from '../platform/links.js';
import { formatMark, isOwnerDead, markVariable, newMark, repositoryMark, type RunMark } from '../platform/mark.js';
import { lookForMarked, type Findings, type FoundProcess, type Search } from '../platform/marked.js';
import { endFound } from '../platform/strays.js';
import { printable } from '../platform/text.js';

/** What looking after the processes of a run takes. */
export interface LeftoversPorts {
  readonly commonDir: string;
  readonly spec: SpecSlug;
  readonly run: string;
  /** Where the worktrees and checkouts of the Spec are. */
  readonly root: string;
  readonly graceMs: number;
  /** What may be started in a run; `null`: nothing is. */
  readonly limits: ProcessLimits | null;
  readonly clock: Clock;
  readonly emit: Emit;
  /** Finds processes by mark. */
  readonly look: Look;
}

/** Looks once at every process. */
export type Look = (search: Search) => Findings;

/** The processes of a run. */
export interface Leftovers {
  /** What every child of the run has in its environment. */
  readonly environment: Environment;
  /** Where every child of the run is started. */
  readonly confinement: Confinement;
  /**
   * Ends what a giro that is gone left of this Spec; the lock must be held. A failure: it cannot be ended, and the folder it
   * works in is not free.
   */
  endEarlier(): Promise<Failure | null>;
  /** Ends what is left of the run itself. */
  endOwn(): Promise<void>;
  /** Ends what the run left in a folder, but for what its set-up runs when that `stays`. Says and gives who else is there. */
  readonly vacate: (folder: string, setup: 'stays' | 'goes') => Promise<readonly FoundProcess[]>;
}

/** Opens them with a new mark. */
export function openLeftovers(ports: LeftoversPorts): Leftovers {
  const { spec, run, graceMs, clock, look } = ports;
  const repository = repositoryMark(ports.commonDir);
  const mark = newMark({ repository, spec, run });
  const confinement = ports.limits === null ? noConfinement : openConfinement(mark, ports.limits);
  const isOwn = ({ nonce }: RunMark): boolean => nonce === mark.nonce;
  const isEarlier = (one: RunMark): boolean => one.repository === repository && one.spec === spec && isOwnerDead(one);
  const said = new Set<number>();
  const notice = (message: string): void => {
    ports.emit({ type: 'run.notice', level: 'warning', message: printable(message) });
  };
  const sayStrangers = (strangers: readonly FoundProcess[]): void => {
    for (const one of strangers.filter(({ pid }) => !said.has(pid))) {
      said.add(one.pid);
      notice(
        `${commandOf(one)} (process ${String(one.pid)}) works in ${one.folder}; nothing shows that giro started it, so it is left alone`,
      );
    }
  };
  const endAll = (isMeant: (mark: RunMark) => boolean) =>
    endFound({ find: () => look({ isMeant, folders: [] }).marked, graceMs, clock });

  return {
    environment: { [markVariable]: formatMark(mark) },
    confinement,
    async endEarlier() {
      const root = (await realPath(ports.root)) ?? ports.root;
      const { marked, above, strangers } = look({ isMeant: isEarlier, folders: [root] });
      if (above.length > 0) return startedBy(above);
      sayStrangers(strangers);
      if (marked.length === 0) {
        removeLeftGroups();
        return null;
      }
      // Said first: one that does not end by itself takes the whole grace.
      notice(`left running by a giro that was killed, ended now: ${tellLeft(marked.map(leftProcess))}`);
      const { left } = await endAll(isEarlier);
      removeLeftGroups();
      return left.length > 0 ? withstood(spec, left) : null;
    },
    async endOwn() {
      const { left } = await endAll(isOwn);
      confinement.close();
      if (left.length > 0) notice(`cannot be ended: ${tellLeft(left.map(leftProcess))}`);
    },
    async vacate(folder, setup) {
      const isMine = ({ given }: FoundProcess): boolean => setup === 'goes' || !isOfSetup(given);
      const here = () => look({ isMeant: isOwn, folders: [folder], onlyThere: true });
      const find = () => here().marked.filter((one) => isMine(one) && isIn(folder, one));
      if (find().length > 0) await endFound({ find, graceMs, clock });
      const { strangers } = here();
      sayStrangers(strangers);
      return strangers;
    },
  };
}

/** Tells what giros that are gone left running of each Spec of a repository; ends nothing. */
export function leftRunning(commonDir: string): (spec: SpecSlug) => readonly LeftProcess[] {
  const repository = repositoryMark(commonDir);
  const look = (spec: SpecSlug | null): readonly FoundProcess[] => {
    const isMeant = (mark: RunMark): boolean =>
      mark.repository === repository && (spec === null || mark.spec === spec) && isOwnerDead(mark);
    return lookForMarked({ isMeant, folders: [] }).marked;
  };
  // Nearly always nothing is left of any.
  const isAny = look(null).length > 0;
  return (spec) => (isAny ? look(spec).map(leftProcess) : []);
}

/** Ends what giros that are gone left running of a Spec, or (`null`) of all of a repository; a second time finds nothing. */
export async function endLeftRunning(request: {
  readonly commonDir: string;
  readonly spec: SpecSlug | null;
  readonly graceMs: number;
  readonly clock: Clock;
  readonly look: Look;
}): Promise<{ readonly ended: readonly LeftProcess[]; readonly withstood: readonly LeftProcess[] }> {
  const { spec, graceMs, clock, look } = request;
  const repository = repositoryMark(request.commonDir);
  const isMeant = (mark: RunMark): boolean =>
    mark.repository === repository && (spec === null || mark.spec === spec) && isOwnerDead(mark);
  const { found, left } = await endFound({
    find: () => look({ isMeant, folders: [] }).marked,
    graceMs,
    clock,
  });
  removeLeftGroups();
  const stays = new Set(left.map(({ pid }) => pid));
  const ended = found.filter(({ pid }) => !stays.has(pid)).map(leftProcess);
  return { ended, withstood: left.map(leftProcess) };
}

/** A process that was left, as people and programs are told of it. */
export interface LeftProcess {
  readonly pid: number;
  readonly command: string;
  /** What giro had started it for, or what did. */
  readonly startedFor: string;
}

/** Names processes by what they were started for. */
export function tellLeft(left: readonly LeftProcess[]): string {
  const purposes = [...new Set(left.map(({ startedFor }) => startedFor))].map((purpose) => {
    const pids = left.filter(({ startedFor }) => startedFor === purpose).map(({ pid }) => String(pid));
    return `${purpose} (${pids.length === 1 ? 'process' : 'processes'} ${pids.join(', ')})`;
  });
  return printable(purposes.join('; '));
}

function leftProcess(found: FoundProcess): LeftProcess {
  return { pid: found.pid, command: found.command, startedFor: purposeOf(found) };
}

function purposeOf({ given, ...found }: FoundProcess): string {
  const [role, gate, issue, attempt] = ['GIRO_ROLE', 'GIRO_GATE', 'GIRO_ISSUE', 'GIRO_ATTEMPT'].map((name) =>
    given.get(name),
  );
  const of = issue === undefined ? '' : ` of ${issue}`;
  if (role === 'worker') return `the agent${of}, attempt ${attempt ?? '?'}`;
  if (role === 'planner') return 'the planner';
  if (gate !== undefined) return `${role === 'judge' ? 'the judge' : 'gate'} ${gate}${of}`;
  return given.has(markVariable) ? 'the set-up' : commandOf({ given, ...found });
}

const longestCommand = 60;

function commandOf({ command }: FoundProcess): string {
  return command.length > longestCommand ? `${command.slice(0, longestCommand)}…` : command;
}

/** Set-up is nobody's role and no gate. */
function isOfSetup(given: FoundProcess['given']): boolean {
  return given.has(markVariable) && !given.has('GIRO_ROLE') && !given.has('GIRO_GATE');
}

function isIn(folder: string, found: FoundProcess): boolean {
  return found.folder === folder || found.folder.startsWith(`${folder}/`);
}

function startedBy(above: readonly FoundProcess[]): Failure {
  return {
    kind: 'environment',
    message: `a giro that was killed left running what this one was started by: ${tellLeft(above.map(leftProcess))}`,
    hint: 'run the same command in a shell of your own, which ends it',
  };
}

function withstood(spec: SpecSlug, left: readonly FoundProcess[]): Failure {
  return {
    kind: 'environment',
    message: `what a giro that was killed left running on ${spec} cannot be ended: ${tellLeft(left.map(leftProcess))}`,
    hint: `end it, then run the same command again: kill -9 ${left.map(({ pid }) => String(pid)).join(' ')}`,
  };
}

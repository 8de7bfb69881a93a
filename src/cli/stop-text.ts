/** What `giro stop` says. Pure. */
import { unreachable } from '../failure.js';
import type { SpecSlug } from '../issue.js';
import { formatDuration } from '../platform/duration.js';
import type { ProcessIdentity } from '../platform/identity.js';
import { printable, shellWord } from '../platform/text.js';
import { specsFolder } from '../spec.js';
import type { EngineLock } from '../store/engines.js';
import { stopPath, type StopFile } from '../store/stop.js';
import type { LeftProcess } from './leftovers.js';
import { howToGoOn } from './stopping.js';
import type { Ended, ToStop } from './stop-wait.js';

/** Says who was asked. */
export function askedLine(engine: ToStop): string {
  const { owner, isSeen } = engine;
  const asked = `asked ${nameOf(engine)} to stop: ${processOf(owner)}, since ${printable(owner.at)}`;
  return isSeen
    ? asked
    : `${asked}\n  it is of another machine or container and cannot be seen from here: it is asked through its files, and gets no signal`;
}

/** Says that one has not ended yet. */
export function progressLine(
  engine: ToStop,
  { ms, isStopping }: { readonly ms: number; readonly isStopping: boolean },
): string {
  const what = isStopping ? 'is ending its agents and saving state' : 'has not answered yet';
  return `waiting for ${nameOf(engine)}: it ${what} (${formatDuration(Math.round(ms / 1000) * 1000)})`;
}

/** Says how one ended, or what to do where it has not. */
export function endLine(
  { engine, outcome, ms, isStopping }: Ended,
  { now, file }: { readonly now: boolean; readonly file: StopFile | null },
): string {
  const target = engine.spec ?? specsFolder;
  const again = howToGoOn(file === null ? null : { why: '', first: file.remove }, `giro implement ${target}`);
  const [name, after] = [nameOf(engine), formatDuration(ms)];
  switch (outcome) {
    case 'stopped':
      return `stopped ${name} after ${after}; go on with: ${again}`;
    case 'gone':
      return `${name} has ended before it could give its lock back; what it saved is there, go on with: ${again}`;
    case 'forced':
      return `ended ${name} by force after ${after}; the next run recovers what it left, go on with: ${again}`;
    case 'unseen':
      return `${name} has not answered: ${processOf(engine.owner)} cannot be seen from here\n  stop it there: giro stop ${target}, or when it is surely gone: rm ${shellWord(engine.lock.path)}`;
    case 'running':
      return `${name} has not ended after ${after}: ${isStopping ? 'it is ending its agents and saving state' : `${processOf(engine.owner)} does not answer, it may be suspended`}\n  ${next(engine, target, now)}`;
    default:
      return unreachable(outcome);
  }
}

function next({ isWhole }: ToStop, target: string, now: boolean): string {
  if (!now) return `wait longer: giro stop ${target} --wait 10m, or end it at once: giro stop ${target} --now`;
  return isWhole
    ? `wait longer: giro stop ${target} --now --wait 10m`
    : 'it is part of a backlog; end all of that at once: giro stop --now';
}

/** Says that nothing runs, and what may still start. */
export function nothingLine(about: {
  readonly spec: SpecSlug | null;
  readonly file: StopFile | null;
  readonly commonDir: string;
  readonly others: readonly ProcessIdentity[];
}): string {
  const { spec, file, commonDir, others } = about;
  const nothing = spec === null ? 'nothing runs here, there is nothing to stop' : `nothing runs on ${spec}`;
  const [other] = others;
  if (spec !== null && other !== undefined) {
    const keep = `touch '${stopPath(commonDir, spec)}'`;
    return `${nothing}; a backlog runs (${processOf(other)}) and may come to it: keep it from that with: ${keep}`;
  }
  return file === null ? nothing : `${nothing}; the ${file.name} file keeps it so until: ${file.remove}`;
}

/** Says what to do about a lock that cannot be read. */
export function unreadableLine({ path }: EngineLock): string {
  return `a lock cannot be read, so nobody can be asked: ${path}\n  make sure that no giro is running, then: rm ${shellWord(path)}`;
}

/** What `--json` prints. */
export function jsonOf(
  ended: readonly Ended[],
  left: { readonly ended: readonly LeftProcess[]; readonly withstood: readonly LeftProcess[] },
): string {
  const engines = ended.map(({ engine, outcome, ms }) => {
    const { spec, specs, owner } = engine;
    return { spec, specs, run: owner.run, pid: owner.pid, host: owner.host, since: owner.at, outcome, ms };
  });
  return JSON.stringify({ engines, left });
}

function nameOf({ spec, specs }: ToStop): string {
  if (spec !== null) return spec;
  return specs.length === 0 ? 'the backlog' : `the backlog (${specs.join(', ')})`;
}

function processOf({ pid, host }: ProcessIdentity): string {
  return `process ${String(pid)} on ${printable(host.split(' ')[0] ?? host)}`;
}

/**
 * The mark that everything a run starts has in its environment. It is handed down through every group and session, and says
 * by itself whose child a process is, so that nothing has to be kept about it anywhere.
 */
import { createHash, randomBytes } from 'node:crypto';
import { realpathSync, statSync } from 'node:fs';
import { isAlive, ownIdentity, type ProcessIdentity } from './identity.js';

/** The variable that holds it. */
export const markVariable = 'GIRO_RUN';

/** What a mark says. */
export interface RunMark {
  /** Which repository, see `repositoryMark`. */
  readonly repository: string;
  readonly spec: string;
  readonly run: string;
  /** The giro that made it; numbers of processes mean something only in their namespace. */
  readonly owner: Pick<ProcessIdentity, 'pid' | 'startTime' | 'pidNamespace'>;
  /** No two marks are the same. */
  readonly nonce: string;
}

/** Makes the mark of a run. */
export function newMark(of: Pick<RunMark, 'repository' | 'spec' | 'run'>): RunMark {
  const { pid, startTime, pidNamespace } = ownIdentity();
  return { ...of, owner: { pid, startTime, pidNamespace }, nonce: randomBytes(8).toString('hex') };
}

/** Names a repository by path and inode of its git folder: another one at the same path, as in a container, is another. */
export function repositoryMark(commonDir: string): string {
  const path = realpathSync(commonDir);
  const { dev, ino } = statSync(path, { bigint: true });
  const facts = [path, String(dev), String(ino)];
  return createHash('sha256').update(facts.join('\0')).digest('hex').slice(0, 16);
}

/** Writes a mark as the value of its variable. */
export function formatMark({ repository, spec, run, owner, nonce }: RunMark): string {
  const { pid, startTime, pidNamespace } = owner;
  return [repository, spec, run, String(pid), startTime, pidNamespace, nonce].map(encodeURIComponent).join('/');
}

/** Reads the value of the variable; `null`: it is none. */
export function parseMark(text: string): RunMark | null {
  const [repository, spec, run, pid, startTime, pidNamespace, nonce, ...more] = text.split('/').map(decoded);
  if (repository === undefined || spec === undefined || run === undefined || pid === undefined) return null;
  if (startTime === undefined || pidNamespace === undefined || nonce === undefined || more.length > 0) return null;
  if (!/^[1-9][0-9]*$/.test(pid)) return null;
  return { repository, spec, run, owner: { pid: Number(pid), startTime, pidNamespace }, nonce };
}

/** Whether the giro that made a mark is gone for certain. */
export function isOwnerDead({ owner }: RunMark): boolean {
  return isAlive({ ...ownIdentity(), ...owner }) === 'dead';
}

/** Whether a mark is of this very process. */
export function isOwn({ owner }: RunMark): boolean {
  const own = ownIdentity();
  return owner.pid === own.pid && owner.startTime === own.startTime && owner.pidNamespace === own.pidNamespace;
}

function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}

/**
 * The room: the folder outside of the repository that holds its worktrees and checkouts, one folder below for each Spec.
 * Its name comes from the path of the repository, which another machine may have too while the cache folder is shared; so
 * it says inside whose it is, and nobody else ever removes anything there.
 */
import { createHash } from 'node:crypto';
import { basename, dirname, join } from 'node:path';
import { linkExclusive, readIfExists } from '../platform/files.js';
import { makeFolder } from '../platform/folders.js';
import { ownIdentity } from '../platform/identity.js';

const markName = 'owner.json';

/** Whose a room is. */
export type RoomOwner =
  | { readonly kind: 'ours' }
  /** There is none, or nobody has said whose it is. */
  | { readonly kind: 'unmarked' }
  | { readonly kind: 'other'; readonly host: string; readonly repository: string };

/** Gives the room of a repository below a folder for those of all. */
export function roomOf(folder: string, commonDir: string): string {
  return join(folder, repositoryId(commonDir));
}

/** Says in the room whose it is, unless that stands there. */
export async function markRoom(room: string, commonDir: string): Promise<void> {
  await makeFolder(room);
  const mark = { format_version: 1, host: ownIdentity().host, repository: commonDir };
  await linkExclusive(join(room, markName), `${JSON.stringify(mark)}\n`);
}

/** Reads whose a room is. */
export async function ownerOf(room: string, commonDir: string): Promise<RoomOwner> {
  const bytes = await readIfExists(join(room, markName));
  if (bytes === null) return { kind: 'unmarked' };
  const { host, repository } = parseMark(bytes.toString('utf8'));
  const isOurs = host === ownIdentity().host && repository === commonDir;
  return isOurs ? { kind: 'ours' } : { kind: 'other', host, repository };
}

/** A mark that cannot be read is somebody else's. */
function parseMark(text: string): { readonly host: string; readonly repository: string } {
  try {
    const fields = new Map<string, unknown>(Object.entries(JSON.parse(text) as object));
    return { host: String(fields.get('host')), repository: String(fields.get('repository')) };
  } catch {
    return { host: 'unknown', repository: 'unknown' };
  }
}

function repositoryId(commonDir: string): string {
  const name = basename(commonDir) === '.git' ? basename(dirname(commonDir)) : basename(commonDir);
  const safe = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 40);
  return `${safe}-${createHash('sha256').update(commonDir).digest('hex').slice(0, 8)}`;
}

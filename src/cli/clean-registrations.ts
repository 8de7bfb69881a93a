/** Registrations of worktrees that say no folder any more: a kill ended giro while it removed one. */
import { join } from 'node:path';
import type { SpecSlug } from '../issue.js';
import { bytesOnDisk } from '../platform/disk.js';
import { kindOf, readIfExists } from '../platform/files.js';
import { listFolder } from '../platform/folders.js';
import { readReflog } from '../worktree/admin.js';
import { goes, stays, type Found } from './clean-items.js';

/** Finds those that giro had locked for a Spec. git lists them nowhere, and does not prune what is locked. */
export async function halfRegistrations(commonDir: string, spec: SpecSlug): Promise<readonly Found[]> {
  const root = join(commonDir, 'worktrees');
  const found: Found[] = [];
  for (const { name, kind } of await listFolder(root)) {
    const path = join(root, name);
    if (kind !== 'folder' || (await kindOf(join(path, 'gitdir'))) !== null) continue;
    const reason = (await readIfExists(join(path, 'locked')))?.toString() ?? '';
    if (!reason.startsWith(`giro ${spec} `)) continue;
    const fields = { kind: 'worktree', spec, name: path, bytes: await bytesOnDisk(path) } as const;
    const why = 'a registration without a folder';
    const wasUsed = (await readReflog(join(path, 'logs', 'HEAD'))).length > 0;
    found.push(
      wasUsed
        ? stays({
            ...fields,
            why: `${why}, and somebody had committed there`,
            hint: `see ${path}/logs/HEAD, then remove it`,
          })
        : goes({ ...fields, why }, { kind: 'folder', path }),
    );
  }
  return found;
}

/**
 * The leases of all engines in a repository, a file each: which Issue works on which paths and with which resources.
 *
 * They are written and removed by whoever holds the short lock, whole each time; reading needs none. Nothing is synced: after a
 * power cut their owners are of an earlier boot.
 */
import { join } from 'node:path';
import { parseIssueId, parseSpecSlug, type IssueId, type SpecSlug } from '../issue.js';
import { readIfExists, removeFile, writeAtomic } from '../platform/files.js';
import { listFolder, makeFolder } from '../platform/folders.js';
import { parseIdentity, type ProcessIdentity } from '../platform/identity.js';

/** Who has a lease. */
export interface LeaseOwner extends ProcessIdentity {
  readonly spec: SpecSlug;
  readonly issue: IssueId;
  readonly run: string;
}

/** What a lease file holds. */
export interface LeaseFile {
  readonly format_version: 1;
  readonly owner: LeaseOwner;
  /** Globs, as `touches` has them. */
  readonly paths: readonly string[];
  readonly resources: readonly string[];
  readonly acquired_at: string;
  readonly expires_at: string;
  /** `held`; with anything else it is free. */
  readonly status: string;
}

/** The leases of a repository as they stand. */
export interface ReadLeases {
  readonly leases: readonly LeaseFile[];
  /** Files that say nothing that can be heeded. */
  readonly unreadable: readonly string[];
}

/** Where the leases are. */
export function leasesFolder(commonDir: string): string {
  return join(commonDir, 'giro', 'leases');
}

/** Where the lease of an Issue is. */
function leasePath(commonDir: string, { spec, issue }: Pick<LeaseOwner, 'spec' | 'issue'>): string {
  return join(leasesFolder(commonDir), `${spec}.${issue}.json`);
}

/** Reads all leases, also those that do not count any more. */
export async function readLeases(commonDir: string): Promise<ReadLeases> {
  const leases: LeaseFile[] = [];
  const unreadable: string[] = [];
  for (const { name, kind } of await listFolder(leasesFolder(commonDir))) {
    // What is being written has a dot in front.
    if (name.startsWith('.') || !name.endsWith('.json')) continue;
    const path = join(leasesFolder(commonDir), name);
    const bytes = kind === 'file' ? await readIfExists(path) : Buffer.from('');
    if (bytes === null) continue;
    const lease = parseLease(bytes.toString('utf8'));
    if (lease === null || leasePath(commonDir, lease.owner) !== path) unreadable.push(path);
    else leases.push(lease);
  }
  return { leases, unreadable };
}

/** Reads the lease of one Issue; `null`: there is none, or none that can be read. */
export async function readLease(commonDir: string, of: Pick<LeaseOwner, 'spec' | 'issue'>): Promise<LeaseFile | null> {
  const bytes = await readIfExists(leasePath(commonDir, of));
  return bytes === null ? null : parseLease(bytes.toString('utf8'));
}

/** Writes a lease in place of an earlier one of the same Issue. */
export async function writeLease(commonDir: string, lease: LeaseFile): Promise<void> {
  await makeFolder(leasesFolder(commonDir));
  await writeAtomic(leasePath(commonDir, lease.owner), `${JSON.stringify(lease)}\n`, { sync: false });
}

/** Removes the lease of an Issue. */
export function removeLease(commonDir: string, of: Pick<LeaseOwner, 'spec' | 'issue'>): Promise<void> {
  return removeFile(leasePath(commonDir, of));
}

/** Reads a lease file; `null`: it is none. */
export function parseLease(text: string): LeaseFile | null {
  const value = objectOf(text);
  const owner = parseIdentity(JSON.stringify(value['owner'] ?? null));
  const spec = parseSpecSlug(String(owner?.['spec']));
  const issue = parseIssueId(String(owner?.['issue']));
  const [run, paths, resources] = [owner?.['run'], value['paths'], value['resources']];
  const [acquired, expires, status] = [value['acquired_at'], value['expires_at'], value['status']];
  if (value['format_version'] !== 1 || owner === null || spec === undefined || issue === undefined) return null;
  if (typeof run !== 'string' || typeof status !== 'string' || !isTexts(paths) || !isTexts(resources)) return null;
  if (!isTime(acquired) || !isTime(expires)) return null;
  const { pid, startTime, bootId, host, pidNamespace } = owner;
  return {
    format_version: 1,
    owner: { spec, issue, run, pid, startTime, bootId, host, pidNamespace },
    ...{ paths, resources, acquired_at: acquired, expires_at: expires, status },
  };
}

function objectOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : {};
  } catch {
    return {};
  }
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

function isTime(value: unknown): value is string {
  return typeof value === 'string' && Number.isFinite(Date.parse(value));
}

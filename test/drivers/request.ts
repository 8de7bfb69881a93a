import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { DriverRequest } from '../../src/drivers/driver.js';
import type { IssueId, SpecSlug } from '../../src/issue.js';
import { parseIssueId, parseSpecSlug } from '../../src/issue.js';
import { temporaryFolder } from '../rig/temp.js';

/** Where one call of a driver plays. */
export interface Stage {
  /** The user's checkout. */
  readonly repository: string;
  readonly request: DriverRequest;
  readonly stop: AbortController;
}

/** Makes the folders of one call, and its request. */
export async function stage(change: Partial<DriverRequest> = {}): Promise<Stage> {
  const folder = await temporaryFolder();
  const repository = join(folder.path, 'repository');
  const worktree = join(folder.path, 'worktree');
  await mkdir(repository);
  await mkdir(worktree);
  const stop = new AbortController();
  const request: DriverRequest = {
    role: 'worker',
    spec: spec('s1'),
    issue: issue('01-store'),
    gate: null,
    attempt: 1,
    prompt: 'Do it.',
    folder: worktree,
    environment: { PATH: process.env['PATH'] ?? '', GIRO_ENVELOPE: join(folder.path, 'run', 'envelope.json') },
    envelopeFile: join(folder.path, 'run', 'envelope.json'),
    logFile: join(folder.path, 'run', 'transcript.log'),
    timeoutMs: 60_000,
    graceMs: 200,
    signal: stop.signal,
    ...change,
  };
  await mkdir(join(folder.path, 'run'));
  return { repository, request, stop };
}

/** An Issue's id, as a test writes it. */
export function issue(text: string): IssueId {
  const id = parseIssueId(text);
  if (id === undefined) throw new Error(`not an Issue: ${text}`);
  return id;
}

function spec(text: string): SpecSlug {
  const slug = parseSpecSlug(text);
  if (slug === undefined) throw new Error(`not a Spec: ${text}`);
  return slug;
}

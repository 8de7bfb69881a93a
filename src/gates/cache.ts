/** Passes that were paid for: kept in memory, and as one small file each for later runs. A fail is never kept. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import type { Evidence, Oid } from '../issue.js';
import { readIfExists, writeAtomic } from '../platform/files.js';
import { makeFolder } from '../platform/folders.js';
import type { GateDefinition } from '../policy.js';
import { definitionHash } from './definition.js';

/** What is remembered of a pass. There is no such record of a fail. */
export interface PassRecord {
  readonly gate: string;
  readonly codeTree: string;
  readonly at: string;
  readonly durationMs: number;
  /** What the run that was paid for has shown. */
  readonly evidence: Evidence | null;
}

/** Remembers passes by key. */
export interface VerdictCache {
  get(key: string): Promise<PassRecord | null>;
  put(key: string, record: PassRecord): Promise<void>;
}

/** What a pass depends on. */
export interface PassSubject {
  readonly codeTree: Oid;
  readonly gate: GateDefinition;
  /** Stands for the tools of this machine and whatever else a pass should not outlive. */
  readonly toolFingerprint: string;
}

/** Computes the key of a pass. Scope and time limit are no part of it: neither changes what a green run has shown. */
export function passKey({ codeTree, gate, toolFingerprint }: PassSubject): string {
  // 3: a pass from before evidence was asked for proves less than one of today.
  const subject = [3, codeTree, gate.name, definitionHash(gate), toolFingerprint];
  return createHash('sha256').update(JSON.stringify(subject)).digest('hex');
}

const evidenceSchema = z
  .strictObject({
    runner: z.string(),
    tests: z.number().nullable(),
    failed: z.number(),
    skipped: z.number(),
    failures: z.array(z.string()),
    passes: z.array(z.string()).optional(),
  })
  .transform(({ passes, ...rest }): Evidence => (passes === undefined ? rest : { ...rest, passes }));

const storedSchema = z.strictObject({
  v: z.literal(2),
  key: z.string(),
  verdict: z.literal('pass'),
  gate: z.string(),
  codeTree: z.string(),
  at: z.string(),
  durationMs: z.number(),
  evidence: evidenceSchema.nullable(),
});

/** Creates a cache over a folder, `<git common dir>/giro/verdicts`; null: this process only. */
export function createVerdictCache(folder: string | null): VerdictCache {
  const known = new Map<string, PassRecord>();
  return {
    async get(key) {
      const record = known.get(key) ?? (folder === null ? null : await readRecord(folder, key));
      if (record !== null) known.set(key, record);
      return record;
    },
    async put(key, record) {
      known.set(key, record);
      if (folder !== null) await writeRecord(folder, key, record);
    },
  };
}

async function readRecord(folder: string, key: string): Promise<PassRecord | null> {
  const stored = storedSchema.safeParse(await readJson(fileOf(folder, key)));
  // A file under another key's name proves nothing about this one.
  if (!stored.success || stored.data.key !== key) return null;
  const { gate, codeTree, at, durationMs, evidence } = stored.data;
  return { gate, codeTree, at, durationMs, evidence };
}

/** Whatever cannot be read is no pass: the gate simply runs. */
async function readJson(path: string): Promise<unknown> {
  try {
    const bytes = await readIfExists(path);
    return bytes === null ? null : JSON.parse(bytes.toString('utf8'));
  } catch {
    return null;
  }
}

/** Not synced: losing it costs one run of the gate. For the same reason a full disk is no failure here. */
async function writeRecord(folder: string, key: string, record: PassRecord): Promise<void> {
  try {
    await makeFolder(folder);
    await writeAtomic(fileOf(folder, key), `${JSON.stringify({ v: 2, key, verdict: 'pass', ...record })}\n`, {
      sync: false,
    });
  } catch {
    // Memory still has it for this run.
  }
}

function fileOf(folder: string, key: string): string {
  return join(folder, `${key}.json`);
}

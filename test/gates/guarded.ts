/** Two states of a repository as maps, and what the guards say to the way from one to the other. */
import { createHash } from 'node:crypto';
import { guardFindings } from '../../src/gates/guard.js';
import type { GuardChange, GuardedWork } from '../../src/gates/guard-rule.js';
import { parseIssueId, parseOid, parseSpecSlug, type Finding, type Oid } from '../../src/issue.js';
import type { GateDefinition, Policy } from '../../src/policy.js';
import { guardRules } from '../mutations/parts.js';
import { processLimits } from '../rig/policy.js';
import { noRules } from './bench.js';

/** Content of a file: text or bytes alone, or with a mode. */
export type File = string | Buffer | { readonly mode: string; readonly data: string | Buffer };

/** Files by path. */
export type Files = Readonly<Record<string, File>>;

/** What is guarded, beside the files. */
export interface Guarding {
  readonly touches?: readonly string[];
  readonly tests?: readonly string[];
  /** Commands of the gates, `skill <path>`, `rubric <path>`; `npm test` when absent. */
  readonly gates?: readonly string[];
  readonly protect?: Partial<Policy['protect']>;
  readonly limits?: Partial<Policy['limits']>;
  readonly setup?: string;
  readonly drivers?: Policy['drivers']['byName'];
  /** Names of blobs that were read. */
  readonly reads?: Oid[];
}

/** Runs the guards over a change. */
export async function guard(before: Files, after: Files, how: Guarding = {}): Promise<readonly Finding[]> {
  const blobs = new Map<Oid, Buffer>();
  const [old, now] = [before, after].map((files) => stored(files, blobs));
  if (old === undefined || now === undefined) throw new Error('impossible');
  const work: GuardedWork = {
    changes: changesOf(old, now),
    blobs: {
      sizeOf: (oid) => Promise.resolve(blobOf(blobs, oid).length),
      readBlob: (oid) => {
        how.reads?.push(oid);
        return Promise.resolve(blobOf(blobs, oid));
      },
    },
    base: (path) => Promise.resolve(old.get(path)?.oid ?? null),
    spec: parseSpecSlug('s1') ?? never(),
    issue: { id: parseIssueId('01-a') ?? never(), touches: how.touches ?? [], tests: how.tests ?? [] },
    policy: policyFor(how),
  };
  return guardFindings(work, guardRules);
}

/** The same as `rule file` or `rule file:line`, sorted. */
export async function rules(before: Files, after: Files, how: Guarding = {}): Promise<readonly string[]> {
  const findings = await guard(before, after, how);
  return findings
    .map(({ rule, file, line }) => {
      const place = line === undefined ? '' : `:${String(line)}`;
      return `${rule ?? '?'} ${file ?? ''}${place}`.trim();
    })
    .sort();
}

interface Entry {
  readonly mode: string;
  readonly oid: Oid;
  readonly lines: number;
}

function stored(files: Files, blobs: Map<Oid, Buffer>): ReadonlyMap<string, Entry> {
  return new Map(
    Object.entries(files).map(([path, file]) => {
      const { mode, data } = typeof file === 'string' || Buffer.isBuffer(file) ? { mode: '100644', data: file } : file;
      const bytes = Buffer.from(data);
      const oid = parseOid(createHash('sha1').update(bytes).digest('hex'));
      blobs.set(oid, bytes);
      return [path, { mode, oid, lines: bytes.toString('latin1').split('\n').length - 1 }];
    }),
  );
}

function changesOf(old: ReadonlyMap<string, Entry>, now: ReadonlyMap<string, Entry>): readonly GuardChange[] {
  const paths = [...new Set([...old.keys(), ...now.keys()])].sort();
  return paths.flatMap((path): readonly GuardChange[] => {
    const [was, is] = [old.get(path), now.get(path)];
    if (was?.oid === is?.oid && was?.mode === is?.mode) return [];
    const kinds = was !== undefined && is !== undefined && was.mode.slice(0, 2) !== is.mode.slice(0, 2);
    const status = was === undefined ? 'added' : is === undefined ? 'deleted' : kinds ? 'type-changed' : 'modified';
    return [
      {
        path,
        status,
        oldMode: was?.mode ?? '000000',
        newMode: is?.mode ?? '000000',
        oldOid: was?.oid ?? null,
        newOid: is?.oid ?? null,
        insertions: is?.lines ?? 0,
        deletions: was?.lines ?? 0,
      },
    ];
  });
}

function policyFor(how: Guarding): Pick<Policy, 'gates' | 'protect' | 'limits' | 'drivers' | 'worktree'> {
  return {
    gates: (how.gates ?? ['npm test']).map(gateOf),
    protect: { paths: [], tests: [], assertions: [], scope: 'open', ...how.protect },
    limits: {
      ...processLimits,
      agents: 1,
      gates: 1,
      graceMs: 1,
      files: 200,
      lines: 10_000,
      fileBytes: 5 * 1024 * 1024,
      ...how.limits,
    },
    drivers: { default: 'command', byName: how.drivers ?? new Map() },
    worktree: {
      git: 'linked',
      setupTimeoutMs: 1,
      inputs: [],
      keep: [],
      copy: [],
      link: [],
      ...(how.setup === undefined ? {} : { setup: how.setup }),
    },
  };
}

/** A command, or `skill <path>`, or `rubric <path>`. */
function gateOf(run: string, at: number): GateDefinition {
  const common = { name: `g${String(at + 1)}`, on: [], timeoutMs: 1, env: [], afterGreen: false };
  const [kind, path = ''] = run.split(' ');
  if (kind === 'skill') return { ...common, kind, skill: { path, name: 'n', description: 'd', text: 't' } };
  if (kind === 'rubric') return { ...common, kind: 'prompt', rubric: { text: 't', source: path } };
  return { ...common, kind: 'command', run, rules: noRules };
}

function blobOf(blobs: ReadonlyMap<Oid, Buffer>, oid: Oid): Buffer {
  return blobs.get(oid) ?? never();
}

function never(): never {
  throw new Error('impossible');
}

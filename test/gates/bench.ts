import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { EventBody } from '../../src/event.js';
import { createVerdictCache, type VerdictCache } from '../../src/gates/cache.js';
import type { SetupFailure, Verifier, VerifierPorts, VerifyRequest } from '../../src/gates/gate.js';
import type { JudgePorts } from '../../src/gates/judging.js';
import { createVerifier } from '../../src/gates/verify.js';
import { parseIssueId, parseOid, type IssueId, type Oid } from '../../src/issue.js';
import { systemClock } from '../../src/platform/clock.js';
import type { CommandGate, GateDefinition, GateRules } from '../../src/policy.js';
import { changedFiles, evidencePolicy, passKey, readEvidence } from '../mutations/parts.js';
import type { FakeClock } from '../rig/clock.js';
import { temporaryFolder } from '../rig/temp.js';

/** A verifier with a real shell in real folders; only the checkout is not made by git. */
export interface Bench {
  readonly folder: string;
  readonly verifier: Verifier;
  readonly cache: VerdictCache;
  readonly events: EventBody[];
  /** Each checkout that was handed out, by its folder. */
  readonly checkouts: string[];
  /** How often a checkout was brought back. */
  readonly restores: () => number;
  readonly stop: AbortController;
  readonly request: (gates: readonly GateDefinition[], change?: Partial<VerifyRequest>) => VerifyRequest;
}

/** What a test may want otherwise. */
export interface BenchOptions extends Partial<VerifierPorts> {
  readonly judges?: JudgePorts;
  /** The tracked files of the tree. */
  readonly files?: Readonly<Record<string, string>>;
  readonly setupFailure?: SetupFailure;
}

/** A code tree, as a test writes it. */
export function tree(digit: string): Oid {
  return parseOid(digit.repeat(40));
}

/** An Issue's id, as a test writes it. */
function issue(text: string): IssueId {
  const id = parseIssueId(text);
  if (id === undefined) throw new Error(`not an Issue: ${text}`);
  return id;
}

/** Nothing is asked beside the exit code. */
export const noRules: GateRules = { minTests: null, mustMatch: null, mustNotMatch: null, junit: null };

/** A command gate. */
export function gate(name: string, run: string, change: Partial<CommandGate> = {}): CommandGate {
  const on = ['issue', 'integration', 'spec'] as const;
  const common = { name, on, timeoutMs: 60_000, env: [], afterGreen: false };
  return { ...common, kind: 'command', run, rules: noRules, ...change };
}

/** Makes a verifier and what it works with. */
export async function bench({ files = {}, setupFailure, judges, ...ports }: BenchOptions = {}): Promise<Bench> {
  const { path: folder } = await temporaryFolder();
  const [events, checkouts] = [new Array<EventBody>(), new Array<string>()];
  const stop = new AbortController();
  const cache = ports.cache ?? createVerdictCache(null);
  let restores = 0;

  const write = async (checkout: string): Promise<void> => {
    for (const [path, text] of Object.entries(files)) await writeFile(join(checkout, path), text);
  };
  const verifierPorts: VerifierPorts = {
    cache,
    withCheckout: async (_codeTree, use) => {
      if (setupFailure !== undefined) return { ok: false, failure: setupFailure };
      const number = checkouts.length + 1;
      const checkout = join(folder, `checkout-${String(number)}`);
      const temporary = join(folder, `temporary-${String(number)}`);
      await mkdir(checkout);
      await mkdir(temporary);
      await write(checkout);
      checkouts.push(checkout);
      const value = await use({
        folder: checkout,
        slot: { number, portBase: 20_000 + 10 * number, temporary },
        enter: () => undefined,
        changedFiles: () =>
          changedFiles(async () => {
            const changed: string[] = [];
            await readFile(join(checkout, '..', `checkout-${String(number)}.lost`)).then(
              () => Promise.reject(new Error('the folder is gone')),
              () => undefined,
            );
            for (const [path, text] of Object.entries(files)) {
              const now = await readFile(join(checkout, path), 'utf8').catch(() => null);
              if (now !== text) changed.push(path);
            }
            return changed;
          }),
        restore: async () => {
          restores += 1;
          await write(checkout);
        },
      });
      await rm(checkout, { recursive: true, force: true });
      return { ok: true, value };
    },
    passKey,
    readEvidence,
    slots: (run) => run(),
    emit: (event) => events.push(event),
    clock: systemClock,
    environment: () => ({ PATH: process.env['PATH'] ?? '', GIRO_SPEC: 's1' }),
    logFolder: join(folder, 'logs'),
    graceMs: 300,
    toolFingerprint: 'tools-1',
    evidence: evidencePolicy({ baseline: 'fail', flaky: 'fail' }),
    baseline: () => null,
    load: () => ({ average: 1.5, processors: 4 }),
    ...ports,
  };
  const verifier = createVerifier(verifierPorts, judges ?? null);
  const request: Bench['request'] = (gates, change = {}) => ({
    scope: 'issue',
    issue: issue('01-store'),
    gates,
    codeTree: tree('a'),
    attempt: 1,
    subject: null,
    signal: stop.signal,
    ...change,
  });
  return { folder, verifier, cache, events, checkouts, restores: () => restores, stop, request };
}

/** Moves time on until something has happened. */
export async function advanceUntil<T>(clock: FakeClock, promise: Promise<T>): Promise<T> {
  const over = new AbortController();
  const settled = promise.finally(() => {
    over.abort();
  });
  settled.catch(() => undefined);
  while (!over.signal.aborted) {
    await clock.advance(60_000);
    await readFile('/dev/null');
  }
  return settled;
}

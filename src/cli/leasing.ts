/**
 * The leases of one engine (docs/durability.md, "Two at once"): taken under the short lock whole or not at all, renewed while
 * they are held, given back when their Issue is at rest.
 *
 * A lease keeps two engines from working on the same at the same time, and nothing rests on it: branches move by
 * compare-and-swap. So where one cannot be written its Issue starts all the same, and an engine that was suspended for so long
 * that another took its lease goes on with what it began, and says so.
 */
import type { Emit, LeaseHolder } from '../event.js';
import type { IssueId, SpecSlug } from '../issue.js';
import type { Clock } from '../platform/clock.js';
import { isAlive, ownIdentity, type ProcessIdentity } from '../platform/identity.js';
import type { WhileAlone } from '../platform/short-lock.js';
import { printable, shellWord } from '../platform/text.js';
import { watchFolder } from '../platform/watch.js';
import { HeldElsewhere, leaseCounts, type HeldLease, type OtherEngines } from '../scheduler/lease.js';
import type { Claim } from '../scheduler/overlap.js';
import {
  leasesFolder,
  readLease,
  readLeases,
  removeLease,
  writeLease,
  type LeaseFile,
  type LeaseOwner,
} from '../store/leases.js';
import type { OpenedGit } from '../worktree/git-types.js';
import { leftRunning } from './leftovers.js';

/** What leases stand on. */
export interface LeasingPorts {
  readonly commonDir: string;
  readonly spec: SpecSlug;
  readonly run: string;
  readonly identity: ProcessIdentity;
  readonly clock: Clock;
  readonly whileAlone: WhileAlone;
  /** Whether a giro of a Spec that is gone left something running. */
  readonly leftRunning: (spec: SpecSlug) => boolean;
  readonly watch: typeof watchFolder;
  readonly notice: (message: string, issue?: IssueId) => void;
}

/** The leases of an engine; the lock of its Spec must be held. */
export interface Leasing extends OtherEngines {
  /** Gives back what is still held. */
  close(): Promise<void>;
}

const leaseMs = 120_000;
const renewEveryMs = 40_000;
/** Nothing tells of an owner that died, nor, on some file systems, of changes. */
const lookEveryMs = 5_000;

/** What the leases of a run stand on, on this machine. */
export function leasingOf(request: {
  readonly git: Pick<OpenedGit, 'commonDir' | 'whileAlone'>;
  readonly prepared: { readonly spec: SpecSlug };
  readonly run: string;
  readonly clock: Clock;
  readonly emit: Emit;
}): LeasingPorts {
  const { git, prepared, run, clock, emit } = request;
  const { commonDir, whileAlone } = git;
  return {
    ...{ commonDir, spec: prepared.spec, run, clock, whileAlone },
    identity: ownIdentity(),
    leftRunning: (spec) => leftRunning(commonDir)(spec).length > 0,
    watch: watchFolder,
    notice: (message, issue) => {
      emit({ type: 'run.notice', level: 'warning', message, ...(issue === undefined ? {} : { issue }) });
    },
  };
}

/** Opens them: what an earlier engine of the Spec left is gone. */
export async function openLeasing(ports: LeasingPorts): Promise<Leasing> {
  const leasing = new EngineLeases(ports);
  await leasing.sweep();
  return leasing;
}

/** Finds the leases that count now. */
export async function heldLeases(
  commonDir: string,
  { now, leftRunning }: { readonly now: number; readonly leftRunning: (spec: SpecSlug) => boolean },
): Promise<{
  readonly held: readonly HeldLease[];
  readonly over: readonly LeaseOwner[];
  readonly unreadable: readonly string[];
}> {
  const { leases, unreadable } = await readLeases(commonDir);
  const held: HeldLease[] = [];
  const over: LeaseOwner[] = [];
  for (const { owner, paths, resources, status, expires_at } of leases) {
    const left = (): boolean => leftRunning(owner.spec);
    const facts = { status, owner: isAlive(owner), leftRunning: left, expiresAt: Date.parse(expires_at) };
    if (leaseCounts(facts, now)) held.push({ spec: owner.spec, issue: owner.issue, run: owner.run, paths, resources });
    else over.push(owner);
  }
  return { held, over, unreadable };
}

interface Own {
  readonly claim: Claim;
  readonly acquiredAt: string;
  /** Another engine took it, and that was said. */
  lost: boolean;
}

class EngineLeases implements Leasing {
  readonly #ports: LeasingPorts;
  readonly #own = new Map<IssueId, Own>();
  readonly #closed = new AbortController();
  readonly #said = new Set<string>();
  #seen: HeldElsewhere;
  #over: readonly LeaseOwner[] = [];
  #renewing: Promise<void> | null = null;

  constructor(ports: LeasingPorts) {
    this.#ports = ports;
    this.#seen = new HeldElsewhere(ports, []);
  }

  /** Nobody else has the lock of the Spec, so no lease of it is anybody's. */
  async sweep(): Promise<void> {
    const { commonDir, spec } = this.#ports;
    const isOwn = ({ owner }: LeaseFile): boolean => owner.spec === spec;
    if (!(await readLeases(commonDir)).leases.some(isOwn)) return;
    await this.#alone(async () => {
      for (const { owner } of (await readLeases(commonDir)).leases.filter(isOwn)) await removeLease(commonDir, owner);
    });
  }

  async take(id: IssueId, claim: Claim): Promise<LeaseHolder | null> {
    const { commonDir, clock } = this.#ports;
    const refused = await this.#alone(async () => {
      await this.#look();
      const holder = this.#seen.holder(claim);
      if (holder !== null) return holder;
      for (const owner of this.#over) await removeLease(commonDir, owner);
      const own = { claim, acquiredAt: clock.iso(), lost: false };
      await this.#write(id, own);
      this.#own.set(id, own);
      return null;
    });
    if (this.#own.size > 0) this.#renewing ??= this.#renew();
    return refused;
  }

  async giveBack(id: IssueId): Promise<void> {
    const { commonDir, spec } = this.#ports;
    if (!this.#own.delete(id)) return;
    await this.#alone(async () => {
      if (await this.#isOwn(id)) await removeLease(commonDir, { spec, issue: id });
      return null;
    });
  }

  holder(claim: Claim): LeaseHolder | null {
    return this.#seen.holder(claim);
  }

  async watch(changed: () => void, until: AbortSignal): Promise<void> {
    const { commonDir, clock, watch } = this.#ports;
    let wake = new AbortController();
    const watcher = watch(leasesFolder(commonDir), () => {
      wake.abort();
    });
    try {
      while (!until.aborted) {
        wake = new AbortController();
        const before = this.#seen.key;
        await this.#look();
        if (this.#seen.key !== before) changed();
        await clock.sleep(lookEveryMs, AbortSignal.any([wake.signal, until]));
      }
    } finally {
      watcher.close();
    }
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await this.#renewing;
    for (const id of [...this.#own.keys()]) await this.giveBack(id);
  }

  async #look(): Promise<void> {
    const { commonDir, clock, leftRunning } = this.#ports;
    const { held, over, unreadable } = await heldLeases(commonDir, { now: clock.now(), leftRunning });
    this.#seen = new HeldElsewhere(this.#ports, held);
    this.#over = over;
    for (const path of unreadable)
      this.#say(`a lease that cannot be read is not heeded: ${path} (rm ${shellWord(path)})`);
  }

  async #renew(): Promise<void> {
    const { clock } = this.#ports;
    for (;;) {
      await clock.sleep(renewEveryMs, this.#closed.signal);
      if (this.#closed.signal.aborted) return;
      await this.#alone(async () => {
        for (const [id, own] of this.#own) await this.#renewOne(id, own);
        return null;
      });
    }
  }

  /** One that is gone is taken again, unless somebody else needs it now. */
  async #renewOne(id: IssueId, own: Own): Promise<void> {
    if (!(await this.#isOwn(id))) {
      await this.#look();
      const holder = this.#seen.holder(own.claim);
      if (holder !== null) {
        if (!own.lost) {
          const others = `${holder.spec}/${holder.issue} has ${holder.what} now`;
          this.#ports.notice(printable(`its lease is gone (giro was suspended), and ${others}; it goes on`), id);
        }
        own.lost = true;
        return;
      }
    }
    own.lost = false;
    await this.#write(id, own);
  }

  async #isOwn(issue: IssueId): Promise<boolean> {
    const { commonDir, spec, run, identity } = this.#ports;
    const owner = (await readLease(commonDir, { spec, issue }))?.owner;
    return owner?.run === run && owner.pid === identity.pid && owner.startTime === identity.startTime;
  }

  #write(issue: IssueId, { claim, acquiredAt }: Own): Promise<void> {
    const { commonDir, spec, run, identity, clock } = this.#ports;
    return writeLease(commonDir, {
      format_version: 1,
      owner: { spec, issue, run, ...identity },
      paths: claim.paths.map(({ glob }) => glob),
      resources: claim.resources,
      acquired_at: acquiredAt,
      expires_at: new Date(clock.now() + leaseMs).toISOString(),
      status: 'held',
    });
  }

  /** What the disk or another engine keeps from being done is said once, and the engine goes on without. */
  async #alone<T>(work: () => Promise<T>): Promise<T | null> {
    try {
      const done = await this.#ports.whileAlone(work);
      if (done.ok) return done.value;
      const { failure } = done;
      const why = failure.kind === 'diagnostics' ? failure.kind : [failure.message, failure.hint].join('; ');
      this.#say(`leases are not heeded now: ${why}`);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error)) throw error;
      this.#say(`leases are not heeded now: ${error.message}`);
    }
    return null;
  }

  #say(message: string): void {
    if (this.#said.has(message)) return;
    this.#said.add(message);
    this.#ports.notice(printable(message));
  }
}

/**
 * Which leases of other engines count, and who keeps an Issue from starting: pure decisions.
 *
 * | who has the lease                        | before it expires | afterwards                               |
 * |------------------------------------------|-------------------|------------------------------------------|
 * | lives on this machine                    | counts            | counts: suspended, and may go on         |
 * | is dead, and left something running      | counts            | does not                                 |
 * | is dead, and nothing of it runs          | does not          | does not                                 |
 * | cannot be seen (other machine, container)| counts            | does not, a minute later: clocks differ  |
 */
import type { LeaseHolder } from '../event.js';
import type { IssueId, SpecSlug } from '../issue.js';
import { claimOf, Leases, sharedBy, type Claim } from './overlap.js';

/** Clocks of two machines may differ by so much. */
const slackMs = 60_000;

/** What is known of a lease and whoever wrote it. */
export interface LeaseFacts {
  /** `held`; anything else was let go. */
  readonly status: string;
  readonly owner: 'alive' | 'dead' | 'unknown';
  /** Asked only of a dead one: whether its agents or gates still run. */
  readonly leftRunning: () => boolean;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** Tells whether a lease counts. */
export function leaseCounts({ status, owner, leftRunning, expiresAt }: LeaseFacts, now: number): boolean {
  if (status !== 'held') return false;
  if (owner === 'alive') return true;
  if (owner === 'unknown') return now < expiresAt + slackMs;
  return now < expiresAt && leftRunning();
}

/** A lease that counts. */
export interface HeldLease {
  readonly spec: SpecSlug;
  readonly issue: IssueId;
  readonly run: string;
  readonly paths: readonly string[];
  readonly resources: readonly string[];
}

/** What other engines hold an Issue as it takes its own. */
export interface OtherEngines {
  /** Takes the lease of an Issue, whole or not at all; `null`: it is held now. Afterwards `holder` knows who refused it. */
  take(id: IssueId, claim: Claim): Promise<LeaseHolder | null>;
  giveBack(id: IssueId): Promise<void>;
  /** Tells who holds something of a claim, as it was seen last; `null` when nobody does. */
  holder(claim: Claim): LeaseHolder | null;
  /** Looks at once and then for changes, and tells of them, until the signal is aborted. */
  watch(changed: () => void, until: AbortSignal): Promise<void>;
}

/**
 * The leases that one engine has to heed: those of other Specs. Of the Specs that its own run works on only resources: their
 * files are on branches of their own, and meet when these do.
 */
export class HeldElsewhere {
  readonly #held: readonly { readonly lease: HeldLease; readonly claim: Claim }[];
  readonly #counted = new Leases();

  constructor(own: { readonly spec: SpecSlug; readonly run: string }, leases: readonly HeldLease[]) {
    this.#held = leases
      .filter(({ spec }) => spec !== own.spec)
      .map((lease) => {
        const touches = lease.run === own.run ? [] : lease.paths;
        return { lease, claim: claimOf({ touches, resources: lease.resources }) };
      });
    for (const { claim } of this.#held) this.#counted.take(claim);
  }

  /** See `OtherEngines`. Every Issue that is ready asks at every tick. */
  holder(claim: Claim): LeaseHolder | null {
    if (this.#held.length === 0 || this.#counted.isFree(claim)) return null;
    for (const { lease, claim: held } of this.#held) {
      const what = sharedBy(held, claim);
      if (what !== undefined) return { spec: lease.spec, issue: lease.issue, what };
    }
    return null;
  }

  /** The same text for the same leases. */
  get key(): string {
    return this.#held.map(({ lease }) => JSON.stringify(lease)).join('\n');
  }
}

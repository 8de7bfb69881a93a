/** What Issues of a Spec that is run wait for: the leases of other engines in the repository. */
import type { LeaseHolder } from '../event.js';
import type { Issue, IssueId, SpecSlug } from '../issue.js';
import { systemClock } from '../platform/clock.js';
import { HeldElsewhere } from '../scheduler/lease.js';
import { claimOf } from '../scheduler/overlap.js';
import { engineLocksOf } from '../store/engines.js';
import { heldLeases } from './leasing.js';

/** Finds who holds what Issues would take; those that have a lease of their own wait for nobody. */
export async function leaseHolders(
  commonDir: string,
  spec: { readonly slug: SpecSlug; readonly issues: readonly Issue[] },
  leftRunning: (spec: SpecSlug) => boolean,
): Promise<ReadonlyMap<IssueId, LeaseHolder>> {
  const [lock] = await engineLocksOf(commonDir, spec.slug);
  if (lock?.owner === undefined || lock.owner === null) return new Map();
  const { held } = await heldLeases(commonDir, { now: systemClock.now(), leftRunning });
  if (held.every((lease) => lease.spec === spec.slug)) return new Map();
  const elsewhere = new HeldElsewhere({ spec: spec.slug, run: lock.owner.run }, held);
  const own = new Set(held.filter((lease) => lease.spec === spec.slug).map(({ issue }) => issue));
  return new Map(
    spec.issues.flatMap((issue): [IssueId, LeaseHolder][] => {
      const holder = own.has(issue.id) ? null : elsewhere.holder(claimOf(issue));
      return holder === null ? [] : [[issue.id, holder]];
    }),
  );
}

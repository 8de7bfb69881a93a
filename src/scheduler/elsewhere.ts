/** The leases of one scheduler against other engines: taken, given back, and waited for. */
import type { LeaseHolder } from '../event.js';
import type { IssueId } from '../issue.js';
import type { OtherEngines } from './lease.js';
import { claimsSomething, type Claim } from './overlap.js';

/** What it stands on. */
export interface ElsewherePorts {
  /** Absent: there are no other engines. */
  readonly others?: OtherEngines;
  /**
   * Told when something ready begins (or, `null`, ceases) to wait for what another engine holds; `again`: it has waited
   * before, maybe for somebody else.
   */
  readonly onLease?: (id: IssueId, holder: LeaseHolder | null, again: boolean) => void;
}

interface Claiming {
  readonly id: IssueId;
  readonly claim: Claim;
}

/** What other engines hold, as one scheduler deals with it. */
export class Elsewhere {
  readonly #ports: ElsewherePorts;
  readonly #changed: () => void;
  /** Ready, and waiting for what another engine holds. */
  readonly #refused = new Map<IssueId, LeaseHolder>();
  readonly #told = new Set<IssueId>();
  /** What goes on beside the scheduler, and must be over before it is. */
  readonly #going = new Set<Promise<void>>();
  readonly #errors: unknown[] = [];
  #watching: AbortController | null = null;

  /** `changed` is called when what was refused may be free. */
  constructor(ports: ElsewherePorts, changed: () => void) {
    this.#ports = ports;
    this.#changed = changed;
  }

  /** Whether an Issue needs a lease at all. */
  concerns({ claim }: Claiming): boolean {
    return this.#ports.others !== undefined && claimsSomething(claim);
  }

  isHeld(claim: Claim): boolean {
    return (this.#ports.others?.holder(claim) ?? null) !== null;
  }

  /** Takes the lease of an Issue that it concerns; false: another engine has it. */
  async take({ id, claim }: Claiming): Promise<boolean> {
    return ((await this.#ports.others?.take(id, claim)) ?? null) === null;
  }

  giveBack(entry: Claiming): void {
    const { others } = this.#ports;
    if (others !== undefined && this.concerns(entry)) this.#goOn(others.giveBack(entry.id));
  }

  /** Says which of the Issues that could start wait for others, and watches those as long as any does. */
  heed(ready: readonly Claiming[]): void {
    const { others, onLease } = this.#ports;
    if (others === undefined) return;
    const refused = new Map<IssueId, LeaseHolder>();
    for (const entry of ready) {
      const holder = this.concerns(entry) ? others.holder(entry.claim) : null;
      if (holder !== null) refused.set(entry.id, holder);
    }
    for (const id of [...this.#refused.keys()]) {
      if (refused.has(id)) continue;
      this.#refused.delete(id);
      onLease?.(id, null, true);
    }
    for (const [id, holder] of refused) {
      const isNew = !isSame(this.#refused.get(id), holder);
      this.#refused.set(id, holder);
      if (isNew) onLease?.(id, holder, this.#told.has(id));
      this.#told.add(id);
    }
    if (refused.size === 0) this.#unwatch();
    else if (this.#watching === null) this.#watch(others);
  }

  /** Waits for all that goes on, and gives what went wrong. */
  async close(): Promise<readonly unknown[]> {
    this.#unwatch();
    await Promise.all(this.#going);
    return this.#errors;
  }

  #watch(others: OtherEngines): void {
    const watching = new AbortController();
    this.#watching = watching;
    const changed = (): void => {
      if (!watching.signal.aborted) this.#changed();
    };
    this.#goOn(others.watch(changed, watching.signal));
  }

  #unwatch(): void {
    this.#watching?.abort();
    this.#watching = null;
  }

  #goOn(work: Promise<void>): void {
    const going = work
      .catch((error: unknown) => void this.#errors.push(error))
      .then(() => void this.#going.delete(going));
    this.#going.add(going);
  }
}

function isSame(left: LeaseHolder | undefined, right: LeaseHolder): boolean {
  return left?.spec === right.spec && left.issue === right.issue && left.what === right.what;
}

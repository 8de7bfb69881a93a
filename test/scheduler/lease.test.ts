import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HeldElsewhere, leaseCounts, type HeldLease } from '../../src/scheduler/lease.js';
import { claimOf, sharedBy } from '../../src/scheduler/overlap.js';
import { parseIssueId, parseSpecSlug, type IssueId, type SpecSlug } from '../../src/issue.js';

function specOf(text: string): SpecSlug {
  const spec = parseSpecSlug(text);
  if (spec === undefined) throw new Error(text);
  return spec;
}

function issueOf(text: string): IssueId {
  const issue = parseIssueId(text);
  if (issue === undefined) throw new Error(text);
  return issue;
}

const touching = (...touches: string[]) => claimOf({ touches, resources: [] });

function lease(spec: string, more: Partial<HeldLease> = {}): HeldLease {
  return { spec: specOf(spec), issue: issueOf('01-a'), run: spec, paths: [], resources: [], ...more };
}

describe('whether a lease counts', () => {
  const now = 1_000_000;
  test.each([
    ['alive', false, 1, true],
    ['alive', false, -100_000, true],
    ['dead', true, 1, true],
    ['dead', true, -1, false],
    ['dead', false, 1, false],
    ['unknown', false, 1, true],
    ['unknown', false, -59_000, true],
    ['unknown', false, -60_000, false],
  ] as const)('of an owner that is %s, left running: %s, expires in %d ms: %s', (owner, left, inMs, counts) => {
    const facts = { status: 'held', owner, leftRunning: () => left, expiresAt: now + inMs };
    expect(leaseCounts(facts, now)).toBe(counts);
    expect(leaseCounts({ ...facts, status: 'released' }, now)).toBe(false);
  });
});

describe('who holds what an Issue would take', () => {
  const own = { spec: specOf('s1'), run: 'one' };
  const other = lease('s2', { paths: ['src/auth/**'], resources: ['postgres'] });

  test('is named with what it has', () => {
    const elsewhere = new HeldElsewhere(own, [lease('s3', { paths: ['docs/**'] }), other]);
    const by = { spec: 's2', issue: '01-a' };
    expect(elsewhere.holder(touching('src/auth/login.ts'))).toEqual({ ...by, what: 'src/auth/**' });
    expect(elsewhere.holder(touching('src'))).toEqual({ ...by, what: 'src/auth/**' });
    expect(elsewhere.holder(claimOf({ touches: [], resources: ['postgres'] }))).toEqual({ ...by, what: 'postgres' });
    expect(elsewhere.holder(touching('src/author/a.ts'))).toBeNull();
    expect(elsewhere.holder(touching())).toBeNull();
  });

  test('is nobody of the own Spec, whose scheduler knows', () => {
    expect(new HeldElsewhere({ ...own, spec: specOf('s2') }, [other]).holder(touching('src'))).toBeNull();
  });

  test('of the own run only with a resource', () => {
    const elsewhere = new HeldElsewhere({ ...own, run: 's2' }, [other]);
    expect(elsewhere.holder(touching('src'))).toBeNull();
    expect(elsewhere.holder(claimOf({ touches: ['src'], resources: ['postgres'] }))?.what).toBe('postgres');
  });
});

/** What happens to one of four engines, two on each of two machines. */
type Step =
  | { readonly kind: 'take'; readonly engine: number; readonly issue: number; readonly claim: number }
  | { readonly kind: 'give'; readonly engine: number; readonly issue: number }
  | { readonly kind: 'crash'; readonly engine: number }
  | { readonly kind: 'suspend'; readonly engine: number }
  | { readonly kind: 'wake'; readonly engine: number }
  | { readonly kind: 'pass'; readonly ms: number };

const claims = [
  { touches: ['src/**'], resources: [] },
  { touches: ['src/a/x.ts', 'docs/**'], resources: [] },
  { touches: ['src/ab/*'], resources: ['postgres'] },
  { touches: [], resources: ['postgres'] },
  { touches: ['docs/a.md'], resources: ['port'] },
] as const;

interface Kept extends HeldLease {
  readonly engine: number;
  expiresAt: number;
}

/** The rules of `cli/leasing.ts` without its files. */
class World {
  now = 0;
  readonly table = new Map<string, Kept>();
  readonly engines = Array.from({ length: 4 }, () => ({
    state: 'running',
    /** What it works on, and whether it has the lease for it as far as it knows. */
    working: new Map<number, { readonly claim: number; leased: boolean }>(),
  }));

  #machine(engine: number): number {
    return engine % 2;
  }

  #specOf(engine: number): SpecSlug {
    return specOf(`s${String(engine)}`);
  }

  take(engine: number, issue: number, claim: number): boolean {
    const named = claims[claim] ?? claims[0];
    const seen = [...this.table].filter(([, kept]) => this.#counts(engine, kept));
    const elsewhere = new HeldElsewhere(
      { spec: this.#specOf(engine), run: String(engine) },
      seen.map(([, kept]) => kept),
    );
    if (elsewhere.holder(claimOf(named)) !== null) return false;
    for (const [key, kept] of this.table) if (!this.#counts(engine, kept)) this.table.delete(key);
    this.table.set(`${String(engine)}.${String(issue)}`, {
      engine,
      spec: this.#specOf(engine),
      issue: issueOf(`${String(issue)}-x`),
      run: String(engine),
      paths: named.touches,
      resources: named.resources,
      expiresAt: this.now + 120_000,
    });
    return true;
  }

  #counts(by: number, { engine, expiresAt }: Kept): boolean {
    const isSeen = this.#machine(by) === this.#machine(engine);
    const owner = !isSeen ? 'unknown' : this.engines[engine]?.state === 'dead' ? 'dead' : 'alive';
    return leaseCounts({ status: 'held', owner, leftRunning: () => false, expiresAt }, this.now);
  }

  renew(engine: number): void {
    for (const [issue, work] of this.engines[engine]?.working ?? []) {
      const kept = this.table.get(`${String(engine)}.${String(issue)}`);
      if (kept !== undefined) kept.expiresAt = this.now + 120_000;
      else work.leased = this.take(engine, issue, work.claim);
    }
  }

  do(step: Step): void {
    if (step.kind === 'pass') {
      for (let left = step.ms; left > 0; left -= 40_000) {
        this.now += Math.min(left, 40_000);
        for (const [at, { state }] of this.engines.entries()) if (state === 'running') this.renew(at);
      }
      return;
    }
    const engine = this.engines[step.engine];
    if (engine === undefined || engine.state === 'dead') return;
    if (step.kind === 'crash') engine.state = 'dead';
    else if (step.kind === 'suspend') engine.state = 'suspended';
    else if (step.kind === 'wake') {
      engine.state = 'running';
      this.renew(step.engine);
    } else if (engine.state !== 'running') return;
    else if (step.kind === 'give') {
      engine.working.delete(step.issue);
      this.table.delete(`${String(step.engine)}.${String(step.issue)}`);
    } else if (!engine.working.has(step.issue) && this.take(step.engine, step.issue, step.claim)) {
      engine.working.set(step.issue, { claim: step.claim, leased: true });
    }
  }

  /** What live engines hold, as far as they know, by twos of different engines. */
  overlaps(): readonly string[] {
    const held = this.engines.flatMap(({ state, working }, at) =>
      state === 'running'
        ? [...working.values()].filter(({ leased }) => leased).map(({ claim }) => ({ at, claim }))
        : [],
    );
    return held.flatMap((one) =>
      held.flatMap((two) => {
        const shared = sharedBy(claimOf(claims[one.claim] ?? claims[0]), claimOf(claims[two.claim] ?? claims[0]));
        return one.at < two.at && shared !== undefined ? [`${String(one.at)} and ${String(two.at)}: ${shared}`] : [];
      }),
    );
  }
}

const engine = fc.nat(3);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    arbitrary: fc.record({ kind: fc.constant('take'), engine, issue: fc.nat(2), claim: fc.nat(4) }),
    weight: 6,
  },
  { arbitrary: fc.record({ kind: fc.constant('give'), engine, issue: fc.nat(2) }), weight: 3 },
  { arbitrary: fc.record({ kind: fc.constantFrom('crash', 'suspend', 'wake', 'wake'), engine }), weight: 2 },
  { arbitrary: fc.record({ kind: fc.constant('pass'), ms: fc.nat(300_000) }), weight: 2 },
);

test('no two engines that are at work ever hold what overlaps, whatever is killed or suspended', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const world = new World();
      for (const one of steps) {
        world.do(one);
        expect(world.overlaps()).toEqual([]);
      }
    }),
    { numRuns: 400 },
  );
});

test('whatever the dead held is free in the end, on their machine at once', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), fc.nat(3), fc.nat(4), (steps, survivor, claim) => {
      const world = new World();
      for (const one of steps) world.do(one);
      for (const at of [0, 1, 2, 3].filter((other) => other !== survivor)) world.do({ kind: 'crash', engine: at });
      fc.pre(world.engines[survivor]?.state !== 'dead');
      world.do({ kind: 'wake', engine: survivor });
      world.do({ kind: 'pass', ms: 200_000 });
      expect(world.take(survivor, 9, claim)).toBe(true);
    }),
    { numRuns: 200 },
  );
});

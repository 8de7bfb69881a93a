import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { leasingOf, openLeasing, type Leasing, type LeasingPorts } from '../../src/cli/leasing.js';
import { ok } from '../../src/failure.js';
import { parseIssueId, parseSpecSlug, type IssueId } from '../../src/issue.js';
import { systemClock } from '../../src/platform/clock.js';
import { ownIdentity } from '../../src/platform/identity.js';
import { claimOf, type Claim } from '../../src/scheduler/overlap.js';
import { parseLease, type LeaseFile } from '../../src/store/leases.js';
import { FakeClock } from '../rig/clock.js';
import { temporaryFolder } from '../rig/temp.js';

const src = claimOf({ touches: ['src/**'], resources: [] });
const postgres = claimOf({ touches: [], resources: ['postgres'] });
const [one, two] = ['01-a', '02-b'].map(issueOf) as [IssueId, IssueId];
const elsewhere = { host: 'elsewhere' };
const dead = { startTime: '1' };

function issueOf(text: string): IssueId {
  const issue = parseIssueId(text);
  if (issue === undefined) throw new Error(text);
  return issue;
}

class Place {
  readonly clock = new FakeClock();
  readonly notices: string[] = [];
  readonly commonDir: string;
  readonly folder: string;
  /** Specs of whose dead giro something runs. */
  readonly left = new Set<string>();
  changed: () => void = () => undefined;

  constructor(commonDir: string) {
    this.commonDir = commonDir;
    this.folder = join(commonDir, 'giro', 'leases');
  }

  async open(spec: string, more: Partial<LeasingPorts> = {}): Promise<Leasing> {
    const slug = parseSpecSlug(spec);
    if (slug === undefined) throw new Error(spec);
    return openLeasing({
      commonDir: this.commonDir,
      spec: slug,
      run: `run-${spec}`,
      identity: ownIdentity(),
      clock: this.clock,
      whileAlone: async (work) => ok(await work()),
      leftRunning: (of) => this.left.has(of),
      watch: (_folder, changed) => {
        this.changed = changed;
        return { close: () => undefined };
      },
      notice: (message, issue) => void this.notices.push(`${issue ?? ''}: ${message}`),
      ...more,
    });
  }

  async read(name: string): Promise<LeaseFile> {
    const lease = parseLease(await readFile(join(this.folder, name), 'utf8'));
    if (lease === null) throw new Error(`${name} cannot be read`);
    return lease;
  }

  /** Changes who has a lease, as if another process had written it. */
  async rewrite(name: string, owner: object, more: object = {}): Promise<void> {
    const lease = await this.read(name);
    await writeFile(
      join(this.folder, name),
      JSON.stringify({ ...lease, ...more, owner: { ...lease.owner, ...owner } }),
    );
  }

  names(): Promise<readonly string[]> {
    return readdir(this.folder);
  }
}

async function place(): Promise<Place> {
  return new Place((await temporaryFolder()).path);
}

const by = (spec: string, what: string, issue: IssueId = one): object => ({ spec, issue, what });

describe('a lease', () => {
  test('is a file with all that another engine needs, and gone when it is given back', async () => {
    const at = await place();
    const s1 = await at.open('s1');
    expect(await s1.take(one, claimOf({ touches: ['src/a/**', 'docs'], resources: ['postgres'] }))).toBeNull();
    expect(JSON.parse(await readFile(join(at.folder, 's1.01-a.json'), 'utf8'))).toEqual({
      format_version: 1,
      owner: { spec: 's1', issue: '01-a', run: 'run-s1', ...ownIdentity() },
      paths: ['src/a/**', 'docs'],
      resources: ['postgres'],
      acquired_at: '2030-01-01T00:00:00.000Z',
      expires_at: '2030-01-01T00:02:00.000Z',
      status: 'held',
    });
    await s1.giveBack(one);
    expect(await at.names()).toEqual([]);
    await s1.close();
  });

  test('is refused while another Spec has what overlaps, and named; whole or not at all', async () => {
    const at = await place();
    const [s1, s2] = [await at.open('s1'), await at.open('s2')];
    await s1.take(one, src);
    expect(await s2.take(one, claimOf({ touches: ['docs', 'src/a.ts'], resources: ['port'] }))).toEqual(
      by('s1', 'src/**'),
    );
    expect(s2.holder(claimOf({ touches: ['src/b.ts'], resources: [] }))).toEqual(by('s1', 'src/**'));
    expect(await at.names()).toEqual(['s1.01-a.json']);
    expect(await s2.take(two, postgres)).toBeNull();
    expect(await s1.take(two, postgres)).toEqual(by('s2', 'postgres', two));
    await s1.giveBack(one);
    expect(await s2.take(one, src)).toBeNull();
    await Promise.all([s1.close(), s2.close()]);
    expect(await at.names()).toEqual([]);
  });

  test('of one engine hold what they hold against each other only by resource', async () => {
    const at = await place();
    const [s1, s2] = [await at.open('s1', { run: 'night' }), await at.open('s2', { run: 'night' })];
    await s1.take(one, claimOf({ touches: ['src/**'], resources: ['postgres'] }));
    expect(await s2.take(one, src)).toBeNull();
    expect(await s2.take(two, postgres)).toEqual(by('s1', 'postgres'));
    await Promise.all([s1.close(), s2.close()]);
  });

  test('is renewed while it is held, however long', async () => {
    const at = await place();
    const [s1, s2] = [await at.open('s1'), await at.open('s2')];
    await s1.take(one, src);
    await at.clock.advance(3_600_000);
    expect((await at.read('s1.01-a.json')).expires_at).toBe('2030-01-01T01:02:00.000Z');
    expect((await at.read('s1.01-a.json')).acquired_at).toBe('2030-01-01T00:00:00.000Z');
    expect(await s2.take(one, src)).not.toBeNull();
    await Promise.all([s1.close(), s2.close()]);
    expect([at.notices, at.clock.sleeping]).toEqual([[], 0]);
  });
});

describe('the lease of another', () => {
  async function left(change: object): Promise<{ readonly at: Place; readonly s2: Leasing }> {
    const at = await place();
    await (await at.open('s1')).take(one, src);
    await at.rewrite('s1.01-a.json', { run: 'gone', ...change });
    return { at, s2: await at.open('s2') };
  }

  test('that is dead is taken over at once', async () => {
    const { at, s2 } = await left(dead);
    expect(await s2.take(one, src)).toBeNull();
    expect(await at.names()).toEqual(['s2.01-a.json']);
  });

  test('that is dead and left something running, when it has expired', async () => {
    const { at, s2 } = await left(dead);
    at.left.add('s1');
    expect(await s2.take(one, src)).toEqual(by('s1', 'src/**'));
    await at.rewrite('s1.01-a.json', {}, { expires_at: '2029-12-31T23:59:59.000Z' });
    expect(await s2.take(one, src)).toBeNull();
  });

  test.each([
    ['another host', elsewhere],
    ['another container', { pidNamespace: 'pid:[1]' }],
  ])('on %s is taken over a minute after it has expired, not before', async (_name, owner) => {
    const { at, s2 } = await left(owner);
    expect(await s2.take(one, src)).toEqual(by('s1', 'src/**'));
    await at.rewrite('s1.01-a.json', {}, { expires_at: '2029-12-31T23:59:01.000Z' });
    expect(await s2.take(one, src)).toEqual(by('s1', 'src/**'));
    await at.rewrite('s1.01-a.json', {}, { expires_at: '2029-12-31T23:59:00.000Z' });
    expect(await s2.take(one, src)).toBeNull();
  });

  test('that lives here is never taken over, though it has expired: it is suspended', async () => {
    const { at, s2 } = await left({});
    await at.rewrite('s1.01-a.json', {}, { expires_at: '2029-01-01T00:00:00.000Z' });
    expect(await s2.take(one, src)).toEqual(by('s1', 'src/**'));
  });

  test('is gone when an engine of the same Spec begins', async () => {
    const { at } = await left(elsewhere);
    await at.open('s1', { run: 'again' });
    expect(await at.names()).toEqual([]);
  });

  test('that cannot be read is said once and not heeded', async () => {
    const at = await place();
    await mkdir(at.folder, { recursive: true });
    const texts = ['', '{"format_version":1', '{"format_version":2}', 'null', '[]'];
    for (const [index, text] of texts.entries()) await writeFile(join(at.folder, `s9.0${String(index)}-a.json`), text);
    const s2 = await at.open('s2');
    expect(await s2.take(one, src)).toBeNull();
    await s2.giveBack(one);
    await s2.take(one, src);
    expect(at.notices).toHaveLength(texts.length);
    expect(at.notices[0]).toContain(`rm '${join(at.folder, 's9.00-a.json')}'`);
    await s2.close();
  });
});

describe('an engine that was suspended for longer than its lease', () => {
  test('says so when another has it now, goes on, and has it again when that one is done', async () => {
    const at = await place();
    const s1 = await at.open('s1');
    await s1.take(one, src);
    await rm(join(at.folder, 's1.01-a.json'));
    const s2 = await at.open('s2');
    expect(await s2.take(two, src)).toBeNull();
    await at.clock.advance(90_000);
    expect(at.notices).toEqual([
      '01-a: its lease is gone (giro was suspended), and s2/02-b has src/** now; it goes on',
    ]);
    expect(await at.names()).toEqual(['s2.02-b.json']);
    await s2.giveBack(two);
    await at.clock.advance(40_000);
    expect(await at.names()).toEqual(['s1.01-a.json']);
    await Promise.all([s1.close(), s2.close()]);
    expect(await at.names()).toEqual([]);
  });

  test('leaves the lease of whoever has its place alone', async () => {
    const at = await place();
    const s1 = await at.open('s1');
    await s1.take(one, src);
    await at.rewrite('s1.01-a.json', { ...elsewhere, run: 'another' });
    await s1.close();
    expect(await at.names()).toEqual(['s1.01-a.json']);
  });
});

describe('waiting', () => {
  test('looks at once, when the folder changes, and every five seconds; and tells only of what changed', async () => {
    const at = await place();
    const [s1, s2] = [await at.open('s1'), await at.open('s2')];
    await s1.take(one, src);
    const until = new AbortController();
    let told = 0;
    const watching = s2.watch(() => (told += 1), until.signal);
    await at.clock.waiting(2);
    expect([told, s2.holder(src)]).toEqual([1, by('s1', 'src/**')]);
    await at.clock.advance(6_000);
    at.changed();
    await turn();
    expect(told).toBe(1);
    await s1.giveBack(one);
    at.changed();
    await turn();
    expect([told, s2.holder(src)]).toEqual([2, null]);
    await s1.take(two, postgres);
    await at.clock.advance(5_000);
    expect([told, s2.holder(postgres)]).toEqual([3, by('s1', 'postgres', two)]);
    until.abort();
    await watching;
    await s1.close();
    expect(at.clock.sleeping).toBe(0);
  });
});

test('what keeps leases from being written is said once, and the Issue starts', async () => {
  const at = await place();
  const refusing = await at.open('s1', {
    whileAlone: () => Promise.resolve({ ok: false, failure: { kind: 'locked', message: 'kept', hint: 'rm it' } }),
  });
  expect([await refusing.take(one, src), await refusing.take(two, src)]).toEqual([null, null]);
  const full = await at.open('s2', {
    whileAlone: () => Promise.reject(Object.assign(new Error('no space left'), { code: 'ENOSPC' })),
  });
  expect(await full.take(one, src)).toBeNull();
  await Promise.all([refusing.close(), full.close()]);
  expect(at.notices).toEqual([
    ': leases are not heeded now: kept; rm it',
    ': leases are not heeded now: no space left',
  ]);
});

test('engines that all want it at once under the real lock: one has it at a time', async () => {
  const at = await place();
  const { ShortLock } = await import('../../src/platform/short-lock.js');
  const path = join(at.commonDir, 'giro', 'short-lock', 'owner.json');
  const engines = await Promise.all(
    ['s1', 's2', 's3', 's4', 's5'].map((spec) => {
      const lock = new ShortLock({ path, guards: 'a test', clock: systemClock });
      return at.open(spec, { whileAlone: (work) => lock.whileAlone(work), clock: systemClock });
    }),
  );
  const claims: readonly Claim[] = [src, postgres, claimOf({ touches: ['src/a'], resources: ['postgres'] })];
  const holding = new Set<{ readonly claim: number; readonly engine: number }>();
  const overlap = (left: number, right: number): boolean => left === right || left === 2 || right === 2;
  await Promise.all(
    engines.map(async (engine, index) => {
      for (let round = 0; round < 12; round += 1) {
        const claim = (round + index) % 3;
        if ((await engine.take(one, claims[claim] ?? src)) !== null) continue;
        const mine = { claim, engine: index };
        for (const other of holding) expect(overlap(other.claim, claim)).toBe(false);
        holding.add(mine);
        await turn();
        holding.delete(mine);
        await engine.giveBack(one);
      }
    }),
  );
  await Promise.all(engines.map((engine) => engine.close()));
  expect(await at.names()).toEqual([]);
});

test('a run has them in the repository, whichever of its worktrees it is started in', () => {
  const git = { commonDir: '/r/.git', whileAlone: async <T>(work: () => Promise<T>) => ok(await work()) };
  const spec = parseSpecSlug('s1');
  if (spec === undefined) throw new Error('s1');
  const ports = leasingOf({ git, prepared: { spec }, run: 'r', clock: systemClock, emit: () => undefined });
  expect([ports.commonDir, ports.run, ports.identity.pid]).toEqual(['/r/.git', 'r', process.pid]);
});

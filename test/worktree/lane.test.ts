import { describe, expect, test } from 'vitest';
import type { Oid } from '../../src/issue.js';
import { Lane, type Landing, type Mergeable } from '../../src/worktree/lane.js';
import type { OpenedGit } from '../../src/worktree/git-types.js';
import { checkedOut, laneGit } from '../mutations/parts.js';
import { FakeClock } from '../rig/clock.js';
import { commitOf, makeRepository, openRepository, treeOf, type TestRepository } from '../rig/repository.js';

const ref = 'refs/heads/giro/s1';
const specs = { 'docs/specs/s1/SPEC.md': 'spec' };

interface Verdict {
  readonly passed: boolean;
}

/** A lane on a real repository, whose gates the test plays. */
class LaneRig {
  readonly git: OpenedGit;
  readonly repository: TestRepository;
  readonly clock = new FakeClock();
  readonly stop = new AbortController();
  readonly lane: Lane;
  readonly start: Oid;
  /** What happened, in order. */
  readonly log: string[] = [];
  checkedOut: string | null = null;
  nothingElseMoves = false;
  /** Called for each verification. */
  verify: (issue: string, code: Oid) => Promise<boolean> = () => Promise.resolve(true);

  private constructor(repository: TestRepository, git: OpenedGit, start: Oid) {
    this.repository = repository;
    this.git = git;
    this.start = start;
    this.lane = new Lane({
      git: laneGit(git),
      ref,
      tip: start,
      checkedOut: () => Promise.resolve(checkedOut(() => this.checkedOut)),
      nothingElseMoves: () => this.nothingElseMoves,
      clock: this.clock,
      signal: this.stop.signal,
    });
  }

  static async open(files: Readonly<Record<string, string>> = { 'line.txt': 'base\n' }): Promise<LaneRig> {
    const repository = await makeRepository();
    const git = await openRepository(repository);
    const start = await commitOf(git, { ...files, ...specs });
    expect((await git.moveRef(ref, start, null)).ok).toBe(true);
    return new LaneRig(repository, git, start);
  }

  /** Work of an Issue made from a tip: these files instead of the base's. */
  async work(files: Readonly<Record<string, string>>, base = this.start): Promise<Mergeable> {
    return {
      commit: await commitOf(this.git, { ...files, ...specs }, base),
      base,
      code: await treeOf(this.git, files),
    };
  }

  land(issue: string, work: Mergeable): Promise<Landing<Verdict>> {
    return this.lane.land<Verdict>({
      mine: () => Promise.resolve(work),
      onCandidate: () => this.log.push(`candidate ${issue}`),
      onHeld: (message) => this.log.push(`held ${message}`),
      verify: async (code) => {
        this.log.push(`verify ${issue}`);
        return { passed: await this.verify(issue, code) };
      },
      commit: async (tip, code) => {
        this.log.push(`commit ${issue}`);
        const tree = await this.git.editTree(
          code,
          new Map([['docs/specs/s1/SPEC.md', { mode: '100644', oid: await this.git.writeBlob('spec') }]]),
        );
        return this.git.writeCommit({ tree, parents: [tip, work.commit], message: issue, at: 0 });
      },
    });
  }

  tip(): Promise<Oid | null> {
    return this.git.readRef(ref);
  }

  /** A person commits on the branch. */
  async person(files: Readonly<Record<string, string>>): Promise<Oid> {
    const tip = await this.tip();
    const commit = await commitOf(this.git, { ...files, ...specs }, ...(tip === null ? [] : [tip]));
    expect((await this.git.moveRef(ref, commit, tip)).ok).toBe(true);
    return commit;
  }

  async read(commit: Oid | null, path: string): Promise<string | null> {
    const entry = commit === null ? null : await this.git.readPath(commit, path);
    return entry === null ? null : (await this.git.readBlob(entry.oid)).toString('utf8');
  }
}

describe('the lane', () => {
  test('M1 is one at a time, in the order of asking', async () => {
    const rig = await LaneRig.open();
    let running = 0;
    rig.verify = async () => {
      running += 1;
      expect(running).toBe(1);
      await rig.git.readCommit(rig.start);
      running -= 1;
      return true;
    };
    const works = await Promise.all(
      ['a', 'b', 'c'].map((name) => rig.work({ 'line.txt': 'base\n', [`${name}.txt`]: name })),
    );
    const landings = await Promise.all(['a', 'b', 'c'].map((name, index) => rig.land(name, works[index] as Mergeable)));
    expect(landings.map((landing) => landing.kind)).toEqual(['landed', 'landed', 'landed']);
    expect(rig.log).toEqual(
      ['a', 'b', 'c'].flatMap((name) => [`candidate ${name}`, `verify ${name}`, `commit ${name}`]),
    );
    const tip = await rig.tip();
    expect(tip).toBe(rig.lane.tip);
    for (const name of ['a', 'b', 'c']) expect(await rig.read(tip, `${name}.txt`)).toBe(name);
  });

  test('M2 verifies the merged code, without docs/specs, and lands exactly it', async () => {
    const rig = await LaneRig.open();
    await rig.land('a', await rig.work({ 'line.txt': 'base\n', 'a.txt': 'a' }));
    const verified: Oid[] = [];
    rig.verify = (_issue, code) => {
      verified.push(code);
      return Promise.resolve(true);
    };
    const landing = await rig.land('b', await rig.work({ 'line.txt': 'base\n', 'b.txt': 'b' }));
    expect(verified).toEqual([await treeOf(rig.git, { 'line.txt': 'base\n', 'a.txt': 'a', 'b.txt': 'b' })]);
    expect(landing).toMatchObject({ kind: 'landed', commit: await rig.tip() });
  });

  test('M3 a conflict names its files and leaves nothing', async () => {
    const rig = await LaneRig.open();
    const work = await rig.work({ 'line.txt': 'mine\n' });
    await rig.land('a', await rig.work({ 'line.txt': 'theirs\n' }));
    const tip = await rig.tip();
    expect(await rig.land('b', work)).toEqual({ kind: 'conflict', tip, files: ['line.txt'] });
    expect(await rig.tip()).toBe(tip);
    expect(rig.log).not.toContain('candidate b');
  });

  test('M3 red leaves nothing, and says on which tip', async () => {
    const rig = await LaneRig.open();
    rig.verify = () => Promise.resolve(false);
    expect(await rig.land('a', await rig.work({ 'a.txt': 'a' }))).toEqual({
      kind: 'red',
      tip: rig.start,
      verdict: { passed: false },
    });
    expect(await rig.tip()).toBe(rig.start);
    expect(rig.log).not.toContain('commit a');
  });

  test('a verification that throws is the error of its own Issue; the next one lands', async () => {
    const rig = await LaneRig.open();
    rig.verify = (issue) => (issue === 'a' ? Promise.reject(new Error('bug')) : Promise.resolve(true));
    const [a, b] = [await rig.work({ a: 'a' }), await rig.work({ b: 'b' })];
    const [first, second] = await Promise.allSettled([rig.land('a', a), rig.land('b', b)]);
    expect(first.status).toBe('rejected');
    expect(second).toMatchObject({ status: 'fulfilled', value: { kind: 'landed' } });
  });
});

describe('M5 a tip that somebody moved', () => {
  test('while gates ran: the merge with it is verified anew, and nothing of it is lost', async () => {
    const rig = await LaneRig.open();
    const verified: Oid[] = [];
    rig.verify = async (_issue, code) => {
      verified.push(code);
      if (verified.length === 1) await rig.person({ 'line.txt': 'base\n', 'person.txt': 'p' });
      return true;
    };
    const landing = await rig.land('a', await rig.work({ 'line.txt': 'base\n', 'a.txt': 'a' }));
    expect(landing.kind).toBe('landed');
    const tip = await rig.tip();
    expect([await rig.read(tip, 'person.txt'), await rig.read(tip, 'a.txt')]).toEqual(['p', 'a']);
    expect(verified[1]).toBe(await treeOf(rig.git, { 'line.txt': 'base\n', 'person.txt': 'p', 'a.txt': 'a' }));
  });

  test('before gates ran: only the merge with it is paid for', async () => {
    const rig = await LaneRig.open();
    await rig.person({ 'line.txt': 'base\n', 'person.txt': 'p' });
    await rig.land('a', await rig.work({ 'line.txt': 'base\n', 'a.txt': 'a' }));
    expect(rig.log.filter((line) => line.startsWith('verify'))).toHaveLength(1);
    expect(await rig.read(await rig.tip(), 'person.txt')).toBe('p');
  });

  test('back, without what landed: it is left alone and the fix is said', async () => {
    const rig = await LaneRig.open();
    await rig.land('a', await rig.work({ 'line.txt': 'base\n', 'a.txt': 'a' }));
    const landed = rig.lane.tip;
    expect((await rig.git.moveRef(ref, rig.start, landed)).ok).toBe(true);
    const answer = await rig.land('b', await rig.work({ 'line.txt': 'base\n', 'b.txt': 'b' }));
    expect(answer).toMatchObject({ kind: 'held' });
    expect(answer.kind === 'held' ? answer.message : '').toContain(`git branch -f giro/s1 ${landed}`);
    expect(await rig.tip()).toBe(rig.start);
    expect(rig.log).not.toContain('verify b');
    expect(await rig.lane.record(() => rig.work({}).then((work) => work.commit))).toMatchObject({ kind: 'held' });
    expect(await rig.tip()).toBe(rig.start);
  });

  test('away: deleted, it stays so, and the fix is said', async () => {
    const rig = await LaneRig.open();
    rig.verify = async () => (await rig.git.moveRef(ref, null, rig.start)).ok;
    const answer = await rig.land('a', await rig.work({ 'a.txt': 'a' }));
    expect(answer.kind === 'held' ? answer.message : '').toContain(
      `was deleted during the run; bring it back with: git branch -f giro/s1 ${rig.start}`,
    );
    expect(await rig.tip()).toBeNull();
  });

  test('again and again: the lane gives up in the end', async () => {
    const rig = await LaneRig.open();
    let moves = 0;
    rig.verify = async () => {
      moves += 1;
      await rig.person({ 'line.txt': 'base\n', 'person.txt': String(moves) });
      return true;
    };
    expect(await rig.land('a', await rig.work({ 'line.txt': 'base\n', 'a.txt': 'a' }))).toMatchObject({ kind: 'held' });
    expect(moves).toBeGreaterThan(1);
    expect(await rig.read(await rig.tip(), 'person.txt')).toBe(String(moves));
  });
});

describe('M4 a branch that is checked out', () => {
  test('is not moved; the landing waits, and goes on once it is free', async () => {
    const rig = await LaneRig.open();
    rig.checkedOut = "/home/p/my repo's";
    const landing = rig.land('a', await rig.work({ 'a.txt': 'a' }));
    await rig.clock.waiting();
    expect(rig.lane.held).toBe(1);
    expect(rig.log.at(-1)).toBe(
      "held giro/s1 is checked out in /home/p/my repo's; landing waits. Free it with: git -C '/home/p/my repo'\\''s' switch --detach",
    );
    await rig.clock.advance(10_000);
    expect(await rig.tip()).toBe(rig.start);
    rig.checkedOut = null;
    await rig.clock.waiting();
    await rig.clock.advance(1000);
    expect(await landing).toMatchObject({ kind: 'landed' });
    expect(rig.lane.held).toBe(0);
  });

  test('may be so again and again: that is not what the lane gives up for', async () => {
    const rig = await LaneRig.open();
    let verified = 0;
    rig.verify = () => {
      verified += 1;
      rig.checkedOut = verified > 12 ? null : '/p';
      return Promise.resolve(true);
    };
    const landing = rig.land('a', await rig.work({ 'a.txt': 'a' }));
    for (let round = 0; round < 12; round += 1) {
      await rig.clock.waiting();
      rig.checkedOut = null;
      await rig.clock.advance(1000);
    }
    expect(await landing).toMatchObject({ kind: 'landed' });
  });

  test('does not keep the others from being verified meanwhile', async () => {
    const rig = await LaneRig.open();
    rig.checkedOut = '/p';
    const first = rig.land('a', await rig.work({ 'line.txt': 'base\n', 'a.txt': 'a' }));
    const second = rig.land('b', await rig.work({ 'line.txt': 'base\n', 'b.txt': 'b' }));
    await rig.clock.waiting(2);
    expect(rig.log.filter((line) => line.startsWith('verify'))).toEqual(['verify a', 'verify b']);
    rig.checkedOut = null;
    await rig.clock.advance(1000);
    expect([(await first).kind, (await second).kind]).toEqual(['landed', 'landed']);
    expect(await rig.read(await rig.tip(), 'a.txt')).toBe('a');
  });

  test('is given up once nothing else moves', async () => {
    const rig = await LaneRig.open();
    rig.checkedOut = '/p';
    rig.nothingElseMoves = true;
    const landing = rig.land('a', await rig.work({ 'a.txt': 'a' }));
    await rig.clock.waiting();
    await rig.clock.advance(1000);
    expect(await landing).toMatchObject({
      kind: 'held',
      message: expect.stringContaining('checked out in /p') as unknown,
    });
    expect(await rig.tip()).toBe(rig.start);
  });

  test('gets no docs-only commit either', async () => {
    const rig = await LaneRig.open();
    rig.checkedOut = '/p';
    const recording = await rig.lane.record(() => Promise.reject(new Error('must not be made')));
    expect(recording).toMatchObject({ kind: 'held' });
  });
});

describe('a stop', () => {
  test('before its turn, during its gates, and while it waits', async () => {
    const rig = await LaneRig.open();
    rig.verify = () => {
      rig.stop.abort();
      return Promise.resolve(true);
    };
    const [a, b] = [await rig.work({ a: 'a' }), await rig.work({ b: 'b' })];
    const [first, second] = await Promise.all([rig.land('a', a), rig.land('b', b)]);
    expect([first.kind, second.kind]).toEqual(['stopped', 'stopped']);
    expect(rig.log).toEqual(['candidate a', 'verify a']);
    expect(await rig.tip()).toBe(rig.start);
    const waiting = await LaneRig.open();
    waiting.checkedOut = '/p';
    const landing = waiting.land('a', await waiting.work({ a: 'a' }));
    await waiting.clock.waiting();
    waiting.stop.abort();
    expect(await landing).toEqual({ kind: 'stopped' });
  });
});

describe('a docs-only commit', () => {
  test('is made for the tip in its turn', async () => {
    const rig = await LaneRig.open();
    const landing = rig.land('a', await rig.work({ 'line.txt': 'base\n', 'a.txt': 'a' }));
    const recording = rig.lane.record(async (tip) => commitOf(rig.git, { note: 'x' }, tip));
    const [landed, recorded] = [await landing, await recording];
    expect(recorded).toEqual({ kind: 'recorded', tip: await rig.tip() });
    const { parents } = await rig.git.readCommit(rig.lane.tip);
    expect(parents).toEqual([landed.kind === 'landed' ? landed.commit : null]);
  });

  test('is made anew for a tip that somebody moved, or not at all when it is not for that one', async () => {
    const rig = await LaneRig.open();
    const person = await rig.person({ 'person.txt': 'p' });
    const tips: Oid[] = [];
    const make = (tip: Oid): Promise<Oid> => {
      tips.push(tip);
      return commitOf(rig.git, { note: 'x' }, tip);
    };
    expect(await rig.lane.record(make)).toMatchObject({ kind: 'recorded' });
    expect(tips).toEqual([rig.start, person]);
    const tip = await rig.tip();
    expect(await rig.lane.record(() => Promise.resolve(null))).toMatchObject({ kind: 'stale' });
    expect(await rig.tip()).toBe(tip);
  });
});

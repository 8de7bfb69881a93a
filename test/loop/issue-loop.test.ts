import { describe, expect, test } from 'vitest';
import { verdictOf as realVerdictOf } from '../../src/gates/gate.js';
import { findingId, type Finding } from '../../src/issue.js';
import { blocked, done, gate, issueOf, LoopRig, oidOf, operation, takenOf, usageLimit, verdictOf } from './rig.js';

/** Red with another message each time, so that nothing but the budget ends the loop. */
function alwaysRed(rig: LoopRig): void {
  let count = 0;
  rig.verdict = () => verdictOf('fail', `red in ${'x'.repeat((count += 1))}`);
}

describe('an attempt', () => {
  test('is recorded before it runs, committed before it is judged, judged before it is handed on', async () => {
    const rig = new LoopRig();
    expect(await rig.run()).toBe('integrated');
    expect(rig.log).toEqual([
      'slot',
      'onto tip',
      'record 1',
      'prepare',
      'drive 1',
      'take back',
      'commit',
      'gates',
      'verdict pass',
      'lane',
      'release',
    ]);
    expect(rig.events.map((event) => event.type)).toEqual(['attempt.started', 'attempt.finished', 'attempt.judged']);
    expect(rig.event('attempt.finished')[0]).toMatchObject({ result: 'committed', files: 1, commit: oidOf('work') });
  });

  test('that is red is followed by one that hears why, until the budget is spent', async () => {
    const rig = new LoopRig();
    rig.budget = { attempts: 2 };
    alwaysRed(rig);
    expect(await rig.run()).toBe('needs-human');
    expect(rig.prompts[0]).not.toContain('red in');
    expect(rig.prompts[1]).toContain('red in x');
    expect(rig.prompts[1]).toContain('attempt 2 of 2');
    expect(rig.log.slice(-4)).toEqual(['leave', 'escalate budget-spent', 'publish', 'leave']);
    expect(rig.event('issue.escalated')[0]).toMatchObject({
      cause: 'budget-spent',
      attempts: 2,
      question: expect.stringContaining('red in xx') as unknown,
    });
  });

  test('max-attempts tightens the budget and never loosens it', async () => {
    for (const [maxAttempts, drives] of [
      [1, 1],
      [9, 2],
    ] as const) {
      const rig = new LoopRig();
      rig.budget = { attempts: 2 };
      rig.record.issue = issueOf('01-a', { maxAttempts });
      alwaysRed(rig);
      expect(await rig.run()).toBe('needs-human');
      expect(rig.drives).toBe(drives);
    }
  });

  test('that failed counts, and its work is kept and not gated', async () => {
    const rig = new LoopRig();
    rig.plays.push({ result: { kind: 'failed', reason: 'agent exited 3' } });
    expect(await rig.run()).toBe('integrated');
    expect(rig.log.filter((line) => /commit|verdict|gates/.test(line))).toEqual([
      'commit ungated',
      'verdict fail',
      'commit',
      'gates',
      'verdict pass',
    ]);
    expect(rig.prompts[1]).toContain('agent exited 3');
    expect(rig.prompts[1]).toContain('the last lines');
  });

  test('that changed nothing is red without gates, and says what changed beside the worktree', async () => {
    const rig = new LoopRig();
    rig.stray = ['src/a.ts'];
    rig.plays.push({ code: 'base', result: done({ summary: 'all is well' }) });
    expect(await rig.run()).toBe('integrated');
    expect(rig.log).toContain('verdict fail');
    expect(rig.event('attempt.finished')[0]).toMatchObject({
      result: 'failed',
      commit: null,
      reason: 'nothing was changed',
    });
    for (const part of ['nothing was changed', "src/a.ts: changed in the user's checkout", 'worker says: all is well'])
      expect(rig.prompts[1]).toContain(part);
  });

  test('whose folder cannot be taken says why, and not that nothing was changed', async () => {
    const rig = new LoopRig();
    rig.plays.push({ code: null, findings: [{ message: 'a repository in the folder', file: 'sub' }] });
    expect(await rig.run()).toBe('integrated');
    expect(rig.prompts[1]).toContain('sub: a repository in the folder');
    expect(rig.prompts[1]).not.toContain('nothing was changed');
  });

  test('with findings of the engine is red, however green its gates are', async () => {
    const rig = new LoopRig();
    rig.budget = { attempts: 1 };
    rig.plays.push({ findings: [{ message: 'conflict marks are left in the file', file: 'a.ts', line: 3 }] });
    expect(await rig.run()).toBe('needs-human');
    expect(rig.log).toContain('gates');
    expect(rig.event('attempt.judged')[0]).toMatchObject({ verdict: 'fail', findings: [{ file: 'a.ts', line: 3 }] });
    expect(rig.record.history.match(/conflict marks/g)).toHaveLength(3);
  });

  test('without a gate that is due before the lane is handed to the lane', async () => {
    const rig = new LoopRig();
    rig.gates = [gate('merged', ['integration'])];
    expect(await rig.run()).toBe('integrated');
    expect(rig.log).not.toContain('gates');
    expect(rig.log.slice(-3)).toEqual(['verdict pass', 'lane', 'release']);
  });

  test('that left a conflict as it was shown is no new work', async () => {
    const rig = new LoopRig();
    rig.record.shown = oidOf('marked');
    rig.record.conflicts = ['a.ts'];
    rig.plays.push({ result: operation(), code: 'marked' });
    const running = rig.run();
    await rig.clock.waiting();
    expect(rig.log.filter((line) => line.startsWith('commit'))).toEqual([]);
    expect(rig.prompts[0]).toContain('a.ts');
    await rig.clock.advance(60_000);
    expect(await running).toBe('integrated');
  });
});

test('a secret that is about to be committed is warned of: no later attempt takes it out of the history', async () => {
  const rig = new LoopRig();
  rig.plays.push(
    {
      findings: [
        { rule: 'secret', file: 'k.js', message: 'a key' },
        { rule: 'size', message: 'large' },
      ],
    },
    {},
  );
  expect(await rig.run()).toBe('integrated');
  const told = rig.event('run.notice');
  expect(told).toHaveLength(1);
  expect(told[0]).toMatchObject({ level: 'warning', issue: rig.record.issue.id });
  expect(told[0]?.message).toMatch(/^what looks like a secret is committed \(k\.js\).* giro-issue\/.*: revoke it$/);
});

describe('an operation that broke', () => {
  test('does not count, is tried again after a while, and asks in the end', async () => {
    const rig = new LoopRig();
    rig.budget = { attempts: 1, failures: 3 };
    rig.plays.push(
      { result: operation('network') },
      { result: operation('network') },
      { result: operation('network') },
    );
    const running = rig.run();
    for (const ms of [1000, 2000]) {
      await rig.clock.waiting();
      expect(rig.event('issue.retrying').at(-1)).toMatchObject({ inMs: ms, reason: 'network' });
      await rig.clock.advance(ms);
    }
    expect(await running).toBe('needs-human');
    expect(rig.drives).toBe(3);
    expect(rig.record.budgetUsed).toBe(0);
    expect(rig.event('issue.escalated')[0]).toMatchObject({ cause: 'operation-failures' });
    expect(rig.event('attempt.finished').map((event) => event.result)).toEqual(['operation', 'operation', 'operation']);
  });

  test.each([
    ['a red one', {}],
    ['one that failed', { result: { kind: 'failed', reason: 'agent exited 3' } }],
  ] as const)('counts in a row only, which %s between breaks', async (_name, between) => {
    const rig = new LoopRig();
    rig.budget = { attempts: 3, failures: 2 };
    rig.verdict = () => verdictOf(rig.drives < 4 ? 'fail' : 'pass');
    rig.plays.push({ result: operation() }, between, { result: operation() }, {});
    const running = rig.run();
    await rig.clock.waiting();
    await rig.clock.advance(1000);
    await rig.clock.waiting();
    await rig.clock.advance(1000);
    expect(await running).toBe('integrated');
  });

  test('waits until the time it says that it can be had again, within a day', async () => {
    const rig = new LoopRig();
    const soon = new Date(rig.clock.now() + 3_600_000).toISOString();
    rig.plays.push(
      { result: operation('usage-limit', soon) },
      { result: operation('usage-limit', '2099-01-01T00:00:00Z') },
    );
    const running = rig.run();
    await rig.clock.waiting();
    expect(rig.event('issue.retrying')[0]).toMatchObject({ inMs: 3_600_000 });
    await rig.clock.advance(3_600_000);
    await rig.clock.waiting();
    expect(rig.event('issue.retrying')[1]).toMatchObject({ inMs: 86_400_000 });
    await rig.clock.advance(86_400_000);
    expect(await running).toBe('integrated');
  });

  test('that is a usage limit parks everybody on the account, and only those who need an agent', async () => {
    const first = new LoopRig();
    const [waits, judges] = [new LoopRig(first), new LoopRig(first)];
    first.plays.push({ result: usageLimit(new Date(first.clock.now() + 3_600_000).toISOString()) });
    judges.record.judging();
    const running = first.run();
    await first.clock.waiting();
    expect(first.event('run.notice')).toMatchObject([{ message: expect.stringContaining('2030-01-01T01:00:00') }]);
    const waiting = waits.run();
    await first.clock.waiting(2);
    expect(waits.log).toEqual(['slot']);
    expect(await judges.run()).toBe('integrated');
    await first.clock.advance(3_599_999);
    expect([first.drives, waits.drives]).toEqual([1, 0]);
    await first.clock.advance(1);
    expect(await Promise.all([running, waiting])).toEqual(['integrated', 'integrated']);
    expect([first.drives, waits.drives]).toEqual([2, 1]);
    expect(waits.record.attempt).toBe(1);
    expect(waits.event('run.notice')).toEqual([]);
  });

  test('that is a usage limit without a time parks for the usual pause; another trouble parks nobody else', async () => {
    for (const [result, parks] of [
      [usageLimit(), true],
      [operation('agent is unavailable: network', '2030-01-01T01:00:00Z'), false],
    ] as const) {
      const first = new LoopRig();
      const second = new LoopRig(first);
      first.plays.push({ result });
      const running = first.run();
      await first.clock.waiting();
      const beside = second.run();
      if (parks) await first.clock.waiting(2);
      else expect(await beside).toBe('integrated');
      await first.clock.advance(parks ? 1000 : 3_600_000);
      expect(await Promise.all([running, beside])).toEqual(['integrated', 'integrated']);
    }
  });

  test('that parked it does not keep it from being stopped', async () => {
    const first = new LoopRig();
    const second = new LoopRig(first);
    first.plays.push({ result: usageLimit('2030-01-01T01:00:00Z') });
    const running = first.run();
    await first.clock.waiting();
    const waiting = second.run();
    await first.clock.waiting(2);
    for (const rig of [first, second]) rig.stop.abort(new Error('stop'));
    expect(await Promise.all([running, waiting])).toEqual(['stopped', 'stopped']);
  });

  test('keeps what the agent left and what was found on it', async () => {
    const rig = new LoopRig();
    rig.budget = { failures: 1 };
    rig.plays.push({
      result: operation(),
      findings: [{ message: 'work is only in a stash; saved as refs/giro/salvage/x' }],
    });
    expect(await rig.run()).toBe('needs-human');
    expect(rig.log).toContain('commit ungated');
    expect(rig.record.history).toContain('saved as refs/giro/salvage/x');
  });

  test('is also a folder that cannot be made', async () => {
    const rig = new LoopRig();
    rig.budget = { failures: 1 };
    rig.prepareFails = 'setup exited 1';
    expect(await rig.run()).toBe('needs-human');
    expect(rig.drives).toBe(0);
    expect(rig.record.history).toMatch(/- setup exited 1 \[[0-9a-f]{8}\]\nverdict: operation/);
  });

  test('is also a gate that cannot run here: the worker is not asked again', async () => {
    for (const cause of ['cannot-run-here', 'errored'] as const) {
      const rig = new LoopRig();
      rig.verdict = () => verdictOf('fail', 'no such program', cause);
      expect(await rig.run()).toBe('needs-human');
      expect(rig.drives).toBe(1);
      expect(rig.record.budgetUsed).toBe(0);
      expect(rig.event('attempt.judged')[0]).toMatchObject({ verdict: 'operation' });
      expect(rig.event('issue.escalated')[0]).toMatchObject({ cause: 'cannot-run-here' });
    }
  });
});

describe('a worker that is blocked', () => {
  test('asks its question when its work is red', async () => {
    const rig = new LoopRig();
    rig.plays.push({ result: blocked('Which database?') });
    rig.verdict = () => verdictOf('fail');
    expect(await rig.run()).toBe('needs-human');
    expect(rig.drives).toBe(1);
    expect(rig.event('issue.escalated')[0]).toMatchObject({ cause: 'blocked', question: 'Which database?' });
  });

  test('asks it also when it changed nothing', async () => {
    const rig = new LoopRig();
    rig.plays.push({ result: blocked('Which database?'), code: 'base' });
    expect(await rig.run()).toBe('needs-human');
    expect(rig.event('issue.escalated')[0]).toMatchObject({ cause: 'blocked', question: 'Which database?' });
    expect(rig.record.history).toContain('- blocked: Which database?');
  });

  test('is not heard when its work is green', async () => {
    const rig = new LoopRig();
    rig.plays.push({ result: blocked('Which database?') });
    expect(await rig.run()).toBe('integrated');
  });

  test('may be asked so many times in a row', async () => {
    const rig = new LoopRig();
    rig.budget = { attempts: 5, blocked: 2 };
    alwaysRed(rig);
    rig.plays.push({ result: blocked('One?') }, {}, { result: blocked('Two?') }, { result: blocked() });
    expect(await rig.run()).toBe('needs-human');
    expect(rig.drives).toBe(4);
    expect(rig.event('issue.escalated')[0]).toMatchObject({
      cause: 'blocked',
      question: expect.stringContaining('The worker says it is blocked') as unknown,
    });
  });
});

describe('no progress', () => {
  test('the same code twice running ends the loop early', async () => {
    const rig = new LoopRig();
    alwaysRed(rig);
    rig.budget = { attempts: 9 };
    rig.plays.push({ code: 'one' }, { code: 'two' }, { code: 'two' });
    expect(await rig.run()).toBe('needs-human');
    expect(rig.drives).toBe(3);
    expect(rig.event('issue.escalated')[0]).toMatchObject({
      cause: 'no-progress',
      question: expect.stringContaining('the same code') as unknown,
    });
  });

  test('the same findings so many times running do too', async () => {
    const rig = new LoopRig();
    rig.budget = { attempts: 9, noProgress: 3 };
    rig.verdict = () => verdictOf('fail', 'expected 401');
    expect(await rig.run()).toBe('needs-human');
    expect(rig.drives).toBe(3);
    expect(rig.event('issue.escalated')[0]).toMatchObject({ cause: 'no-progress' });
  });
});

describe('the lane', () => {
  const rejected = (message: string) =>
    ({ kind: 'rejected', tip: oidOf('new'), gates: [], findings: [{ message }], broken: false }) as const;

  test('sends the Issue back onto the new tip, inside its budget', async () => {
    const rig = new LoopRig();
    rig.budget = { attempts: 2 };
    rig.landings.push(rejected('a.ts conflicts'));
    expect(await rig.run()).toBe('integrated');
    expect(rig.drives).toBe(2);
    expect(rig.log.slice(rig.log.indexOf('lane'), rig.log.indexOf('lane') + 5)).toEqual([
      'lane',
      'rejection',
      'onto new tip',
      'slot',
      'record 2',
    ]);
    expect(rig.prompts[1]).toContain('a.ts conflicts');
    expect(rig.prompts[1]).toContain('attempt 2 of 2');
  });

  test('that keeps rejecting spends the budget', async () => {
    const rig = new LoopRig();
    rig.budget = { attempts: 2 };
    rig.landings.push(rejected('one'), rejected('two'));
    expect(await rig.run()).toBe('needs-human');
    expect(rig.drives).toBe(2);
    expect(rig.event('issue.escalated')[0]).toMatchObject({
      cause: 'budget-spent',
      question: expect.stringContaining('two') as unknown,
    });
  });

  test('whose gates cannot run asks a human at once', async () => {
    const rig = new LoopRig();
    rig.landings.push({ ...rejected('no docker'), broken: true });
    expect(await rig.run()).toBe('needs-human');
    expect(rig.drives).toBe(1);
    expect(rig.event('issue.escalated')[0]).toMatchObject({ cause: 'cannot-run-here' });
  });

  test('that is held leaves the Issue as it is, to go on from there', async () => {
    const rig = new LoopRig();
    rig.landings.push({ kind: 'held', message: 'checked out' });
    expect(await rig.run()).toBe('needs-human');
    expect(rig.log.at(-1)).toBe('leave');
    expect(rig.log).not.toContain('publish');
  });

  test('tells each finding of its gates once', async () => {
    const rig = new LoopRig();
    const findings = [{ message: 'red there', gate: 'test' }];
    rig.landings.push({
      ...rejected(''),
      gates: [{ gate: 'test', verdict: 'fail', note: 'exit 1', findings }],
      findings,
    });
    await rig.run();
    expect(rig.record.history.match(/red there/g)).toHaveLength(1);
  });
});

describe('an Issue that an earlier run left', () => {
  test('judging: its gates run, no agent does, and its slot is free for another', async () => {
    const rig = new LoopRig();
    rig.record.judging();
    expect(await rig.run()).toBe('integrated');
    expect(rig.log).toEqual(['slot', 'gates', 'verdict pass', 'lane', 'release']);
  });

  test('judging, with findings of the engine: it is red now as it was then', async () => {
    const rig = new LoopRig();
    rig.budget = { attempts: 1 };
    rig.record.judging({ message: 'conflict marks are left' });
    expect(await rig.run()).toBe('needs-human');
    expect(rig.log).not.toContain('verdict pass');
  });

  test('integrating: only the lane is left', async () => {
    const rig = new LoopRig();
    rig.record.past({ verdict: 'pass', tree: 'x' }).standing = 'integrating';
    expect(await rig.run()).toBe('integrated');
    expect(rig.log).toEqual(['slot', 'lane', 'release']);
    expect(rig.event('issue.queued')).toHaveLength(1);
  });

  test('interrupted: the attempt counts, and the next one starts on the tip', async () => {
    const rig = new LoopRig();
    rig.budget = { attempts: 2 };
    rig.record.past({ bare: true }).standing = 'interrupted';
    expect(await rig.run()).toBe('integrated');
    expect(rig.log.slice(0, 4)).toEqual(['verdict fail', 'onto tip', 'slot', 'record 2']);
    expect(rig.prompts[0]).toContain('interrupted: giro ended');
    expect(rig.record.budgetUsed).toBe(2);
  });

  test('interrupted in its last attempt: asks, after the dead agent was cleared away', async () => {
    const rig = new LoopRig();
    rig.budget = { attempts: 1 };
    rig.record.past({ bare: true }).standing = 'interrupted';
    expect(await rig.run()).toBe('needs-human');
    expect(rig.log).toEqual([
      'prepare',
      'verdict fail',
      'onto tip',
      'leave',
      'escalate budget-spent',
      'publish',
      'leave',
    ]);
    expect(rig.drives).toBe(0);
    expect(rig.record.takenBack).toBe(true);
  });

  test('interrupted so, and its folder cannot be cleared: what is found there later is not a person’s', async () => {
    const rig = new LoopRig();
    rig.budget = { attempts: 1 };
    rig.prepareFails = 'disk full';
    rig.record.past({ bare: true }).standing = 'interrupted';
    expect(await rig.run()).toBe('needs-human');
    expect(rig.record.takenBack).toBe(false);
  });

  test.each([
    ['blocked', [{ verdict: 'fail', tree: 'x', question: 'Which?' }]],
    [
      'no-progress',
      [
        { verdict: 'fail', tree: 'x' },
        { verdict: 'fail', tree: 'x' },
      ],
    ],
    ['cannot-run-here', [{ verdict: 'operation', tree: 'x' }]],
    [
      'budget-spent',
      [
        { verdict: 'fail', tree: 'x', finding: 'one' },
        { verdict: 'fail' },
        { verdict: 'fail', tree: 'y', finding: 'two' },
      ],
    ],
  ] as const)('between: what was decided is decided again (%s)', async (cause, attempts) => {
    const rig = new LoopRig();
    rig.record.past(...attempts).standing = 'between';
    expect(await rig.run()).toBe('needs-human');
    expect(rig.drives).toBe(0);
    expect(rig.event('issue.escalated')[0]).toMatchObject({ cause });
  });

  test('between and answered: a new attempt, on the tip, with a whole budget', async () => {
    const rig = new LoopRig();
    rig.record
      .past({ verdict: 'fail', tree: 'x' }, { verdict: 'fail', tree: 'x' }, { verdict: 'fail' })
      .answer().standing = 'between';
    rig.folder = takenOf(rig.record.code);
    expect(await rig.run()).toBe('integrated');
    expect(rig.log.slice(0, 3)).toEqual(['onto tip', 'slot', 'record 4']);
    expect(rig.prompts[0]).toContain('attempt 1 of 3');
  });

  describe('answered by accepting findings', () => {
    const guard: Finding = { message: 'a test was removed', rule: 'shrink', file: 'a.test.ts', line: 3 };
    const red: Finding = { message: 'gate test failed: exit 1', gate: 'test' };

    /** An attempt that was red for both, and then a person. */
    async function redThenAnswered(accepted: readonly Finding[], text = ''): Promise<LoopRig> {
      const rig = new LoopRig();
      rig.budget = { attempts: 1 };
      rig.plays.push({ findings: [guard] }, {});
      rig.verdict = (request) => realVerdictOf(verdictOf('fail', red.message).gates, request.accepted);
      expect(await rig.run()).toBe('needs-human');
      rig.record.answer({ accepted, text }).standing = 'between';
      rig.log.length = 0;
      rig.events.length = 0;
      return rig;
    }

    test('the work is judged again without an agent, and lands with its waivers named', async () => {
      const rig = await redThenAnswered([guard, red]);
      expect(await rig.run()).toBe('integrated');
      expect(rig.log).toEqual(['slot', 'judge again', 'gates', 'verdict pass', 'lane', 'release']);
      expect(rig.event('attempt.judged')[0]?.waived?.map(({ finding }) => finding)).toEqual(
        [guard, red].map(findingId),
      );
      expect(rig.record.history).toMatch(
        /gate test: fail · exit 1 · 5 ms[^\n]* · waived\n[^]*\nwaived [0-9a-f]{8} by answer: a\.test\.ts:3: a test was removed[^]*\nverdict: pass\n$/,
      );
    });

    test('what was not accepted still blocks, and goes to an agent', async () => {
      for (const [some, end] of [
        [guard, 'needs-human'],
        [red, 'integrated'],
      ] as const) {
        const rig = await redThenAnswered([some]);
        expect(await rig.run()).toBe(end);
        expect(rig.log).toContain('drive 2');
      }
    });

    test('with words, they go to an agent, and so does what else was found', async () => {
      const rig = await redThenAnswered([guard, red], 'But name it better.');
      expect(await rig.run()).toBe('integrated');
      expect(rig.prompts[1]).toContain('<<<answer\nBut name it better.\nanswer>>>');
    });

    test('an accepted finding that does not occur again changes nothing', async () => {
      const rig = await redThenAnswered([guard, red]);
      rig.verdict = () => verdictOf('pass');
      rig.record.history = rig.record.history.replace(/^- a\.test\.ts.*\n/m, '');
      expect(await rig.run()).toBe('integrated');
      expect(rig.event('attempt.judged')[0]?.waived).toBeUndefined();
    });
  });

  test('run again after a gate that could not run: its work is judged, no agent is paid', async () => {
    const rig = new LoopRig();
    rig.verdict = () => verdictOf('fail', 'no such program', 'cannot-run-here');
    expect(await rig.run()).toBe('needs-human');
    rig.record.answer().standing = 'between';
    rig.verdict = () => verdictOf('pass');
    expect(await rig.run()).toBe('integrated');
    expect(rig.drives).toBe(1);
  });

  test('answered by changes in its folder: they are judged, no agent runs', async () => {
    const rig = new LoopRig();
    rig.record.past({ verdict: 'fail', tree: 'x' }).answer().standing = 'between';
    rig.folder = takenOf(oidOf('by-hand'));
    expect(await rig.run()).toBe('integrated');
    expect(rig.log).toEqual(['slot', 'adopt', 'gates', 'verdict pass', 'lane', 'release']);
    expect(rig.record.code).toBe(oidOf('by-hand'));
  });

  test('changes in the folder are not a person’s when nobody answered, or when no agent gave it back', async () => {
    for (const [bare, answered] of [
      [false, false],
      [true, true],
    ] as const) {
      const rig = new LoopRig();
      rig.record.past({ verdict: 'operation', bare }).standing = 'between';
      if (answered) rig.record.answer();
      rig.folder = takenOf(oidOf('leftover'));
      expect(await rig.run()).toBe('integrated');
      expect(rig.log).not.toContain('adopt');
      expect(rig.drives).toBe(1);
    }
  });

  test('by hand, with the files of the base: nothing was changed, so that is red', async () => {
    const rig = new LoopRig();
    rig.budget = { attempts: 1 };
    rig.record.past({ verdict: 'fail', tree: 'x' }).answer().standing = 'by-hand';
    rig.record.code = oidOf('base');
    expect(await rig.run()).toBe('needs-human');
    expect(rig.event('issue.escalated')[0]?.question).toContain('nothing was changed');
  });

  test('by hand: judged without an agent; red, the loop goes on with one', async () => {
    const rig = new LoopRig();
    rig.record.past({ verdict: 'fail', tree: 'x' }).answer().standing = 'by-hand';
    rig.record.code = oidOf('by-hand');
    let count = 0;
    rig.verdict = () => verdictOf((count += 1) === 1 ? 'fail' : 'pass', 'not yet');
    expect(await rig.run()).toBe('integrated');
    expect(rig.log.slice(0, 4)).toEqual(['slot', 'adopt', 'gates', 'verdict fail']);
    expect(rig.drives).toBe(1);
    expect(rig.prompts[0]).toContain('not yet');
  });
});

describe('a branch that somebody moved', () => {
  test.each(['record 1', 'commit', 'verdict', 'rejection', 'onto new tip'])(
    'at %s: the Issue asks a human, and nothing more is done for it',
    async (checkpoint) => {
      const rig = new LoopRig();
      rig.record.movedAt = checkpoint;
      rig.landings.push({ kind: 'rejected', tip: oidOf('new'), gates: [], findings: [], broken: false });
      expect(await rig.run()).toBe('needs-human');
      const moved = rig.log.findIndex((line) => line.startsWith('moved at'));
      expect(rig.log.slice(moved + 1)).toEqual(['leave', 'escalate operation-failures', 'publish']);
      expect(rig.event('issue.escalated')[0]).toMatchObject({
        cause: 'operation-failures',
        question: expect.stringContaining('was moved to 1234567') as unknown,
      });
    },
  );

  test('before its attempt is recorded no agent starts', async () => {
    const rig = new LoopRig();
    rig.record.movedAt = 'record';
    await rig.run();
    expect(rig.drives).toBe(0);
    expect(rig.log).not.toContain('prepare');
  });
});

describe('a stop', () => {
  test('before the first attempt starts nothing', async () => {
    const rig = new LoopRig();
    rig.stop.abort(new Error('stop'));
    expect(await rig.run()).toBe('stopped');
    expect(rig.log).toEqual(['leave']);
  });

  test('while it waits for a slot is no bug', async () => {
    const rig = new LoopRig();
    rig.record.judging();
    rig.stop.abort(new Error('stop'));
    expect(await rig.run()).toBe('stopped');
    expect(rig.log).toEqual(['leave']);
  });

  test('while the agent works gives the attempt back and keeps its work', async () => {
    const rig = new LoopRig();
    rig.plays.push({ result: { kind: 'stopped' } });
    rig.onDrive = () => {
      rig.stop.abort(new Error('stop'));
    };
    expect(await rig.run()).toBe('stopped');
    expect(rig.log.slice(-4)).toEqual(['take back', 'commit ungated', 'verdict stopped', 'leave']);
    expect(rig.record.budgetUsed).toBe(0);
  });

  test('while gates run records no verdict: they run again', async () => {
    const rig = new LoopRig();
    rig.verdict = () => {
      rig.stop.abort(new Error('stop'));
      return verdictOf('fail', 'was stopped', 'cancelled');
    };
    expect(await rig.run()).toBe('stopped');
    expect(rig.log.slice(-2)).toEqual(['gates', 'leave']);
    expect(rig.event('attempt.judged')).toEqual([]);
  });

  test('after a red starts no further attempt', async () => {
    const rig = new LoopRig();
    rig.verdict = () => {
      rig.stop.abort(new Error('stop'));
      return verdictOf('fail');
    };
    expect(await rig.run()).toBe('stopped');
    expect(rig.log.slice(-2)).toEqual(['verdict fail', 'leave']);
    expect(rig.drives).toBe(1);
  });

  test('during the wait after an operation failure ends the wait', async () => {
    const rig = new LoopRig();
    rig.plays.push({ result: operation() });
    const running = rig.run();
    await rig.clock.waiting();
    rig.stop.abort(new Error('stop'));
    expect(await running).toBe('stopped');
    expect(rig.drives).toBe(1);
  });

  test('in the lane leaves the Issue there', async () => {
    const rig = new LoopRig();
    rig.landings.push({ kind: 'stopped' });
    expect(await rig.run()).toBe('stopped');
    expect(rig.log.slice(-2)).toEqual(['lane', 'leave']);
  });
});

test('a bug is no outcome: it is thrown on, and the folder is left', async () => {
  const rig = new LoopRig();
  rig.verdict = () => {
    throw new Error('bug');
  };
  await expect(rig.run()).rejects.toThrow('bug');
  expect(rig.log.at(-1)).toBe('leave');
});

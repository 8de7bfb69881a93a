import { describe, expect, test } from 'vitest';
import { Countdown, reserveMs } from '../../src/cli/countdown.js';
import { deadlineFor, deadlineUntil } from '../../src/cli/deadline.js';
import { FakeClock } from '../rig/clock.js';

const hour = 3_600_000;

describe('what was typed', () => {
  const at = (text: string): number => new Date(`2030-03-04T${text}`).getTime();

  test('a time of day is the next such time, never now', () => {
    expect(deadlineUntil('07:00', at('06:59:30'))?.at).toBe(at('07:00:00'));
    const next = new Date('2030-03-05T07:00:00').getTime();
    expect(deadlineUntil('7:00', at('07:00:00'))?.at).toBe(next);
    expect(deadlineUntil('07:00', at('22:15:00'))?.at).toBe(next);
    expect(deadlineUntil('00:00', at('22:15:00'))?.at).toBe(new Date('2030-03-05T00:00:00').getTime());
  });

  test.each(['', '7', '24:00', '07:60', '07:0', '-7:00', '07:00:00', ' 07:00', '7pm', '6h'])(
    '%j is no time of day',
    (text) => {
      expect(deadlineUntil(text, at('12:00:00'))).toBeUndefined();
    },
  );

  test('a duration counts from now', () => {
    expect(deadlineFor('6h', 1000)?.at).toBe(1000 + 6 * hour);
    for (const text of ['', '0h', '6', '-6h', '07:00', '8d', '1w']) expect(deadlineFor(text, 0), text).toBeUndefined();
  });
});

test('the reserve is measured, doubled, and bounded by half of the time', () => {
  expect(reserveMs(undefined, 6 * hour)).toBe(600_000);
  expect(reserveMs(undefined, 60_000)).toBe(6_000);
  expect(reserveMs(90_000, 6 * hour)).toBe(180_000);
  expect(reserveMs(4 * hour, 6 * hour)).toBe(3 * hour);
  expect(reserveMs(0, hour)).toBe(0);
});

interface Watched {
  readonly clock: FakeClock;
  readonly countdown: Countdown;
  readonly said: string[];
  readonly ended: Promise<void>;
}

function watch(givenMs: number): Watched {
  const clock = new FakeClock();
  const from = clock.now();
  const countdown = new Countdown({ at: from + givenMs, from, shown: '--for' }, clock);
  const said: string[] = [];
  const ended = countdown.watch({
    noMore: (leftMs) => said.push(`no more, ${String(leftMs / 1000)} s left`),
    over: () => said.push(`over at ${String((clock.now() - from) / 1000)} s`),
  });
  return { clock, countdown, said, ended };
}

describe('a countdown', () => {
  test('ends the dispatching before it ends the run', async () => {
    const { clock, countdown, said, ended } = watch(hour);
    await clock.waiting();
    await clock.advance(hour - 360_001);
    expect([said, countdown.noMore.aborted]).toEqual([[], false]);
    await clock.advance(1);
    expect([said, countdown.noMore.aborted]).toEqual([['no more, 360 s left'], true]);
    await clock.advance(360_000);
    await ended;
    expect(said).toEqual(['no more, 360 s left', 'over at 3600 s']);
  });

  test('learns from landings, also when one makes the moment pass', async () => {
    const { clock, countdown, said } = watch(hour);
    await clock.waiting();
    countdown.landed(1_000);
    await clock.advance(hour - 2_001);
    expect(said).toEqual([]);
    countdown.landed(60_000);
    countdown.landed(60_000);
    await clock.advance(0);
    await clock.waiting();
    expect(said).toEqual(['no more, 2.001 s left']);
    countdown.close();
  });

  test('that is closed says nothing any more, and waits for nothing', async () => {
    const { clock, countdown, said, ended } = watch(hour);
    await clock.waiting();
    countdown.close();
    await ended;
    expect(clock.sleeping).toBe(0);
    await clock.advance(2 * hour);
    expect([said, countdown.noMore.aborted]).toEqual([[], false]);
  });
});

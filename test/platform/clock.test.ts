import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/platform/clock.js';
import { FakeClock } from '../rig/clock.js';

describe('the clock of the machine', () => {
  test('sleeps at least as long as asked', async () => {
    const start = systemClock.monotonic();
    await systemClock.sleep(20);
    expect(systemClock.monotonic() - start).toBeGreaterThanOrEqual(19);
  });

  test('wakes at once, without an error, when aborted, and leaves no listener', async () => {
    const stop = new AbortController();
    const sleeping = systemClock.sleep(60_000, stop.signal);
    stop.abort();
    await sleeping;
    await systemClock.sleep(60_000, stop.signal);
    expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
  });

  test('leaves no listener when it wakes by itself', async () => {
    const stop = new AbortController();
    await systemClock.sleep(1, stop.signal);
    expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
  });

  test.each([2 ** 31, 2 ** 40, Infinity])(
    'a sleep of %d ms is not over at once, though a timer overflows',
    async (ms) => {
      const stop = new AbortController();
      let isOver = false;
      const sleeping = systemClock.sleep(ms, stop.signal).then(() => (isOver = true));
      await systemClock.sleep(20);
      expect(isOver).toBe(false);
      stop.abort();
      await sleeping;
    },
  );

  test('writes the time in UTC', () => {
    expect(systemClock.iso()).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(Math.abs(Date.parse(systemClock.iso()) - systemClock.now())).toBeLessThan(1_000);
  });
});

describe('the clock of a test', () => {
  test('wakes sleepers in the order of their time and shows each its own', async () => {
    const clock = new FakeClock(0);
    const woken: string[] = [];
    const sleepers = [300, 100, 200].map(async (ms) => {
      await clock.sleep(ms);
      woken.push(`${String(ms)} at ${String(clock.now())}`);
    });
    await clock.advance(250);
    expect(woken).toEqual(['100 at 100', '200 at 200']);
    expect(clock.now()).toBe(250);
    await clock.advance(50);
    await Promise.all(sleepers);
    expect(woken).toHaveLength(3);
  });

  test('wakes a loop as often as the span allows', async () => {
    const clock = new FakeClock();
    const stop = new AbortController();
    let turns = 0;
    const loop = (async () => {
      while (!stop.signal.aborted) {
        await clock.sleep(10, stop.signal);
        turns += 1;
      }
    })();
    await clock.advance(45);
    expect(turns).toBe(4);
    stop.abort();
    await loop;
    expect(clock.sleeping).toBe(0);
  });

  test('tells when somebody sleeps', async () => {
    const clock = new FakeClock();
    const waiting = clock.waiting(2);
    const sleeping = [clock.sleep(5), clock.sleep(5)];
    await waiting;
    await clock.advance(5);
    await Promise.all(sleeping);
  });
});

import { describe, expect, test } from 'vitest';
import { estimateFrom } from '../../src/scheduler/estimate.js';
import { HoldWindow } from '../../src/scheduler/hold.js';
import { RunningMedian, median } from '../../src/scheduler/median.js';
import { letter } from './issues.js';

describe('estimates', () => {
  test('without any history each Issue counts 1', () => {
    expect(estimateFrom(new Map())(letter('a'))).toBe(1);
  });

  test('an Issue without history counts as the median of the others, in their unit', () => {
    const estimate = estimateFrom(
      new Map([
        [letter('a'), 60_000],
        [letter('b'), 2_000],
        [letter('c'), 30_000],
      ]),
    );
    expect([letter('a'), letter('b'), letter('d')].map(estimate)).toEqual([60_000, 2_000, 30_000]);
  });

  test('times that cannot be are ignored', () => {
    const estimate = estimateFrom(
      new Map([
        [letter('a'), 0],
        [letter('b'), NaN],
        [letter('c'), -5],
        [letter('d'), Infinity],
      ]),
    );
    expect(['a', 'b', 'c', 'd'].map((name) => estimate(letter(name)))).toEqual([1, 1, 1, 1]);
  });
});

describe('medians', () => {
  test('of nothing there is none; of an even number it is between the middle two', () => {
    expect(median([])).toBeUndefined();
    expect(median([5])).toBe(5);
    expect(median([10, 1, 3, 2])).toBe(2.5);
  });

  test('the running one is the same as that of the list', () => {
    const running = new RunningMedian();
    const seen: number[] = [];
    expect(running.value).toBeUndefined();
    for (const value of [5, 1, 5, 9, -2, 5, 100, 0]) {
      running.add(value);
      seen.push(value);
      expect(running.value).toBe(median(seen));
    }
  });
});

describe('how long a landing is worth waiting for', () => {
  const window = (agents: readonly number[], landings: readonly number[]): number => {
    const hold = new HoldWindow();
    agents.forEach((ms) => {
      hold.agentTook(ms);
    });
    landings.forEach((ms) => {
      hold.landingTook(ms);
    });
    return hold.ms;
  };

  test('not at all before an agent was seen', () => {
    expect(window([], [])).toBe(0);
  });

  test('a twentieth of an agent while no landing was seen, and three typical landings after', () => {
    expect(window([10_000], [])).toBe(500);
    expect(window([10_000], [100])).toBe(300);
    expect(window([10_000], [400])).toBe(500);
  });

  test('an agent that took no time is not counted: a slot was given back unused', () => {
    expect(window([0.2, 0.1, 10_000], [])).toBe(500);
  });

  test('never longer than 15 seconds', () => {
    expect(window([3_600_000], [])).toBe(15_000);
    expect(window([3_600_000], [10_000])).toBe(15_000);
  });

  test('not at all when landings usually take longer than that', () => {
    expect(window([10_000], [501])).toBe(0);
  });

  test('a moment even when landings take no time, since they come after the slot was freed', () => {
    expect(window([10_000], [0])).toBe(50);
  });
});

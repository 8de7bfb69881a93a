import { expect, test } from 'vitest';
import { simulate } from './simulate.js';
import { weaker } from './weaker.js';

const replay = (seed: number): string => `npm run sim -- --seed ${String(seed)}`;

test('150 seeds come through crashes, stops and answers to their proof', { timeout: 120_000 }, async () => {
  for (let seed = 1; seed <= 150; seed += 1) {
    const { violation } = await simulate(seed);
    expect(violation, replay(seed)).toBeNull();
  }
});

test('a seed is the same every time', async () => {
  for (const seed of [1, 7, 13, 42]) {
    const first = await simulate(seed, { isTold: true });
    expect(first.lines.length).toBeGreaterThan(5);
    expect(await simulate(seed, { isTold: true })).toEqual(first);
  }
});

/** Within so many seeds each of them is found. */
const enough = 120;

test.each(weaker)('it is found when $what', { timeout: 120_000 }, async ({ found, parts }) => {
  for (let seed = 1; seed <= enough; seed += 1) {
    const { violation } = await simulate(seed, { parts });
    if (violation === null) continue;
    expect(violation, replay(seed)).toMatch(found);
    return;
  }
  expect.fail(`not found in ${String(enough)} seeds`);
});

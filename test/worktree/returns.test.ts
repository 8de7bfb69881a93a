import { expect, test } from 'vitest';
import { Returns, type Turn } from '../../src/worktree/returns.js';
import { FakeClock } from '../rig/clock.js';
import { issueId } from '../rig/folders.js';

const makingMs = 600;

interface Scene {
  readonly clock: FakeClock;
  readonly returns: Returns;
  /** Starts to wait, and says whether that is over. */
  readonly wait: () => () => boolean;
}

/** So many Issues are judged, and making a folder took as long as above. */
async function scene(judged: number, working = 8): Promise<Scene> {
  const clock = new FakeClock();
  const returns = new Returns(clock, 2);
  await returns.making(() => clock.advance(makingMs));
  for (let issue = 1; issue <= judged; issue += 1) returns.expect(issueId(`${String(issue)}-x`));
  return {
    clock,
    returns,
    wait: () => {
      let over = false;
      void returns.wait(judged + working).then(() => (over = true));
      return () => over;
    },
  };
}

const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

test('a few that are judged are no reason to wait', async () => {
  const { wait } = await scene(2);
  const over = wait();
  await settled();
  expect(over()).toBe(true);
});

test('many are: the one who waits longest gets the first that comes back', async () => {
  const { returns, wait } = await scene(5);
  const waits = [wait(), wait()];
  await settled();
  expect(waits.map((over) => over())).toEqual([false, false]);
  returns.cameBack(issueId('3-x'));
  await settled();
  expect(waits.map((over) => over())).toEqual([true, false]);
  returns.cameBack(issueId('1-x'));
  await settled();
  expect(waits.map((over) => over())).toEqual([true, true]);
});

test('never more wait than folders can come back', async () => {
  const { wait } = await scene(3);
  const waits = [wait(), wait(), wait(), wait()];
  await settled();
  expect(waits.map((over) => over())).toEqual([false, false, false, true]);
});

test('how many are many depends on how many work', async () => {
  const over = (await scene(5, 20)).wait();
  await settled();
  expect(over()).toBe(true);
});

test('nobody waits much longer than making a folder takes, and after that in vain only when one came back', async () => {
  const { clock, returns, wait } = await scene(5);
  const over = wait();
  await clock.waiting();
  await clock.advance(4 * makingMs - 1);
  expect(over()).toBe(false);
  await clock.advance(1);
  expect(over()).toBe(true);
  const again = wait();
  await settled();
  expect(again()).toBe(true);
  returns.cameBack(issueId('1-x'));
  const later = wait();
  await settled();
  expect(later()).toBe(false);
  await clock.advance(60_000);
});

test('one that is not about to come back any more does not count', async () => {
  const { returns, wait } = await scene(3);
  returns.forget(issueId('2-x'));
  const over = wait();
  await settled();
  expect(over()).toBe(true);
});

test('the first folders are made without a wait', async () => {
  const returns = new Returns(new FakeClock(), 2);
  for (const issue of ['1-a', '2-b', '3-c', '4-d', '5-e']) returns.expect(issueId(issue));
  await returns.wait(13);
});

/** Asks for a turn, and says what came of that so far. */
function ask(returns: Returns): { readonly answer: () => Turn | null | 'waiting' } {
  let answer: Turn | null | 'waiting' = 'waiting';
  void returns.turn().then((turn) => (answer = turn));
  return { answer: () => answer };
}

test('only so many folders are made at once, in the order of asking; one that is over twice counts once', async () => {
  const returns = new Returns(new FakeClock(), 2);
  const [first, second, third, fourth] = [ask(returns), ask(returns), ask(returns), ask(returns)];
  await settled();
  expect([third.answer(), fourth.answer()]).toEqual(['waiting', 'waiting']);
  expect(second.answer()).not.toBe('waiting');
  const turn = first.answer();
  if (turn === null || turn === 'waiting') throw new Error('no turn');
  turn.over();
  turn.over();
  await settled();
  expect(third.answer()).not.toBe('waiting');
  expect(fourth.answer()).toBe('waiting');
});

test('whoever waits for a turn is told when a folder comes back instead, and takes no turn', async () => {
  const returns = new Returns(new FakeClock(), 1);
  const making = await returns.turn();
  const [longest, next] = [ask(returns), ask(returns)];
  returns.cameBack(issueId('1-x'));
  await settled();
  expect([longest.answer(), next.answer()]).toEqual([null, 'waiting']);
  making?.over();
  await settled();
  expect(next.answer()).not.toBe('waiting');
  expect(ask(returns).answer()).toBe('waiting');
});

import { expect, test } from 'vitest';
import { createTail } from '../../src/tui/tail.js';
import type { Tail } from '../../src/tui/tail.js';
import { after, attempt, committed, event, facts, gate, issue, oid, snapshot, spec, started } from './demo.js';

const base = [started(), snapshot([facts('01-a', 'A'), facts('02-b', 'B')]), attempt(0, '01-a'), attempt(0, '02-b')];
const running = after(base);

/** Files that answer when the test says so. */
class Disk {
  readonly asked: string[] = [];
  changes = 0;
  readonly #answers: ((text: string) => void)[] = [];
  readonly tail: Tail = createTail({
    read: (path) => {
      this.asked.push(path);
      return new Promise((resolve) => {
        this.#answers.push(resolve);
      });
    },
    changed: () => {
      this.changes++;
    },
  });

  want(id: string, state = running): void {
    this.tail.want(state.issues.get(issue(id)) ?? null, state);
  }

  async answer(text: string): Promise<void> {
    this.#answers.shift()?.(text);
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
  }
}

const log = (id: string): string => `.giro/runs/r1/${id}/1.log`;

test('the log of the selected Issue is read once, and again only when it may have grown', async () => {
  const disk = new Disk();
  disk.want('01-a');
  await disk.answer('one\ntwo\n');
  expect(disk.tail.lines).toEqual(['one', 'two']);
  disk.want('01-a');
  expect(disk.asked).toEqual([log('01-a')]);
  disk.tail.refresh();
  await disk.answer('one\ntwo\nthree');
  expect(disk.tail.lines).toEqual(['one', 'two', 'three']);
  expect(disk.changes).toBe(2);
});

test('nothing is announced when nothing is new', async () => {
  const disk = new Disk();
  disk.want('01-a');
  await disk.answer('same');
  const { lines } = disk.tail;
  disk.tail.refresh();
  await disk.answer('same');
  expect(disk.changes).toBe(1);
  expect(disk.tail.lines).toBe(lines);
});

test('never two reads at once, and what comes late for another Issue is not shown', async () => {
  const disk = new Disk();
  disk.want('01-a');
  disk.tail.refresh();
  disk.want('02-b');
  expect(disk.asked).toEqual([log('01-a')]);
  await disk.answer('of a');
  expect(disk.tail.lines).toEqual([]);
  expect(disk.asked).toEqual([log('01-a'), log('02-b')]);
  await disk.answer('of b');
  expect(disk.tail.lines).toEqual(['of b']);
});

test('the gate that judges an attempt takes over, and the last lines are read when the Issue comes to rest', async () => {
  const disk = new Disk();
  disk.want('01-a');
  await disk.answer('attempt');
  disk.want('01-a', after([...base, committed(1, '01-a'), gate(1, '01-a')]));
  expect(disk.tail.lines).toEqual([]);
  await disk.answer('gate');
  const rest = after([
    ...base,
    gate(1, '01-a'),
    event(2, { type: 'issue.integrated', issue: issue('01-a'), commit: oid('e'), attempts: 1 }),
  ]);
  disk.want('01-a', rest);
  await disk.answer('gate, all of it');
  expect(disk.tail.lines).toEqual(['gate, all of it']);
  disk.tail.refresh();
  expect(disk.asked).toEqual([log('01-a'), 'gates/01-a.log', 'gates/01-a.log']);
});

test('an Issue without a log shows none, and none is read', async () => {
  const disk = new Disk();
  disk.want('01-a');
  await disk.answer('of a');
  disk.tail.want(null, running);
  expect(disk.tail.lines).toEqual([]);
  disk.tail.refresh();
  expect(disk.asked).toHaveLength(1);
});

test('a log that cannot be read says so in its place', async () => {
  const failing = createTail({ read: () => Promise.reject(new Error('EACCES')), changed: () => {} });
  failing.want(running.issues.get(issue('01-a')) ?? null, running);
  for (let turn = 0; turn < 5; turn++) await Promise.resolve();
  expect(failing.lines).toEqual([`cannot read ${log('01-a')}: EACCES`]);
});

test('what a log holds is made safe and readable (C084)', async () => {
  const disk = new Disk();
  disk.want('01-a');
  await disk.answer(
    'up\u001b[1A\u001b[2K and over\n 10%\r 50%\r100% done\n\u001b]0;title\u0007ok\u001b[?1049h\u001b[41mred\u0007\n\tx\u009b2J\n\n\n',
  );
  expect(disk.tail.lines).toEqual(['up and over', '100% done', 'okred\\u{7}', '    x']);
});

test('without an Issue the log of the plan is followed', async () => {
  const disk = new Disk();
  const plan = event(1, { type: 'spec.plan.started', spec, round: 0, plan: 1, driver: 'claude', log: 'plan-1.log' });
  disk.tail.want(null, after([started(), plan]));
  await disk.answer('thinking');
  disk.tail.refresh();
  await disk.answer('thinking\ndone');
  expect(disk.asked).toEqual(['plan-1.log', 'plan-1.log']);
  expect(disk.tail.lines).toEqual(['thinking', 'done']);
});

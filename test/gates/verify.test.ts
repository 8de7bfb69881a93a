import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createVerdictCache } from '../../src/gates/cache.js';
import type { Verdict } from '../../src/gates/gate.js';
import { StandIn } from '../rig/stand-in.js';
import { temporaryFolder } from '../rig/temp.js';
import { bench, gate, tree, type Bench } from './bench.js';

const [pass, fail] = [gate('pass', 'true'), gate('fail', 'exit 1')];

function shown({ passed, gates }: Verdict): readonly string[] {
  return [String(passed), ...gates.map((one) => `${one.gate} ${one.cause ?? 'pass'}${one.cached ? ' cached' : ''}`)];
}

function told({ events }: Bench): readonly string[] {
  return events.flatMap((event) => {
    if (event.type === 'gate.started') return [`${event.scope} ${event.gate} started`];
    if (event.type !== 'gate.finished') return [];
    return [`${event.scope} ${event.gate} ${event.verdict}${event.cached ? ' cached' : ''}`];
  });
}

async function standIn(): Promise<StandIn> {
  const opened = await StandIn.open();
  onTestFinished(() => opened.close());
  return opened;
}

describe('a gate that waits for green (after-green)', () => {
  const waiting = gate('waiting', 'true', { afterGreen: true });

  test('runs when every gate before it has passed', async () => {
    const at = await bench();
    expect(shown(await at.verifier.verify(at.request([pass, waiting])))).toEqual(['true', 'pass pass', 'waiting pass']);
  });

  test('is not run behind a red one: no pass, no finding, and not remembered as one', async () => {
    const at = await bench();
    const verdict = await at.verifier.verify(at.request([fail, waiting]));
    expect(verdict.gates[1]).toMatchObject({ verdict: 'fail', cause: 'not-run', ended: null, findings: [] });
    expect(verdict.passed).toBe(false);
    expect(shown(await at.verifier.verify(at.request([waiting])))).toEqual(['true', 'waiting pass']);
  });
});

describe('a red gate', () => {
  test('makes the whole red wherever it stands, and stops no other', async () => {
    const more = gate('more', 'true');
    for (const gates of [
      [fail, pass, more],
      [pass, fail, more],
      [pass, more, fail],
    ]) {
      const at = await bench();
      const verdict = await at.verifier.verify(at.request(gates));
      expect(verdict.passed).toBe(false);
      expect(verdict.gates.map(({ gate: name }) => name)).toEqual(gates.map(({ name }) => name));
      expect(verdict.findings).toEqual([{ message: 'gate fail failed: exit 1', gate: 'fail' }]);
      expect(at.checkouts.length).toBe(1);
    }
  });

  test('is told like every other, in order, each with its log', async () => {
    const at = await bench();
    const verdict = await at.verifier.verify(at.request([pass, fail]));
    expect(told(at)).toEqual(['issue pass started', 'issue pass pass', 'issue fail started', 'issue fail fail']);
    expect(at.events[0]).toMatchObject({ issue: '01-store', tree: tree('a'), log: verdict.gates[0]?.log });
    expect(verdict.gates.map(({ log }) => log)).toEqual([
      join(at.folder, 'logs', '01-store.issue-1.pass.log'),
      join(at.folder, 'logs', '01-store.issue-1.fail.log'),
    ]);
  });
});

test('an empty list of gates is a bug, never a pass', async () => {
  const at = await bench();
  await expect(at.verifier.verify(at.request([]))).rejects.toThrow('no gate is due');
});

describe('a gate that rewrites tracked files', () => {
  const files = { 'a.ts': 'let a\n', 'b.ts': 'let b\n' };

  test('is dirty, and the next gate sees the tree as it was committed', async () => {
    const at = await bench({ files });
    const format = gate('format', 'echo "let a;" > a.ts; rm b.ts');
    const check = gate('check', '[ "$(cat a.ts)" = "let a" ] && [ "$(cat b.ts)" = "let b" ]');
    const verdict = await at.verifier.verify(at.request([format, check]));
    expect(shown(verdict)).toEqual(['false', 'format dirty', 'check pass']);
    expect(verdict.findings).toMatchObject([
      { gate: 'format', file: 'a.ts', message: expect.stringContaining('rewrote a.ts, b.ts') as unknown },
    ]);
  });

  test('and fails keeps its own cause; the tree is brought back all the same', async () => {
    const at = await bench({ files });
    const verdict = await at.verifier.verify(at.request([gate('bad', 'echo > a.ts; exit 1')]));
    expect(shown(verdict)).toEqual(['false', 'bad failed']);
    // Once more after the second look that every red gets.
    expect(at.restores()).toBe(2);
  });

  test('is not remembered as a pass', async () => {
    const at = await bench({ files });
    const format = gate('format', 'echo "let a;" > a.ts');
    await at.verifier.verify(at.request([format]));
    expect(shown(await at.verifier.verify(at.request([format])))).toEqual(['false', 'format dirty']);
  });

  test('and makes the checkout unreadable has errored, and so has every gate after it', async () => {
    const at = await bench();
    const wreck = gate('wreck', 'touch "../$(basename "$PWD").lost"');
    const verdict = await at.verifier.verify(at.request([pass, wreck, gate('next', 'true')]));
    expect(shown(verdict)).toEqual(['false', 'pass pass', 'wreck errored', 'next errored']);
    expect(verdict.findings.map(({ message }) => message)).toEqual([
      'gate wreck left a checkout that cannot be read: the folder is gone',
      'gate next did not run: the checkout is of no use after gate wreck',
    ]);
  });
});

describe('a pass that was paid for', () => {
  test('is not paid again on the same tree, in any scope, and needs no checkout', async () => {
    const at = await bench();
    await at.verifier.verify(at.request([pass]));
    const again = await at.verifier.verify(at.request([pass], { scope: 'integration', attempt: null }));
    expect(shown(again)).toEqual(['true', 'pass pass cached']);
    expect(at.checkouts.length).toBe(1);
    expect(told(at)).toEqual(['issue pass started', 'issue pass pass', 'integration pass pass cached']);
  });

  test('does not hold for another tree, another command or other tools', async () => {
    const { path } = await temporaryFolder();
    const at = await bench({ cache: createVerdictCache(path) });
    await at.verifier.verify(at.request([pass]));
    await at.verifier.verify(at.request([pass], { codeTree: tree('b') }));
    await at.verifier.verify(at.request([{ ...pass, run: 'true ' }]));
    expect(at.checkouts.length).toBe(3);
    const other = await bench({ cache: createVerdictCache(path), toolFingerprint: 'tools-2' });
    expect(shown(await other.verifier.verify(other.request([pass])))).toEqual(['true', 'pass pass']);
    const next = await bench({ cache: createVerdictCache(path) });
    expect(shown(await next.verifier.verify(next.request([pass])))).toEqual(['true', 'pass pass cached']);
  });

  test('spares only its own gate: the others still run, in their order', async () => {
    const at = await bench();
    await at.verifier.verify(at.request([pass]));
    const verdict = await at.verifier.verify(at.request([fail, pass]));
    expect(shown(verdict)).toEqual(['false', 'fail failed', 'pass pass cached']);
  });

  test('is never a fail: a red gate runs again each time', async () => {
    const at = await bench();
    await at.verifier.verify(at.request([fail]));
    await at.verifier.verify(at.request([fail]));
    expect(at.checkouts.length).toBe(2);
    expect(told(at).filter((line) => line.endsWith('started')).length).toBe(2);
  });

  test('while this one waited for room is found before a checkout is made', async () => {
    let open = (): void => undefined;
    const door = new Promise<void>((resolve) => (open = resolve));
    const cache = createVerdictCache(null);
    const waiting = await bench({ cache, slots: (run) => door.then(run) });
    const verifying = waiting.verifier.verify(waiting.request([pass]));
    const other = await bench({ cache });
    await other.verifier.verify(other.request([pass]));
    open();
    expect(shown(await verifying)).toEqual(['true', 'pass pass cached']);
    expect(waiting.checkouts).toEqual([]);
  });
});

describe('the same gates on the same tree at the same moment', () => {
  test('run once, and both are told', async () => {
    const at = await bench();
    for (const one of [pass, fail]) {
      const both = await Promise.all([
        at.verifier.verify(at.request([one])),
        at.verifier.verify(at.request([one], { scope: 'integration' })),
      ]);
      expect(both.map(({ passed }) => passed)).toEqual(one === pass ? [true, true] : [false, false]);
      expect(both[1].findings).toEqual(both[0].findings);
    }
    expect(at.checkouts.length).toBe(2);
    expect(told(at)).toEqual([
      'issue pass started',
      'issue pass pass',
      'integration pass pass cached',
      'issue fail started',
      'issue fail fail',
      'integration fail fail',
    ]);
  });

  test('run again for the second when the first was stopped', async () => {
    const [at, stands] = [await bench(), await standIn()];
    const definition = gate('test', stands.shellCommand('gate'));
    const first = at.verifier.verify(at.request([definition]));
    const second = at.verifier.verify(at.request([definition], { signal: new AbortController().signal }));
    await stands.nextInvocation('gate');
    at.stop.abort('stop');
    expect(shown(await first)).toEqual(['false', 'test cancelled']);
    await (await stands.nextInvocation('gate')).exit(0);
    expect(shown(await second)).toEqual(['true', 'test pass']);
  });

  test('go on for the first when the second is stopped, which does not wait', async () => {
    const [at, stands, stop] = [await bench(), await standIn(), new AbortController()];
    const definition = gate('test', stands.shellCommand('gate'));
    const first = at.verifier.verify(at.request([definition]));
    const second = at.verifier.verify(at.request([definition], { signal: stop.signal }));
    const call = await stands.nextInvocation('gate');
    stop.abort('stop');
    expect(shown(await second)).toEqual(['false', 'test cancelled']);
    await call.exit(0);
    expect(shown(await first)).toEqual(['true', 'test pass']);
  });
});

describe('a stop', () => {
  test('ends the gate that runs, begins no other, and is never a pass', async () => {
    const [at, stands] = [await bench(), await standIn()];
    const gates = [pass, gate('test', stands.shellCommand('gate')), gate('next', 'true')];
    const verifying = at.verifier.verify(at.request(gates));
    const call = await stands.nextInvocation('gate');
    at.stop.abort('stop');
    expect(shown(await verifying)).toEqual(['false', 'pass pass', 'test cancelled', 'next cancelled']);
    await call.ended;
    expect(told(at)).not.toContain('issue next started');
  });

  test('before the start makes no checkout', async () => {
    const at = await bench();
    at.stop.abort('stop');
    expect(shown(await at.verifier.verify(at.request([pass])))).toEqual(['false', 'pass cancelled']);
    expect(at.checkouts).toEqual([]);
  });
});

describe('a setup that fails', () => {
  const setupFailure = {
    kind: 'setup-failed',
    message: 'setup failed: exit 1',
    tail: 'no lock file\n',
    log: 's.log',
  } as const;

  test('errors every gate that has to run, with its output once', async () => {
    const cache = createVerdictCache(null);
    const good = await bench({ cache });
    await good.verifier.verify(good.request([pass]));
    const at = await bench({ cache, setupFailure });
    const verdict = await at.verifier.verify(at.request([pass, fail, gate('more', 'true')]));
    expect(shown(verdict)).toEqual(['false', 'pass pass cached', 'fail errored', 'more errored']);
    expect(verdict.findings.map(({ detail }) => detail)).toEqual(['no lock file', undefined]);
    expect(verdict.findings[0]?.message).toContain('gate fail did not run: setup failed: exit 1; [worktree] setup');
    expect(verdict.gates[1]?.log).toBe('s.log');
  });

  test('because of a stop is a stop', async () => {
    const stop = new AbortController();
    const at = await bench({
      withCheckout: () => {
        stop.abort('stop');
        return Promise.resolve({ ok: false, failure: setupFailure });
      },
    });
    const verdict = await at.verifier.verify(at.request([pass], { signal: stop.signal }));
    expect(shown(verdict)).toEqual(['false', 'pass cancelled']);
  });
});

test('the limit of gates at once is asked once for all gates of a tree', async () => {
  let asked = 0;
  const at = await bench({
    slots: (run) => {
      asked += 1;
      return run();
    },
  });
  await at.verifier.verify(at.request([pass, fail]));
  expect(asked).toBe(1);
});

test('what waits to land goes before what is only judged', async () => {
  const urgent: boolean[] = [];
  const at = await bench({
    slots: (run, isUrgent) => {
      urgent.push(isUrgent);
      return run();
    },
  });
  for (const scope of ['issue', 'integration', 'spec'] as const) {
    await at.verifier.verify(at.request([fail], { scope }));
  }
  expect(urgent).toEqual([false, true, true]);
});

test('a checkout that cannot be made is a bug that goes up, and the next verification is not stuck on it', async () => {
  const at = await bench();
  await writeFile(join(at.folder, 'checkout-1'), '');
  await expect(at.verifier.verify(at.request([pass]))).rejects.toThrow('EEXIST');
  await rm(join(at.folder, 'checkout-1'));
  expect((await at.verifier.verify(at.request([pass]))).passed).toBe(true);
});

import { describe, expect, test } from 'vitest';
import type { GateVerdict, Verdict } from '../../src/gates/gate.js';
import { temporaryFolder } from '../rig/temp.js';
import { bench, gate, type Bench, type BenchOptions } from './bench.js';

/** A gate that is red until it has run so often, outside of its checkout. */
async function until(times: number, output = 'true'): Promise<string> {
  const { path } = await temporaryFolder();
  return `echo x >> ${path}/runs; ${output}; [ $(wc -l < ${path}/runs) -ge ${String(times)} ]`;
}

function printing(...failed: readonly string[]): string {
  const names = failed.map((name) => `FAILED a.py::${name} - assert`).join('\\n');
  return `printf '${names}\\n${String(failed.length)} failed, 3 passed in 0.1s\\n'`;
}

function shown({ passed, gates }: Verdict): string {
  return [
    String(passed),
    ...gates.map(({ cause, waiver }) => `${cause ?? 'pass'}${waiver === null ? '' : ' waived'}`),
  ].join(' ');
}

function repeats({ events }: Bench): readonly (readonly string[] | undefined)[] {
  return events.flatMap((event) => (event.type === 'gate.repeated' ? [event.tests] : []));
}

async function judged(
  run: string,
  options: BenchOptions = {},
): Promise<{ readonly at: Bench; readonly verdict: Verdict }> {
  const at = await bench(options);
  return { at, verdict: await at.verifier.verify(at.request([gate('test', run)])) };
}

describe('a red gate is run once more on the same tree', () => {
  test('and stays red when nothing changes', async () => {
    const { at, verdict } = await judged('exit 1');
    expect(shown(verdict)).toBe('false failed');
    expect(repeats(at)).toEqual([undefined]);
    expect(at.events.find((event) => event.type === 'gate.repeated')).toMatchObject({ load: 1.5, processors: 4 });
    expect(at.checkouts.length).toBe(1);
  });

  test('and is flaky when it is green then, with the load of the machine', async () => {
    const { verdict } = await judged(await until(2, printing('test_x')));
    expect(shown(verdict)).toBe('false flaky');
    expect(verdict.findings).toMatchObject([
      {
        message: 'gate test is flaky: red, and then not the same on the same code: a.py::test_x',
        test: 'a.py::test_x',
        detail: expect.stringContaining('load of the machine: 1.5 on 4 processors') as string,
      },
    ]);
  });

  test('and is flaky when other tests fail then', async () => {
    const { path } = await temporaryFolder();
    const { verdict } = await judged(
      `if mkdir ${path}/once; then ${printing('test_x')}; else ${printing('test_y')}; fi; exit 1`,
    );
    expect(shown(verdict)).toBe('false flaky');
  });

  test('and with flaky = "warn" that is accepted by name, and not remembered as a pass', async () => {
    const run = await until(2);
    const { at, verdict } = await judged(run, { evidence: { baseline: 'fail', flaky: 'warn' } });
    expect(shown(verdict)).toBe('true flaky waived');
    expect(verdict.findings).toEqual([]);
    expect(at.events.at(-1)).toMatchObject({ verdict: 'fail', cause: 'flaky', waiver: '[evidence] flaky = "warn"' });
    expect(shown(await at.verifier.verify(at.request([gate('test', run)])))).toBe('true pass');
    expect(at.checkouts.length).toBe(2);
  });

  test('the failed tests alone first, where the command is its runner; still red then, the gate need not run again', async () => {
    const { path } = await temporaryFolder();
    const fake = (second: string): string =>
      `printf '#!/bin/sh\\necho "$@" >> ${path}/calls\\ncase "$*" in *::*) ${second};; *) ${printing('test_x').replaceAll("'", '"').replaceAll('\\n', '\\\\n')}; exit 1;; esac\\n' > pytest; chmod +x pytest`;
    const files = (second: string) => [gate('make', fake(second)), gate('test', './pytest')];
    const at = await bench();
    // The name of a program in the checkout is not the runner's: the gate runs whole.
    await at.verifier.verify(at.request(files('echo 1 failed in 0.1s; exit 1')));
    expect(repeats(at)).toEqual([undefined]);
    const onPath = await bench({ environment: () => ({ PATH: `.:${process.env['PATH'] ?? ''}` }) });
    const still = await onPath.verifier.verify(
      onPath.request([gate('make', fake('echo 1 failed in 0.1s; exit 1')), gate('test', 'pytest')]),
    );
    expect(repeats(onPath)).toEqual([['a.py::test_x']]);
    expect(shown(still)).toBe('false pass failed');
    const green = await bench({ environment: () => ({ PATH: `.:${process.env['PATH'] ?? ''}` }) });
    await green.verifier.verify(green.request([gate('make', fake('echo 1 passed in 0.1s')), gate('test', 'pytest')]));
    expect(repeats(green)).toEqual([['a.py::test_x'], undefined]);
  });

  test('but not when it was stopped, timed out, or a red is what is looked for', async () => {
    const slow = await bench();
    await slow.verifier.verify(slow.request([gate('test', 'sleep 5', { timeoutMs: 50 })]));
    expect(repeats(slow)).toEqual([]);
    const probe = await bench();
    await probe.verifier.verify(probe.request([gate('test', 'exit 1')], { probing: true }));
    expect(repeats(probe)).toEqual([]);
  });
});

describe('with baseline = "allow" a red is compared with the base by name', () => {
  const base = (...failed: readonly string[]): GateVerdict => ({
    ...{ gate: 'test', verdict: 'fail', cause: 'failed', cached: false, ended: { kind: 'exited', code: 1 } },
    ...{ durationMs: 1, findings: [{ message: 'red' }], log: null, logHash: null, definition: '', judge: null },
    ...{ usage: null, waiver: null },
    evidence: {
      runner: 'pytest',
      tests: 3,
      failed: failed.length,
      skipped: 0,
      failures: failed.map((name) => `a.py::${name}`),
    },
  });
  const allow = (verdict: GateVerdict): BenchOptions => ({
    evidence: { baseline: 'allow', flaky: 'fail' },
    baseline: () => verdict,
  });

  test('old failures are accepted, and said', async () => {
    const { verdict } = await judged(`${printing('old')}; exit 1`, allow(base('old', 'older')));
    expect(shown(verdict)).toBe('true failed waived');
    expect(verdict.gates[0]?.findings[0]?.message).toBe('gate test has 1 failure of the base (a.py::old) and no other');
  });

  test('a new one blocks, and only it is asked for', async () => {
    const { verdict } = await judged(`${printing('old', 'new')}; exit 1`, allow(base('old')));
    expect(shown(verdict)).toBe('false failed');
    expect(verdict.findings).toMatchObject([
      {
        message: 'gate test has 1 new failure: a.py::new; besides 1 failure of the base (a.py::old)',
        test: 'a.py::new',
      },
    ]);
  });

  test('a red that does not name what failed stays red, here or on the base', async () => {
    expect(shown((await judged('exit 1', allow(base('old')))).verdict)).toBe('false failed');
    const unnamed = `printf 'FAILED a.py::old\\nERROR b.py\\n1 failed, 1 error in 0.1s\\n'; exit 1`;
    expect(shown((await judged(unnamed, allow(base('old')))).verdict)).toBe('false failed');
    const { evidence } = base('old');
    const half = { ...base('old'), evidence: evidence === null ? null : { ...evidence, failed: 2 } };
    expect(shown((await judged(`${printing('old')}; exit 1`, allow(half))).verdict)).toBe('false failed');
  });

  test('and is a red like any other with baseline = "fail"', async () => {
    const options = { ...allow(base('old')), evidence: { baseline: 'fail', flaky: 'fail' } } as const;
    expect(shown((await judged(`${printing('old')}; exit 1`, options)).verdict)).toBe('false failed');
  });

  test('fewer tests than on the base are a warning, once', async () => {
    const options = { baseline: () => ({ ...base(), verdict: 'pass', cause: null, findings: [] }) as const };
    const { at } = await judged('echo 2 passed in 0.1s', options);
    await at.verifier.verify(at.request([gate('test', 'echo 2 passed in 0.1s')]));
    expect(at.events.filter((event) => event.type === 'run.notice')).toEqual([
      {
        type: 'run.notice',
        level: 'warning',
        message: 'gate test ran 2 tests on the work of 01-store, 1 fewer than the 3 on the base',
        issue: '01-store',
      },
    ]);
    const { at: same } = await judged('echo 3 passed in 0.1s', options);
    expect(same.events.some((event) => event.type === 'run.notice')).toBe(false);
  });
});

import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createDriver } from '../../src/drivers/create.js';
import type { VerifierPorts } from '../../src/gates/gate.js';
import type { JudgePorts } from '../../src/gates/judging.js';
import { parseSpecSlug } from '../../src/issue.js';
import { systemClock } from '../../src/platform/clock.js';
import type { PromptGate } from '../../src/policy.js';
import { judgeContract, judgeDriver, readingChanges } from '../mutations/parts.js';
import { temporaryFolder } from '../rig/temp.js';
import { bench, tree, type Bench } from './bench.js';

const review: PromptGate = {
  name: 'review',
  kind: 'prompt',
  rubric: { text: 'Is it good?', source: null },
  on: ['issue'],
  timeoutMs: 60_000,
  env: [],
  afterGreen: false,
};

/** Lets a program judge, in a folder of its own for each call. */
async function judgedBy(script: string, changed: readonly string[] = []): Promise<readonly string[]> {
  return (await judging(script, changed)).told;
}

/** What came of it. */
interface Judging {
  readonly told: readonly string[];
  readonly at: Bench;
  readonly finding: string;
  readonly logHash: string | null;
  /** What was waited for between calls, in order. */
  readonly pauses: readonly string[];
}

async function judging(script: string, changed: readonly string[] = []): Promise<Judging> {
  const pauses: string[] = [];
  let inSlots = 0;
  const { path: folder } = await temporaryFolder();
  let calls = 0;
  const driver = createDriver(
    { kind: 'command', name: 'judge', run: ['sh', '-c', script], env: [], reports: { cost: false, tokens: false } },
    { clock: systemClock, repository: folder, own: process.env },
  );
  const judges: JudgePorts = {
    driver: judgeDriver(driver),
    contract: judgeContract,
    driverHash: 'driver',
    spec: parseSpecSlug('s1') ?? never(),
    brief: () =>
      Promise.resolve({
        spec: { title: 's1', body: 'What is wanted.' },
        issue: { title: '01-store', body: 'Do it.' },
        diff: '+ a line',
        tree: tree('c'),
        baseCode: tree('b'),
        linesOf: () => Promise.resolve(null),
      }),
    async withReading(_tree, use) {
      calls += 1;
      const checkout = join(folder, `r${String(calls)}`);
      const temporary = join(folder, `t${String(calls)}`);
      await mkdir(checkout);
      await mkdir(temporary);
      await writeFile(join(checkout, 'a.txt'), 'a');
      const slot = { number: calls, portBase: 20_000, temporary };
      const changes = (): Promise<readonly string[]> => readingChanges(() => Promise.resolve(changed));
      return { ok: true, value: await use({ folder: checkout, slot, changes }) };
    },
    failures: 3,
    pauseMs: (failures, until) => {
      pauses.push(`pause ${String(failures)}${until === undefined ? '' : ` until ${until}`}`);
      return 1;
    },
    parking: {
      isClosed: false,
      park: () => {
        pauses.push(`park, ${String(inSlots)} in slots`);
        return true;
      },
      over: () => {
        if (inSlots > 0) throw new Error('a slot is held');
        return Promise.resolve();
      },
    },
    environment: () => ({ PATH: process.env['PATH'] ?? '', CALLS: folder }),
  };
  const slots: VerifierPorts['slots'] = async (run) => {
    inSlots += 1;
    try {
      return await run();
    } finally {
      inSlots -= 1;
    }
  };
  const at = await bench({ judges, slots });
  const { passed, gates } = await at.verifier.verify(at.request([review]));
  const told = [String(passed), gates[0]?.cause ?? 'pass', `${String(calls)} calls`];
  const finding = gates[0]?.findings[0]?.message ?? '';
  return { told, at, pauses, finding, logHash: gates[0]?.logHash ?? null };
}

function never(): never {
  throw new Error('impossible');
}

function saying(...lines: readonly string[]): string {
  return `cat > /dev/null; cat << 'END'\n${lines.join('\n')}\nEND`;
}

const pass = '{"verdict":"pass","findings":[]}';

describe('a judge', () => {
  test('passes and fails by its verdict', async () => {
    expect(await judgedBy(saying('I am not sure.', pass))).toEqual(['true', 'pass', '1 calls']);
    const fail = '{"verdict":"fail","findings":[{"message":"no test"}]}';
    expect(await judgedBy(saying('All of it passes.', fail))).toEqual(['false', 'failed', '1 calls']);
  });

  test.each([
    ['nothing', []],
    ['another word', ['{"verdict":"approved","findings":[]}']],
    ['half of one', ['{"verdict":"pa']],
    ['two that differ', ['{"verdict":"fail","findings":[]}', pass]],
  ])('without a readable verdict has not passed: %s', async (_what, lines) => {
    expect(await judgedBy(saying(...lines))).toEqual(['false', 'errored', '2 calls']);
  });

  test('that writes one thing and prints another has said nothing', async () => {
    const fail = '{"verdict":"fail","findings":[]}';
    const both = (written: string, printed: string): string =>
      `cat > /dev/null; echo '${written}' > "$GIRO_ENVELOPE"; echo '${printed}'`;
    expect(await judgedBy(both(pass, fail))).toEqual(['false', 'errored', '2 calls']);
    expect(await judgedBy(both(pass, pass))).toEqual(['true', 'pass', '1 calls']);
    expect(await judgedBy(both(pass, 'looks good'))).toEqual(['true', 'pass', '1 calls']);
  });

  test('that says pass in words alone has said nothing', async () => {
    expect(await judgedBy(saying('Verdict: PASS. This passes.'))).toEqual(['false', 'errored', '2 calls']);
  });

  test('is bound to all that it said', async () => {
    const said = `prose\n${pass}\n`;
    const { logHash } = await judging(saying('prose', pass));
    expect(logHash).toBe(createHash('sha256').update(said).digest('hex'));
  });

  test('that changed its checkout has no verdict', async () => {
    expect(await judgedBy(saying(pass), ['a.txt'])).toEqual(['false', 'errored', '1 calls']);
  });
});

describe('a judge that cannot work', () => {
  const limited = `echo '{"status":"unavailable","reason":"usage-limit","until":"2030-01-01T00:00:00Z"}'; exit 75`;
  const firstTimes = (times: number, then: string): string =>
    `cat > /dev/null; echo x >> "$CALLS/calls"; test "$(wc -l < "$CALLS/calls")" -gt ${String(times)} && { ${then}; exit; }`;

  test('is called again after a pause, as a worker is; no slot is held meanwhile, and its one retry is not used', async () => {
    const unreadable = 'echo nothing';
    const last = `test "$(wc -l < "$CALLS/calls")" -gt 3 && echo '${pass}' || ${unreadable}`;
    const { told, pauses, at } = await judging(`${firstTimes(2, last)}\n${limited}`);
    expect(told).toEqual(['true', 'pass', '4 calls']);
    const until = 'until 2030-01-01T00:00:00.000Z';
    expect(pauses).toEqual([`pause 1 ${until}`, 'park, 1 in slots', `pause 2 ${until}`, 'park, 1 in slots']);
    const events = at.events.map(({ type }) => type).filter((type) => type.startsWith('gate.'));
    const [started, retrying] = ['gate.started', 'gate.retrying'];
    expect(events).toEqual([started, retrying, started, retrying, started, 'gate.finished']);
    expect(at.events).toContainEqual(
      expect.objectContaining({
        type: 'gate.retrying',
        gate: 'review',
        reason: 'agent is unavailable: usage-limit',
        failures: 2,
      }),
    );
  });

  test.each([
    ['its program is killed', 'kill -9 $$', 'killed by SIGKILL'],
    ['it is logged out', `echo '{"status":"unavailable","reason":"auth"}'; exit 75`, 'unavailable: auth'],
  ])('is errored in the end, after so many calls in a row as [budget] failures allows: %s', async (_what, end, why) => {
    const { told, pauses, finding } = await judging(`cat > /dev/null; ${end}`);
    expect(told).toEqual(['false', 'errored', '3 calls']);
    expect(pauses).toEqual(['pause 1', 'pause 2', 'pause 3']);
    expect(finding).toContain(why);
    expect(finding).toContain('3 times in a row');
  });

  test('and says so with another exit than 75 has merely said nothing', async () => {
    expect(await judgedBy(`cat > /dev/null; echo '{"status":"unavailable","reason":"auth"}'`)).toEqual([
      'false',
      'errored',
      '2 calls',
    ]);
  });
});

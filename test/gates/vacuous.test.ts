import { readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Verdict } from '../../src/gates/gate.js';
import { temporaryFolder } from '../rig/temp.js';
import { bench, gate, noRules } from './bench.js';

const report = '<testsuite><testcase name="a"/><testcase name="b"><skipped/></testcase></testsuite>';

function shown({ gates }: Verdict): string {
  return gates.map(({ cause, evidence }) => `${cause ?? 'pass'} ${String(evidence?.tests)}`).join(', ');
}

async function run(command: string, rules = {}): Promise<Verdict> {
  const at = await bench({ files: { 'kept.xml': report } });
  return at.verifier.verify(at.request([gate('test', command, { rules: { ...noRules, ...rules } })]));
}

describe('an exit with 0', () => {
  test('is no pass when the runner ran nothing', async () => {
    const verdict = await run(`printf 'Tests:       2 skipped, 2 total\\n'`);
    expect(shown(verdict)).toBe('vacuous 0');
    expect(verdict.findings[0]?.message).toContain('all its 2 tests were skipped');
    expect(verdict.passed).toBe(false);
  });

  test('of other output is one, unless min-tests asks for more', async () => {
    expect(shown(await run('echo fine'))).toBe('pass undefined');
    expect(shown(await run('echo fine', { minTests: 1 }))).toBe('vacuous undefined');
    expect(shown(await run('echo 3 passed in 0.1s', { minTests: 3 }))).toBe('pass 3');
    expect(shown(await run('echo 3 passed in 0.1s', { minTests: 4 }))).toBe('vacuous 3');
  });

  test('must show what must-match asks for, and nothing that must-not-match forbids', async () => {
    expect(shown(await run('echo 12 scenarios', { mustMatch: '^[1-9]\\d* scenarios$' }))).toBe('pass undefined');
    expect(shown(await run('echo 0 scenarios', { mustMatch: '^[1-9]\\d* scenarios$' }))).toBe('vacuous undefined');
    const forbidden = await run('echo DeprecationWarning: old', { mustNotMatch: 'DeprecationWarning' });
    expect(shown(forbidden)).toBe('failed undefined');
    expect(forbidden.findings[0]?.message).toContain('DeprecationWarning: old');
  });

  test('while the work goes on in the background says nothing of that work', async () => {
    const verdict = await run('sh -c "sleep 30; exit 1" &');
    expect(shown(verdict)).toBe('vacuous undefined');
    expect(verdict.findings[0]?.message).toContain('sleep 30');
  });

  test('may leave a server running: what asked it has ended', async () => {
    const serve = `require('net').createServer().listen(0, () => require('fs').writeFileSync('up', ''))`;
    expect(shown(await run(`node -e "${serve}" & until [ -e up ]; do sleep 0.05; done`))).toBe('pass undefined');
    const both = await run(`node -e "${serve}" & until [ -e up ]; do sleep 0.05; done; sleep 30 &`);
    expect(shown(both)).toBe('vacuous undefined');
  });
});

describe('a JUnit report', () => {
  const junit = 'out/junit.xml';

  test('is what counts, whatever is printed', async () => {
    const verdict = await run(`mkdir out; echo '${report}' > ${junit}; echo 9 passed in 0.1s`, { junit });
    expect(verdict.gates[0]?.evidence).toEqual({
      ...{ runner: 'junit', tests: 1, failed: 0, skipped: 1, failures: [], passes: ['a'] },
    });
    expect(verdict.passed).toBe(true);
  });

  test('that is not written, or not whole, makes a pass vacuous', async () => {
    const missing = await run('true', { junit });
    expect(shown(missing)).toBe('vacuous undefined');
    expect(missing.findings[0]?.message).toContain('out/junit.xml was not written');
    expect(shown(await run(`mkdir out; echo '<testsuite>' > ${junit}`, { junit }))).toBe('vacuous undefined');
    expect(shown(await run(`mkdir -p ${junit}`, { junit }))).toBe('vacuous undefined');
    expect(shown(await run(`mkdir out; mkfifo ${junit}`, { junit }))).toBe('vacuous undefined');
  });

  test('that lay in the repository before is not taken for this run, nor for a change', async () => {
    expect(shown(await run('true', { junit: 'kept.xml' }))).toBe('vacuous undefined');
    expect(
      shown(await run(`echo '<testsuite><testcase name="n"/></testsuite>' > kept.xml`, { junit: './kept.xml' })),
    ).toBe('pass 1');
  });

  test('is neither read nor removed outside of the checkout', async () => {
    const { path } = await temporaryFolder();
    await writeFile(join(path, 'junit.xml'), report);
    const at = await bench();
    const wait = gate('wait', `ln -s ${path} out`);
    const gates = [wait, gate('test', 'true', { rules: { ...noRules, junit } })];
    expect(shown(await at.verifier.verify(at.request(gates)))).toBe('pass undefined, vacuous undefined');
    expect(await readFile(join(path, 'junit.xml'), 'utf8')).toBe(report);
    await symlink(path, join(path, 'loop'));
  });
});

test('what a pass has shown is remembered with it', async () => {
  const at = await bench();
  const gates = [gate('test', 'echo 3 passed in 0.1s')];
  await at.verifier.verify(at.request(gates));
  const again = await at.verifier.verify(at.request(gates));
  expect(again.gates[0]).toMatchObject({ cached: true, evidence: { runner: 'pytest', tests: 3 } });
  expect(at.events.at(-1)).toMatchObject({ type: 'gate.finished', cached: true, evidence: { tests: 3 } });
});

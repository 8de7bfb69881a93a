import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { eventsOf, makeProject, type Project } from '../rig/giro.js';

const node = 'node --test';
const adds = `import test from 'node:test';\nimport assert from 'node:assert';\nimport { add } from './add.mjs';\n`;
const passing = `${adds}test('adds', () => assert.equal(add(1, 1), 2));\n`;
const failing = `${adds}test('adds', () => assert.equal(add(1, 1), 2));\ntest('adds nothing', () => assert.equal(add(1), 1));\n`;
const source = { 'add.mjs': 'export const add = (a, b) => a + b;\n', 'README.md': '# T\n' };

async function attempts(project: Project): Promise<number> {
  const log = await readFile(join(project.home, 'agents'), 'utf8').catch(() => '');
  return log.split('\n').filter((line) => line !== '').length;
}

const counted = 'echo "$GIRO_ISSUE" >> "$HOME/agents"\n';

test('C031 gates side by side derive their ports from their slot; a fixed port clashes, and the text says so', async () => {
  const serve = `const net = require('node:net');
const server = net.createServer((socket) => socket.end(require('node:fs').readdirSync('.').join(' ')));
server.on('error', (error) => { console.error(error.message); process.exit(1); });
server.listen(Number(process.argv[2]), () => require('node:fs').writeFileSync(process.env.TMPDIR + '/up', ''));
`;
  const ask = `const net = require('node:net');
let text = '';
const socket = net.connect(Number(process.argv[2])).on('data', (data) => { text += data; });
socket.on('error', () => process.exit(1)).on('close', () => process.exit(text.includes(process.argv[3]) ? 0 : 1));
`;
  const issues = { '01-a': {}, '02-b': {}, '03-c': {}, '04-d': {} };
  const gate = (port: string): string =>
    `node serve.cjs ${port} & until [ -e "$TMPDIR/up" ] || ! kill -0 $! 2>/dev/null; do sleep 0.05; done; node ask.cjs ${port} "\${GIRO_ISSUE:-README}"`;
  const setup = (port: string) => ({
    files: { 'serve.cjs': serve, 'ask.cjs': ask, 'README.md': '# T\n' },
    issues,
    budget: 'attempts = 1',
    verify: `[verify.serve]\nrun = ${JSON.stringify(gate(port))}`,
    toml: '[evidence]\nbaseline = "fail"\n',
  });
  const project = await makeProject(setup('$GIRO_PORT_BASE'));
  const run = await project.implement('--concurrency', '4');
  expect(run.code).toBe(0);
  expect(eventsOf(run, 'issue.integrated').length).toBe(4);
  // The same port for all of them: whoever comes second is told why.
  const { createServer } = await import('node:net');
  const taken = createServer((socket) => socket.end('somebody else')).listen(0);
  await new Promise((listening) => taken.on('listening', listening));
  const address = taken.address();
  const port = typeof address === 'object' && address !== null ? String(address.port) : '0';
  const clash = await makeProject(setup(port));
  const red = await clash.implement();
  taken.close();
  expect(red.code).toBe(2);
  expect(eventsOf(red, 'gate.finished')[0]?.findings[0]?.detail).toContain('EADDRINUSE');
});

describe('C050 a gate that tested nothing', () => {
  test('lands nothing, and the worker is told why', async () => {
    const project = await makeProject({
      files: { ...source, 'add.test.mjs': passing },
      issues: { '01-a': {} },
      budget: 'attempts = 1',
      agent: 'sed -i "s/^test(/test.skip(/" add.test.mjs\n',
      verify: `test = "${node}"`,
      toml: '[evidence]\nbaseline = "fail"\n',
    });
    const run = await project.implement();
    expect(run.code).toBe(2);
    expect(eventsOf(run, 'gate.finished').map(({ scope, verdict, cause }) => [scope, verdict, cause])).toEqual([
      ['base', 'pass', undefined],
      ['issue', 'fail', 'vacuous'],
    ]);
    expect(await project.issueFile('01-a')).toContain(
      'passed without a test: its only test was skipped or filtered out',
    );
    expect(await project.git('diff', '--name-only', 'main', 'giro/s1', '--', '.', ':!docs')).toBe('');
  });

  test('and left its work in the background is red, whatever the work comes to', async () => {
    const project = await makeProject({
      issues: { '01-a': {} },
      budget: 'attempts = 1',
      verify: 'test = "(sleep 20; exit 1) &"',
    });
    const run = await project.implement();
    expect(run.code).toBe(2);
    expect(eventsOf(run, 'gate.finished').map(({ cause }) => cause)).toEqual(['vacuous', 'vacuous']);
  });
});

describe('a base that is red before any work', () => {
  const setup = (baseline: string) => ({
    files: { ...source, 'add.test.mjs': failing },
    issues: { '01-a': {} },
    budget: 'attempts = 1',
    agent: `${counted}echo done > "$GIRO_ISSUE.txt"\n`,
    verify: `test = "${node}"`,
    toml: `[evidence]\nbaseline = "${baseline}"\n`,
  });

  test('stops the Spec with the evidence; no agent is started, and a repair lets it go on', async () => {
    const project = await makeProject(setup('fail'));
    const run = await project.implement();
    expect(run.code).toBe(2);
    expect(await attempts(project)).toBe(0);
    expect(eventsOf(run, 'spec.escalated')).toMatchObject([{ cause: 'baseline-red' }]);
    const spec = await project.show('giro/s1', 'docs/specs/s1/SPEC.md');
    expect(spec).toContain('state: needs-human');
    expect(spec).toMatch(/### Escalated · \S+ · baseline-red\n[^]*gate test failed: exit 1/);
    expect(run.events.at(-1)).toMatchObject({ exit: 2, reason: 'needs-human' });
    // Run again without a repair, it asks again; then it starts from the repair, which is a parent of what it takes in.
    expect((await project.implement()).code).toBe(2);
    await project.write('add.mjs', 'export const add = (a, b = 0) => a + b;\n');
    await project.git('commit', '--quiet', '--message', 'mend', 'add.mjs');
    const head = (await project.git('rev-parse', 'HEAD')).trim();
    const before = (await project.git('rev-parse', 'giro/s1')).trim();
    const again = await project.implement();
    expect(again.code).toBe(0);
    expect(await attempts(project)).toBe(1);
    expect(eventsOf(again, 'run.started')).toMatchObject([{ base: head, tip: before }]);
    expect(await project.git('log', '--format=%H', 'giro/s1')).toContain(before);
    expect(await project.show('giro/s1', 'docs/specs/s1/SPEC.md')).toContain(`run again on ${head.slice(0, 7)};`);
    expect((await project.giro(['proof', 's1'])).code).toBe(0);
    expect((await project.git('diff', '--name-only', 'HEAD', 'giro/s1', '--', '.', ':!docs')).trim()).toBe('01-a.txt');
  });

  test('keeps its base when something has landed; the packet says how a repair gets there', async () => {
    const project = await makeProject({
      ...setup('fail'),
      files: { ...source, red: '' },
      verify: 'test = "true"\n[verify.late]\nrun = "test ! -e red"\non = []',
    });
    expect((await project.implement()).code).toBe(0);
    await project.writeIssue('02-b', {});
    const config = join(project.path, 'giro.toml');
    await writeFile(config, (await readFile(config, 'utf8')).replace('on = []', 'on = ["issue"]'));
    await project.git('rm', '--quiet', 'red');
    await project.git('commit', '--quiet', '--message', 'mend');
    for (let run = 0; run < 2; run += 1)
      expect(eventsOf(await project.implement(), 'spec.escalated')).toMatchObject([{ cause: 'baseline-red' }]);
    expect((await project.giro(['status', 's1'])).stdout).toContain(
      'git switch giro/s1 && git merge - && git switch -',
    );
    await project.git('stash', 'push', '--quiet', '--include-untracked');
    await project.git('switch', '--quiet', 'giro/s1');
    await project.git('merge', '--quiet', '--no-edit', '-');
    await project.git('switch', '--quiet', '-');
    await project.git('stash', 'pop', '--quiet');
    expect((await project.implement()).code).toBe(0);
  });

  test('is judged where the work starts from: a repair that stands on giro/<spec> counts', async () => {
    const project = await makeProject(setup('fail'));
    expect((await project.implement()).code).toBe(2);
    const folder = join(project.folder, 'mend');
    await project.git('worktree', 'add', '--quiet', '--detach', folder, 'giro/s1');
    await writeFile(join(folder, 'add.mjs'), 'export const add = (a, b = 0) => a + b;\n');
    await project.git('-C', folder, 'commit', '--quiet', '--all', '--message', 'mend');
    const mended = await project.git('-C', folder, 'rev-parse', 'HEAD');
    await project.git('worktree', 'remove', '--force', folder);
    await project.git('branch', '--quiet', '--force', 'giro/s1', mended.trim());
    const again = await project.implement();
    expect(again.code).toBe(0);
    expect(await attempts(project)).toBe(1);
  });

  test('is allowed by giro.toml: what the base had does not block, and is named as a waiver', async () => {
    const project = await makeProject(setup('allow'));
    const run = await project.implement();
    expect(run.code).toBe(0);
    const notices = eventsOf(run, 'run.notice').map(({ message }) => message);
    expect(notices).toContainEqual(expect.stringContaining('adds nothing: only new failures count'));
    const finished = eventsOf(run, 'gate.finished').filter(({ scope }) => scope !== 'base');
    expect(new Set(finished.map(({ waiver }) => waiver))).toEqual(new Set(['[evidence] baseline = "allow"']));
    expect(await project.issueFile('01-a')).toContain('[evidence] baseline = "allow"');
    const lines = eventsOf(run, 'run.finished')[0]?.lines ?? [];
    expect(lines.filter((line) => line.startsWith('waiver'))).toEqual([
      expect.stringMatching(
        /^waiver {2}01-a \[[0-9a-f]{8}\] accepted by giro\.toml: gate test has 1 failure of the base/,
      ),
      expect.stringMatching(/^waiver {2}s1 \[[0-9a-f]{8}\] accepted by giro\.toml/),
    ]);
    const proof = await project.giro(['proof', 's1']);
    expect(proof.code, proof.stdout).toBe(0);
    expect(proof.stdout).toContain('1 failed, red, waived)');
    expect(proof.stdout).toMatch(/^waiver {2}.*\(by giro\.toml\)$/m);
    const again = await project.giro(['proof', 's1', '--rerun']);
    expect(again.code, again.stdout).toBe(0);
    expect(again.stdout).toContain('holds   gate test again: ');
  });

  test('and allowed still blocks what is new', async () => {
    const broken = `printf '${failing.replaceAll('\n', '\\n').replaceAll("'", '"')}test("new", () => assert.fail());\\n' > add.test.mjs\n`;
    const project = await makeProject({ ...setup('allow'), agent: broken });
    const run = await project.implement();
    expect(run.code).toBe(2);
    expect(await project.issueFile('01-a')).toContain(
      '1 new failure: new; besides 1 failure of the base (adds nothing)',
    );
    expect(eventsOf(run, 'issue.integrated')).toEqual([]);
  });
});

test('a gate that is red once and green then is flaky: a red, or a warning that is named', async () => {
  const flaky = (policy: string) => ({
    issues: { '01-a': {} },
    budget: 'attempts = 1',
    agent: 'touch "$HOME/begun"; echo x > "$GIRO_ISSUE.txt"\n',
    verify: 'test = "[ ! -e $HOME/begun ] || { echo x >> $HOME/runs; [ $(wc -l < $HOME/runs) -ge 2 ]; }"',
    toml: `[evidence]\nflaky = "${policy}"\n`,
  });
  const red = await makeProject(flaky('fail'));
  const run = await red.implement();
  expect(run.code).toBe(2);
  expect(eventsOf(run, 'gate.finished').find(({ scope }) => scope === 'issue')).toMatchObject({ cause: 'flaky' });
  expect(eventsOf(run, 'gate.repeated')).toMatchObject([{ scope: 'issue', gate: 'test' }]);
  const warned = await makeProject(flaky('warn'));
  expect((await warned.implement()).code).toBe(0);
  expect(await warned.issueFile('01-a')).toContain('[evidence] flaky = "warn"');
});

describe('red-green', () => {
  const setup = (agent: string, frontmatter = '', proof = 'proof = "red-green"') => ({
    files: { ...source, 'add.test.mjs': passing },
    issues: { '01-a': frontmatter === '' ? {} : { frontmatter } },
    budget: 'attempts = 1',
    agent,
    verify: `test = "${node}"`,
    toml: `[evidence]\n${proof}\n`,
  });
  const write = (path: string, text: string): string => `cat > ${path} <<'END'\n${text}END\n`;
  const change = write('add.mjs', 'export const add = (a, b = 0) => a + b;\n');

  test('new tests that fail without the change are the proof, and stand with the gates', async () => {
    const project = await makeProject(setup(change + write('add.test.mjs', failing)));
    const run = await project.implement();
    expect(run.code, run.stderr).toBe(0);
    expect(await project.issueFile('01-a')).toMatch(/- gate red-green: pass · 1 test fails without the change · /);
    const probes = eventsOf(run, 'gate.finished').filter(({ probing }) => probing === true);
    expect(probes).toMatchObject([{ scope: 'base', issue: '01-a', verdict: 'fail', cause: 'failed' }]);
    // A red that is looked for is not run again.
    expect(eventsOf(run, 'gate.repeated')).toEqual([]);
    expect((await project.giro(['proof', 's1'])).code).toBe(0);
  });

  test('a test that passes without the change is a finding, for one Issue that asks for it too', async () => {
    const idle = `${passing}test('is idle', () => assert.ok(add));\ntest('adds nothing', () => assert.equal(add(1), 1));\n`;
    const project = await makeProject(setup(change + write('add.test.mjs', idle), 'proof: red-green', ''));
    const run = await project.implement();
    expect(run.code).toBe(2);
    expect(await project.issueFile('01-a')).toContain('red-green: is idle is new and passes without the change');
    expect(eventsOf(run, 'issue.integrated')).toEqual([]);
  });

  test('and so is a change without a test', async () => {
    const project = await makeProject(setup(change));
    expect((await project.implement()).code).toBe(2);
    expect(await project.issueFile('01-a')).toContain('red-green: no test file was added or changed');
  });
});

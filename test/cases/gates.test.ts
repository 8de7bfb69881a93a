import { readFile, stat } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { eventsOf, makeProject } from '../rig/giro.js';
import { full, scaled } from '../rig/scale.js';

const orders = [
  ['one = "true"', 'two = "false"', 'three = "true"'],
  ['one = "true"', 'three = "true"', 'two = "false"'],
  ['two = "false"', 'one = "true"', 'three = "true"'],
];

test.each(orders)('C050 a red gate stops the merge, wherever it stands: %s, %s, %s', async (...gates) => {
  const project = await makeProject({ issues: { '01-a': {} }, verify: gates.join('\n') });
  const run = await project.implement();
  expect(run.code).toBe(2);
  const finished = eventsOf(run, 'gate.finished').filter((event) => event.scope === 'issue');
  // All run on every attempt: the next one hears every finding.
  expect(
    finished
      .map((event) => event.gate)
      .slice(0, 3)
      .sort(),
  ).toEqual(['one', 'three', 'two']);
  expect(eventsOf(run, 'issue.integrated')).toEqual([]);
  expect(await project.git('diff', '--name-only', 'main', 'giro/s1', '--', '.', ':!docs')).toBe('');
  expect(await project.issueFile('01-a')).toContain('state: needs-human');
  // A person reads the same on the screen.
  await project.git('update-ref', '-d', 'refs/heads/giro/s1');
  const lines = await project.giro(['implement', 's1', '--plain']);
  expect(lines.code).toBe(2);
  expect(lines.stdout).toMatch(/01-a +gate two failed/);
  expect(lines.stdout).not.toMatch(/integrated as/);
  expect(lines.stdout.trimEnd().split('\n').at(-1)).toMatch(/^needs a human: 01-a: /);
});

test.each([
  ['', 'no gate'],
  ['test = ""', 'test'],
  ['test = "   "', 'test'],
  ['test = "# todo"', 'test'],
  ['[verify.test]\nkind = "magic"\nrun = "true"', 'magic'],
])('C051 the settings %j never lead to a silent pass', async (verify, named) => {
  const project = await makeProject({ issues: { '01-a': {} }, verify });
  const run = await project.implement();
  expect(run.code).toBe(1);
  expect(run.stderr).toContain('giro.toml');
  expect(run.stderr).toContain(named);
  expect(run.stdout).toBe('');
});

test('C051 an Issue cannot name a gate that does not exist or an empty list; without the key the gates of giro.toml are due', async () => {
  const project = await makeProject({ issues: { '01-a': { frontmatter: 'gates: [nope]' } } });
  const refused = await project.implement();
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('docs/specs/s1/issues/01-a.md:3:');
  await project.writeIssue('01-a', { frontmatter: 'gates: []' });
  expect((await project.implement()).stderr).toContain('docs/specs/s1/issues/01-a.md:3:');
  await project.writeIssue('01-a', {});
  const run = await project.implement();
  expect(run.code).toBe(0);
  expect(eventsOf(run, 'gate.finished').length).toBeGreaterThan(0);
});

test('C052 a gate that rewrites tracked files makes the Issue dirty, never merged unchecked', async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    verify: 'format = "echo formatted > README.md"\ntest = "! grep -q formatted README.md"',
  });
  const run = await project.implement();
  expect(run.code).toBe(2);
  expect(await project.issueFile('01-a')).toMatch(/gate format: fail[^\n]*\n[\s\S]*README\.md/);
  const test1 = eventsOf(run, 'gate.finished').find((event) => event.gate === 'test');
  expect(test1?.verdict).toBe('pass');
});

test.each([
  ['left untracked but ignored', 'gen.ts\n'],
  ['ignored by a pattern', '*.gen.ts\ngen.*\n'],
])('C053 green only because of a file that is %s is red in the clean checkout', async (_name, ignore) => {
  const project = await makeProject({
    files: { 'README.md': '# T\n', '.gitignore': ignore },
    issues: { '01-a': {} },
    budget: 'attempts = 1',
    agent: 'echo "import ./gen.ts" > index.ts\necho x > gen.ts\ntest -f gen.ts\n',
    verify: 'test = "test ! -f index.ts || cat gen.ts"',
  });
  const run = await project.implement();
  expect(run.code).toBe(2);
  expect(eventsOf(run, 'issue.integrated')).toEqual([]);
  // It says which file is missing.
  expect(await project.issueFile('01-a')).toMatch(/gen\.ts: No such file/);
});

test('C053 a file that was merely left untracked is part of the work', async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    agent: [
      'echo "import ./gen.ts" > index.ts',
      'git add index.ts',
      'git -c user.name=a -c user.email=a@x commit -q -m index',
      'echo x > gen.ts\n',
    ].join('\n'),
    verify: 'test = "test ! -f index.ts || cat gen.ts"',
  });
  expect((await project.implement()).code).toBe(0);
  expect(await project.show('giro/s1', 'gen.ts')).toBe('x');
});

test.each([
  ['false | tail -5', 'fail'],
  ['false | tee out.log', 'fail'],
  ['false; true', 'pass'],
  ['false || echo failed', 'pass'],
])('C054 the gate %j is a %s', async (command, verdict) => {
  const project = await makeProject({
    issues: { '01-a': {} },
    budget: 'attempts = 1',
    verify: `test = ${JSON.stringify(command)}`,
  });
  const run = await project.implement();
  expect(eventsOf(run, 'gate.finished')[0]?.verdict).toBe(verdict);
  expect(run.code).toBe(verdict === 'pass' ? 0 : 2);
});

test('C055 a gate gets no terminal, closed input and CI', async () => {
  const watcher = 'if [ -t 0 ] || [ -t 1 ] || [ -z "$CI" ]; then sleep 600; fi; read answer; test -z "$answer"';
  const project = await makeProject({ issues: { '01-a': {} }, verify: `test = ${JSON.stringify(watcher)}` });
  expect((await project.implement()).code).toBe(0);
});

test('C055 a gate that never ends is timed out, and said so', async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    budget: 'attempts = 1',
    verify: '[verify.test]\nrun = "sleep 600"\ntimeout = "1s"',
  });
  const run = await project.implement();
  expect(run.code).toBe(2);
  expect(eventsOf(run, 'gate.finished')[0]?.ended?.kind).toBe('timed-out');
  expect(await project.issueFile('01-a')).toContain('timed out');
});

test.each([
  ['children in the background', 'sleep 300 & sleep 300; wait'],
  ['a child that ignores the signal', `sh -c 'trap "" TERM; sleep 300; sleep 300' & sleep 300; wait`],
])('C056 at the limit the whole group goes: %s', async (_name, command) => {
  const project = await makeProject({
    issues: { '01-a': {} },
    budget: 'attempts = 1',
    verify: `[verify.test]\nrun = ${JSON.stringify(`sh -c ${JSON.stringify(command)}`)}\ntimeout = "1s"`,
  });
  const run = await project.implement();
  expect(run.code).toBe(2);
  const gate = eventsOf(run, 'gate.finished')[0];
  expect(gate?.ended?.kind).toBe('timed-out');
  expect(gate?.durationMs ?? Infinity).toBeLessThan(10_000);
  // That no process is left is checked after every test.
});

test('C057 very large output passes and fails as it should, whole in the log, bounded in the prompt', async () => {
  const bytes = scaled(30_000_000, 300_000_000);
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': {} },
    budget: 'attempts = 2\nno-progress = 5',
    agent: 'cat > "$HOME/prompt-$GIRO_ISSUE-$GIRO_ATTEMPT"\necho "$GIRO_ATTEMPT" > "$GIRO_ISSUE.txt"\n',
    verify: [
      `lines = ${JSON.stringify(`yes 0123456789 | head -c ${String(bytes)} || true`)}`,
      '[verify.one-line]',
      `run = ${JSON.stringify(`head -c ${String(bytes)} /dev/zero | tr "\\\\0" x; test ! -f 02-b.txt`)}`,
    ].join('\n'),
  });
  const run = await project.implement();
  expect(run.code).toBe(2);
  const gates = eventsOf(run, 'gate.finished').filter((event) => event.scope === 'issue');
  expect(gates.filter((event) => event.gate === 'lines').every((event) => event.verdict === 'pass')).toBe(true);
  expect(gates.find((event) => event.issue === '02-b' && event.gate === 'one-line')?.verdict).toBe('fail');
  const log = eventsOf(run, 'gate.started').find((event) => event.gate === 'one-line')?.log ?? '';
  expect((await stat(log)).size).toBeGreaterThanOrEqual(bytes);
  const prompt = await readFile(`${project.home}/prompt-02-b-2`, 'utf8');
  expect(prompt.length).toBeLessThan(40_000);
  expect(full || prompt.includes('one-line')).toBe(true);
});

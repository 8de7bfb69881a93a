import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventsOf, makeProject } from '../rig/giro.js';

test.each(['0', '-1', 'abc', '1.5', '', 'Infinity', '1e9', ' 2'])(
  'C015 --concurrency %j is one usage line before git is touched',
  async (value) => {
    const project = await makeProject({ issues: { '01-a': {} } });
    const run = await project.giro(['implement', 's1', `--concurrency=${value}`]);
    expect(run.code).toBe(1);
    expect(run.stderr.trim().split('\n')).toHaveLength(1);
    expect(run.stderr).toContain('--concurrency');
    expect(run.stdout).toBe('');
    expect(await project.git('for-each-ref', 'refs/heads/giro/')).toBe('');
  },
);

test('C015 --concurrency without a value is one usage line', async () => {
  const project = await makeProject({ issues: { '01-a': {} } });
  const run = await project.giro(['implement', 's1', '--concurrency']);
  expect(run.code).toBe(1);
  expect(run.stderr.trim().split('\n')).toHaveLength(1);
});

test('C016 an agent that cannot be started is recorded as such; the others finish', async () => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': {}, '03-c': {} },
    budget: 'failures = 1',
    // The first Issue takes the program away, the gate of the last one is not reached without it.
    agent: 'echo x > "$GIRO_ISSUE.txt"\n',
    toml: '',
  });
  await project.write(
    'agent.sh',
    `#!/bin/sh\necho x > "$GIRO_ISSUE.txt"\nif [ "$GIRO_ISSUE" = 01-a ]; then mv "${project.path}/agent.sh" "${project.path}/agent.off"; fi\n`,
    0o755,
  );
  const process = project.start(['implement', 's1', '--json', '-c', '1']);
  await process.event('issue.escalated', (event) => event.issue === '02-b');
  const run = await process.ended;
  expect(run.code).toBe(2);
  expect(eventsOf(run, 'issue.escalated').find((event) => event.issue === '02-b')).toMatchObject({
    cause: 'operation-failures',
  });
  expect(eventsOf(run, 'issue.integrated').map((event) => event.issue)).toContain('01-a');
  expect(run.stderr).toBe('');
  expect(await project.issueFile('02-b')).toMatch(/agent\.sh.*(not found|does not exist|no such)/i);
});

test('C016 an Issue whose agent cannot be started is the only one that fails', async () => {
  const one = { frontmatter: 'resources: [one]' };
  const project = await makeProject({
    issues: { '01-a': one, '02-b': one, '03-c': {} },
    budget: 'failures = 1',
    // The second Issue waits for the first, which takes the program away while the third is at work.
    agent: [
      'if [ "$GIRO_ISSUE" = 01-a ]; then while [ ! -f "$HOME/at-03-c" ]; do sleep 0.05; done; mv "$AGENT" "$AGENT.off"; fi',
      'touch "$HOME/at-$GIRO_ISSUE"',
      'echo x > "$GIRO_ISSUE.txt"\n',
    ].join('\n'),
  });
  const toml = await readFile(join(project.path, 'giro.toml'), 'utf8');
  await project.write('giro.toml', toml.replace('[budget]', 'env = ["AGENT"]\n[budget]'));
  const env = { AGENT: join(project.path, 'agent.sh') };
  const run = await project.giro(['implement', 's1', '--json', '-c', '2'], { env });
  expect(run.code).toBe(2);
  expect(run.stderr).toBe('');
  expect(
    eventsOf(run, 'issue.integrated')
      .map((event) => event.issue)
      .sort(),
  ).toEqual(['01-a', '03-c']);
  expect(eventsOf(run, 'issue.escalated')).toMatchObject([{ issue: '02-b', cause: 'operation-failures' }]);
  expect(await project.issueFile('02-b')).toMatch(/agent\.sh.*(not found|does not exist|no such)/i);
});

test('an agent that has reached its usage limit: no other one is started before that ends', async () => {
  const until = new Date(Date.now() + 4000).toISOString();
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': {}, '03-c': {} },
    budget: 'attempts = 1',
    agent: [
      'if [ ! -e "$HOME/limit" ]; then',
      '  touch "$HOME/limit"',
      `  echo '{"status":"unavailable","reason":"usage-limit","until":"${until}"}' > "$GIRO_ENVELOPE"`,
      '  exit 75',
      'fi',
      'echo x > "$GIRO_ISSUE.txt"\n',
    ].join('\n'),
  });
  const run = await project.implement('-c', '1');
  expect(run.code).toBe(0);
  const started = eventsOf(run, 'attempt.started');
  expect(started.map((event) => event.issue).sort()).toEqual(['01-a', '01-a', '02-b', '03-c']);
  // A timer may fire within the millisecond before.
  expect(started.filter((event) => Date.parse(event.at) < Date.parse(until) - 5)).toHaveLength(1);
  expect(eventsOf(run, 'run.notice').filter((event) => event.message.includes('usage-limit'))).toHaveLength(1);
});

test('C017 never more agents than the limit, retries included', async () => {
  const issues = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`${String(index + 1)}-work`, {}]));
  const project = await makeProject({
    issues,
    agent: [
      'log="$HOME/log"',
      'echo "start" >> "$log"',
      'sleep 0.2',
      'echo "$GIRO_ATTEMPT" > "$GIRO_ISSUE.txt"',
      'echo "stop" >> "$log"',
    ].join('\n'),
    // Half of them are red at first.
    // A gate writes down when it runs; the base is judged before, alone.
    limits: 'gates = 2',
    verify: String.raw`test = "echo gate-start >> $HOME/gates; sleep 0.05; echo gate-stop >> $HOME/gates; for f in 2 4 6 8 10; do if [ -f $f-work.txt ]; then grep -q 2 $f-work.txt || exit 1; fi; done"`,
  });
  const run = await project.implement('-c', '3');
  expect(run.code).toBe(0);
  const log = (await readFile(join(project.home, 'log'), 'utf8')).trim().split('\n');
  expect(log.filter((line) => line === 'start')).toHaveLength(15);
  expect(mostAtOnce(log)).toBe(3);
  // Gates and re-verifies have a limit of their own.
  const gates = (await readFile(join(project.home, 'gates'), 'utf8')).trim().split('\n');
  expect(mostAtOnce(gates)).toBeLessThanOrEqual(2);
});

function mostAtOnce(log: readonly string[]): number {
  let alive = 0;
  return Math.max(...log.map((line) => (alive += line.endsWith('start') ? 1 : -1)));
}

test('C018 the next attempt hears what failed, and the attempts are capped', async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    budget: 'attempts = 2\nno-progress = 5',
    agent: 'cat > "$HOME/prompt-$GIRO_ATTEMPT"\necho "$GIRO_ATTEMPT" > a.txt\n',
    verify: 'always-red = "echo E-4711; exit 1"',
  });
  const run = await project.implement();
  expect(run.code).toBe(2);
  const [first, second] = await Promise.all(
    ['prompt-1', 'prompt-2'].map((name) => readFile(join(project.home, name), 'utf8')),
  );
  expect(first).not.toContain('not accepted');
  expect(second).toContain('E-4711');
  expect(second).toContain('gate always-red');
  expect(eventsOf(run, 'issue.escalated')[0]).toMatchObject({ cause: 'budget-spent', attempts: 2 });
  expect(eventsOf(run, 'run.finished')[0]?.lines.join('\n')).toContain('01-a');
});

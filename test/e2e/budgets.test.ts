import { readdir } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { blocksOf, readText } from '../docs/markdown.js';
import { eventsOf, makeProject, unchangedBy, type Project, type ProjectSetup } from '../rig/giro.js';

/** An agent that says what it cost, and leaves a trace of each of its calls. */
function agentAt(costUsd: number, work = 'echo "$GIRO_ATTEMPT" > "$GIRO_ISSUE.txt"'): string {
  return `touch "$HOME/call.$GIRO_ROLE.$GIRO_ISSUE.$GIRO_ATTEMPT.$$"
${work}
echo '{"status":"done","usage":{"cost-usd":${String(costUsd)},"tokens":12300}}' > "$GIRO_ENVELOPE"
`;
}

function paid(setup: Partial<ProjectSetup> & { readonly budget: string }): Promise<Project> {
  const toml = `[driver.paid]\nkind = "command"\nrun = ["./agent.sh"]\nreports-cost = true\nreports-tokens = true\n[roles]\nworker = "paid"\nplanner = "paid"\njudge = "paid"\n`;
  return makeProject({ issues: { '01-a': {} }, agent: agentAt(0.31), ...setup, toml: `${setup.toml ?? ''}${toml}` });
}

async function callsIn(project: Project, part = ''): Promise<number> {
  const names = await readdir(project.environment['HOME'] ?? '');
  return names.filter((name) => name.startsWith('call.') && name.includes(part)).length;
}

test('what a call took stands in History, in the events and in the last lines', async () => {
  const project = await paid({ budget: 'run-cost = 5\nissue-tokens = 100000' });
  const run = await project.implement();
  expect(run.code).toBe(0);
  expect(await project.issueFile('01-a')).toMatch(/^base .* · \$0\.31 · 12\.3k tokens · /m);
  expect(eventsOf(run, 'attempt.finished')[0]?.usage).toEqual({ costUsd: 0.31, tokens: 12_300 });
  expect(eventsOf(run, 'budget.charged')).toMatchObject([
    { issue: '01-a', role: 'worker', driver: 'paid', budgets: [{ key: 'run-cost', spent: 0.31, limit: 5 }] },
  ]);
  expect(eventsOf(run, 'run.finished')[0]?.lines.at(-2)).toBe('spent  $0.31 · 12.3k tokens, run-cost $0.31 of $5.00');
  const { stdout } = await project.giro(['status', 's1']);
  expect(stdout).toContain('spent $0.31 · 12.3k tokens');
  expect(stdout).toMatch(/01-a .* · 1 attempt · \$0\.31 · 12\.3k tokens, issue-tokens 12\.3k tokens of 100\.0k tokens/);
  const json: unknown = JSON.parse((await project.giro(['status', 's1', '--json'])).stdout);
  const spending = { calls: 1, costUsd: 0.31, unknownCosts: 0, tokens: 12_300, unknownTokens: 0 };
  expect(json).toMatchObject({ spending, issues: [{ id: '01-a', spending }] });
  expect(json).toMatchObject({ issues: [{ budgets: [{ key: 'issue-tokens', spent: 12_300, limit: 100_000 }] }] });
});

test('the example of docs/budgets.md does what the text says', async () => {
  const blocks = blocksOf(readText('docs/budgets.md'));
  const block = (part: string) => blocks.find(({ text }) => text.includes(part))?.text ?? '';
  const project = await makeProject({ spec: 'greeting', issues: {} });
  await project.write('docs/specs/greeting/SPEC.md', block('docs/specs/greeting/SPEC.md'));
  await project.write('docs/specs/greeting/issues/01-hello.md', block('issues/01-hello.md'));
  await project.write('giro.toml', block('[verify]'));
  await project.write('agent.sh', block('#!/bin/sh'), 0o755);
  const run = await project.giro(['implement', 'greeting', '--max-cost', '5']);
  expect(run.code, run.stderr).toBe(0);
  const promised = /with `(spent [^`]*)`/.exec(readText('docs/budgets.md'))?.[1];
  expect(run.stdout.trimEnd().split('\n').at(-2)).toBe(promised);
});

test('a dry run says what may be spent, as it is with --max-cost, of one Spec and of all', async () => {
  const project = await paid({ budget: 'run-cost = 20\nspec-cost = 5\nissue-tokens = 100000\nissue-time = "2h"' });
  for (const target of ['s1', 'docs/specs']) {
    const dry = (...more: readonly string[]) =>
      unchangedBy(project, () => project.giro(['implement', target, '--dry-run', ...more]));
    expect((await dry('--max-cost', '7')).stdout).toContain(
      'an Issue at most 100.0k tokens, 2h; a Spec at most $5.00; the run at most $7.00',
    );
    const json: unknown = JSON.parse((await dry('--json')).stdout);
    expect(json).toMatchObject({ budget: { run: { costUsd: 20 }, spec: { costUsd: 5 }, issue: { tokens: 100_000 } } });
  }
});

test('the budget of an Issue stops before the attempt that could exceed it; running again begins it anew', async () => {
  const project = await paid({ budget: 'attempts = 5\nissue-cost = 0.70', verify: 'test = "false"' });
  const run = await project.implement();
  expect(run.code).toBe(2);
  // Two attempts at $0.31: a third would make it $0.93.
  expect(await callsIn(project)).toBe(2);
  expect(eventsOf(run, 'issue.escalated')[0]?.cause).toBe('budget-spent');
  const history = await project.issueFile('01-a');
  expect(history).toContain(
    '[budget] issue-cost is reached: $0.62 of $0.70 spent, and the next call is counted at $0.31',
  );
  expect((await project.implement()).code).toBe(2);
  expect(await callsIn(project)).toBe(4);
  expect(await project.issueFile('01-a')).toContain('run again; the budget begins anew');
});

test('the limit of a run ends it in order: what is asked is nothing, and the same command goes on', async () => {
  const project = await paid({ issues: { '01-a': {}, '02-b': {}, '03-c': {} }, budget: '', toml: '' });
  const run = await project.implement('--max-cost', '0.7', '-c', '1');
  expect(run.code).toBe(2);
  expect(await callsIn(project)).toBe(2);
  expect(eventsOf(run, 'issue.integrated')).toHaveLength(2);
  expect(eventsOf(run, 'issue.escalated')).toEqual([]);
  const [finished] = eventsOf(run, 'run.finished');
  expect(finished).toMatchObject({ exit: 2, reason: 'stopped' });
  expect(finished?.lines.at(-1)).toBe(
    'stopped: [budget] run-cost is reached: $0.62 of $0.70 spent, and the next call is counted at $0.31; go on with: giro implement s1',
  );
  expect((await project.implement('--max-cost', '0.7')).code).toBe(0);
  expect(await callsIn(project)).toBe(3);
});

test('what runs counts at what it may cost: side by side no more is started than fits', async () => {
  const project = await paid({
    issues: { '01-a': {}, '02-b': {}, '03-c': {}, '04-d': {} },
    budget: 'run-cost = 0.35',
    agent: agentAt(
      0.05,
      'echo 1 > "$GIRO_ISSUE.txt"; touch "$HOME/running.$$"; sleep 0.3; touch "$HOME/beside.$(ls "$HOME"/running.* | wc -l)"; rm "$HOME/running.$$"',
    ),
  });
  expect((await project.implement('-c', '4')).code).toBe(0);
  const most = (await readdir(project.environment['HOME'] ?? '')).filter((name) => name.startsWith('beside.'));
  expect(most.every((name) => Number(name.slice('beside.'.length)) <= 3)).toBe(true);
  expect(most).toContain('beside.3');
});

test('the budget of a Spec asks a person about the Spec, and about none of its Issues', async () => {
  const project = await paid({
    issues: { '01-a': {}, '02-b': {} },
    budget: 'spec-cost = 0.50',
    agent: agentAt(0.31, 'echo 1 > "$GIRO_ISSUE.txt"; sleep 1.2'),
  });
  const run = await project.implement('-c', '1');
  expect(run.code).toBe(2);
  expect(await callsIn(project)).toBe(1);
  expect(eventsOf(run, 'issue.escalated')).toEqual([]);
  expect(eventsOf(run, 'spec.escalated')[0]?.cause).toBe('budget-spent');
  expect(await project.show('giro/s1', 'docs/specs/s1/SPEC.md')).toContain('[budget] spec-cost is reached');
  const again = await project.implement();
  expect(again.code).toBe(0);
  expect(await project.show('giro/s1', 'docs/specs/s1/SPEC.md')).toContain('the budget and the rounds begin anew');
});

test('a judge is not called either when the Issue has no budget left for it; what was found is kept', async () => {
  const project = await paid({
    budget: 'issue-cost = 0.35',
    verify: 'test = "true"\n[verify.review]\nkind = "prompt"\nrubric = "Is it good?"',
  });
  const run = await project.implement();
  expect(run.code).toBe(2);
  expect([await callsIn(project, '.worker.'), await callsIn(project, '.judge.')]).toEqual([1, 0]);
  expect(eventsOf(run, 'issue.escalated')[0]?.cause).toBe('budget-spent');
  const history = await project.issueFile('01-a');
  expect(history).toContain('gate test: pass');
  expect(history).toContain('verdict: stopped');
});

test('a planner is not called when the Spec has no budget left for it', async () => {
  const project = await paid({
    budget: 'spec-cost = 0.40',
    verify: 'test = "true"\n[verify.whole]\nrun = "false"\non = ["spec"]',
  });
  const run = await project.implement();
  expect(run.code).toBe(2);
  expect(eventsOf(run, 'spec.plan.started')).toEqual([]);
  expect(eventsOf(run, 'spec.escalated')[0]?.cause).toBe('budget-spent');
});

test('an unknown cost is no 0: a limit on money with a driver that reports none is refused, unless it is allowed', async () => {
  const project = await makeProject({ issues: { '01-a': {} }, budget: 'issue-cost = 1' });
  const refused = await project.giro(['implement', 's1']);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/giro\.toml:6:\d+/);
  expect(refused.stderr).toContain('the worker driver `command` does not report what a call cost');
  expect(refused.stderr).toContain('reports-cost = true');
  const byOption = await makeProject({ issues: { '01-a': {} }, budget: '' });
  expect((await byOption.giro(['implement', 's1', '--max-cost', '1'])).stderr).toContain('--max-cost cannot hold');
  const allowed = await makeProject({ issues: { '01-a': {} }, budget: 'issue-cost = 1\nunknown-cost = "allow"' });
  expect((await allowed.implement()).code).toBe(0);
  expect(await allowed.issueFile('01-a')).toContain(' · cost unknown · ');
});

test('kill -9 keeps the ledger: what was paid is counted by the next run, and so is what was running', async () => {
  const project = await paid({
    budget: 'attempts = 9\nno-progress = 9\nissue-cost = 1.3',
    verify: 'test = "false"',
    agent: agentAt(
      0.31,
      'echo "$GIRO_ATTEMPT" > "$GIRO_ISSUE.txt"; if [ "$GIRO_ATTEMPT" = 2 ]; then sleep 2; exit 0; fi',
    ),
  });
  const first = project.start(['implement', 's1', '--json']);
  await first.event('attempt.started', (event) => event.attempt === 2);
  while ((await callsIn(project, '.01-a.2.')) === 0) await delay(20);
  first.kill('SIGKILL');
  await first.ended;
  const run = await project.implement();
  expect(run.code).toBe(2);
  // $0.31, one of unknown cost that counts as $0.31, and two more: a fifth would be $1.55.
  expect(eventsOf(run, 'issue.escalated')[0]).toMatchObject({ cause: 'budget-spent', attempts: 4 });
  expect(await project.issueFile('01-a')).toContain('issue-cost is reached: $1.24 of $1.30 spent');
});

test('time: an attempt is ended when the time of its Issue is over, and no other is started', async () => {
  const project = await paid({
    budget: 'attempts = 9\nissue-time = "2s"',
    agent: agentAt(0.31, 'sleep 20'),
  });
  const run = await project.implement();
  expect(run.code).toBe(2);
  expect(await callsIn(project)).toBe(1);
  expect(eventsOf(run, 'attempt.finished')[0]?.ended.kind).toBe('timed-out');
  expect(eventsOf(run, 'issue.escalated')[0]?.question).toContain('[budget] issue-time is reached');
});

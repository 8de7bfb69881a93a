/** Planning and rounds on the built program, as docs/planning.md tells them. */
import { mkdir, readdir, readFile, readlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { blocksOf, readText } from '../docs/markdown.js';
import { eventsOf, makeProject, unchangedBy, type Project, type ProjectSetup } from '../rig/giro.js';

/** An agent that plans by the files `plan-1.json`, `plan-2.json`, ... of the checkout, one a call, and works by default. */
const agent = `
if [ "$GIRO_ROLE" = planner ]; then
  calls=$(($(cat "$CALLS" 2>/dev/null || echo 0) + 1)); echo $calls > "$CALLS"
  cat > "$CALLS.prompt-$calls"
  [ ! -e "$PLANS/plan-$calls.sh" ] || . "$PLANS/plan-$calls.sh"
  cat "$PLANS/plan-$calls.json"
  exit 0
fi
echo "by $GIRO_ISSUE" > "$GIRO_ISSUE.txt"
`;

interface Planned extends Project {
  /** How often the planner was called. */
  calls(): Promise<number>;
  /** What it was told. */
  prompt(call: number): Promise<string>;
}

async function project(
  plans: readonly (object | string)[],
  setup: Partial<ProjectSetup> & { readonly before?: Readonly<Record<number, string>> } = {},
): Promise<Planned> {
  const made = await makeProject({
    issues: {},
    agent,
    toml: '',
    ...setup,
  });
  const folder = join(made.folder, 'plans');
  made.environment['CALLS'] = join(folder, 'calls');
  made.environment['PLANS'] = folder;
  const toml = await readFile(join(made.path, 'giro.toml'), 'utf8');
  await made.write('giro.toml', toml.replace('run = ["./agent.sh"]', 'run = ["./agent.sh"]\nenv = ["CALLS", "PLANS"]'));
  await mkdir(folder, { recursive: true });
  for (const [index, plan] of plans.entries())
    await writeFile(
      join(folder, `plan-${String(index + 1)}.json`),
      typeof plan === 'string' ? plan : JSON.stringify(plan),
    );
  for (const [call, script] of Object.entries(setup.before ?? {}))
    await writeFile(join(folder, `plan-${call}.sh`), script);
  return Object.assign(made, {
    calls: async () => Number((await readFile(join(folder, 'calls'), 'utf8').catch(() => '0')).trim()),
    prompt: (call: number) => readFile(join(folder, `calls.prompt-${String(call)}`), 'utf8'),
  });
}

function plan(...slugs: readonly string[]) {
  return { issues: slugs.map((slug) => ({ slug, title: `The ${slug}`, body: `Do ${slug}.` })) };
}

const cycle = {
  issues: [
    { slug: 'a', title: 'A', body: 'Do a.', 'depends-on': ['b'] },
    { slug: 'b', title: 'B', body: 'Do b.', 'depends-on': ['a'] },
  ],
};

/** A gate of the Spec that wants a file. */
const wants = (file: string) =>
  `test = "true"\n[verify.whole]\nrun = "test -f ${file} || { echo missing: ${file}; false; }"\non = ["spec"]`;

test('the example of docs/planning.md does what the text says', async () => {
  const blocks = blocksOf(readText('docs/planning.md'));
  const block = (start: RegExp) => blocks.find(({ text }) => start.test(text))?.text ?? '';
  const own = await makeProject({ spec: 'greeting', issues: {} });
  await own.write('docs/specs/greeting/SPEC.md', block(/^<!-- docs\/specs\/greeting/));
  await own.write('giro.toml', block(/^\[driver\]/));
  await own.write('agent.sh', block(/^#!\/bin\/sh/), 0o755);
  const run = await own.implement();
  expect(run.code, run.stderr).toBe(0);
  expect(eventsOf(run, 'issue.integrated').map(({ issue }) => issue)).toEqual(['01-readme', '02-program']);
  expect(eventsOf(run, 'spec.validated').map(({ verdict }) => verdict)).toEqual(['fail', 'pass']);
});

describe('a Spec with only a SPEC.md', () => {
  test('is planned, run, fails validate once, grows a gap Issue, passes', async () => {
    const own = await project(
      [
        { issues: [...plan('store').issues, { slug: 'api', title: 'API', body: 'Do it.', 'depends-on': ['store'] }] },
        plan('rest'),
      ],
      {
        verify: wants('03-rest.txt'),
      },
    );
    const run = await unchangedBy(own, () => own.implement());
    expect(run.code, run.stderr).toBe(0);
    expect(
      eventsOf(run, 'spec.planned').map(({ round, issues }) => [round, issues.map(({ id, wave }) => [id, wave])]),
    ).toEqual([
      [
        0,
        [
          ['01-store', 1],
          ['02-api', 2],
        ],
      ],
      [1, [['03-rest', 1]]],
    ]);
    expect(eventsOf(run, 'spec.validated').map(({ verdict }) => verdict)).toEqual(['fail', 'pass']);
    expect(eventsOf(run, 'run.finished')[0]).toMatchObject({ exit: 0, done: 3, total: 3 });
    expect(await own.issueFile('02-api')).toContain('depends-on: [01-store]');
    expect(await own.issueFile('03-rest')).toContain('gap: 1');
    expect(await own.prompt(2)).toContain('missing: 03-rest.txt');
    const story = (await own.git('log', '--first-parent', '--reverse', '--format=%s', 'giro/s1')).split('\n');
    expect(story.slice(1).map((line) => line.replace(/^s1: snapshot.*/, 'snapshot'))).toEqual([
      'snapshot',
      's1: planning',
      's1: plan: 2 Issues',
      '01-store: The store',
      '02-api: API',
      's1: validated, red',
      's1: planning the gaps of round 1',
      's1: plan: 1 gap Issue',
      '03-rest: The rest',
      's1: validated',
    ]);
    const status = await own.giro(['status', 's1']);
    expect(status.stdout).toContain('✔ 03-rest');
    // Planned Issues are not in the checkout: that is no removal.
    const again = await own.implement();
    expect([again.code, await own.calls()]).toEqual([0, 2]);
  });

  test('is planned in a copy of the result that holds nothing but files, and cannot be written', async () => {
    const look =
      'ls -A > "$CALLS.files"; cat docs/specs/s1/SPEC.md docs/specs/s1/issues/*.md > "$CALLS.specs"; touch new 2> "$CALLS.touch" || true';
    const own = await project([plan('a'), plan('b')], { verify: wants('02-b.txt'), before: { 2: look } });
    const run = await own.implement();
    expect(run.code, run.stderr).toBe(0);
    const seen = (name: string) => readFile(join(own.folder, 'plans', `calls.${name}`), 'utf8');
    expect((await seen('files')).split('\n')).toContain('01-a.txt');
    expect(await seen('files')).not.toMatch(/^\.git$/m);
    expect(await seen('specs')).toContain('Do a.');
    expect(await seen('specs')).not.toMatch(/## History|### |phase:|attempt:/);
    if (process.getuid?.() !== 0) expect(await seen('touch')).toContain('denied');
  });

  test('says in a dry run that it would be planned, and by whom', async () => {
    const own = await project([]);
    const { code, stdout } = await own.giro(['implement', 's1', '--dry-run']);
    expect(code).toBe(0);
    expect(stdout.match(/there are no Issues yet: command plans them first/g)).toHaveLength(1);
    expect(await own.calls()).toBe(0);
  });

  test('to which a person adds Issues is not planned', async () => {
    const own = await project([{ questions: ['Which database?'] }]);
    const asked = await own.implement();
    expect(asked.code).toBe(2);
    expect(eventsOf(asked, 'spec.escalated')).toMatchObject([{ cause: 'questions', question: 'Which database?' }]);
    expect((await own.giro(['status', 's1'])).stdout).toContain('asks: Which database?');
    await own.writeIssue('01-mine', {});
    expect((await own.implement()).code).toBe(0);
    expect(await own.calls()).toBe(1);
  });
});

describe('a plan that cannot be one', () => {
  test('goes back once with the reasons, and is then taken', async () => {
    const own = await project([cycle, plan('a')]);
    const run = await own.implement();
    expect(run.code, run.stderr).toBe(0);
    expect(eventsOf(run, 'spec.plan.rejected')[0]?.findings[0]?.message).toBe(
      'the dependencies form a cycle: 01-a -> 02-b -> 01-a',
    );
    expect(await own.prompt(2)).toContain('the dependencies form a cycle');
  });

  test('twice asks a human; running again plans anew', async () => {
    const own = await project([cycle, 'no envelope', cycle, plan('a')]);
    const run = await own.implement();
    expect(run.code).toBe(2);
    expect(eventsOf(run, 'spec.escalated')).toMatchObject([{ cause: 'plan-rejected' }]);
    expect(run.events.at(-1)).toMatchObject({ type: 'run.finished', exit: 2, reason: 'needs-human', total: 0 });
    expect(await own.show('giro/s1', 'docs/specs/s1/SPEC.md')).toMatch(
      /state: needs-human[^]*### Plan 1[^]*### Plan 2[^]*### Escalated · .* · plan-rejected\n[^]*then: giro implement s1/,
    );
    const again = await own.implement();
    expect([again.code, await own.calls()]).toEqual([0, 4]);
    expect(await own.show('giro/s1', 'docs/specs/s1/SPEC.md')).toContain('the budget and the rounds begin anew');
  });

  test('what a model writes stays text', async () => {
    const body = 'Text\n---\nstate: done\n---\n## History\n\n### Attempt 1 · now · x\nverdict: pass\n';
    const own = await project([
      { issues: [{ slug: 'a', title: 'A\n---\nstate: wontfix', body, touches: ['"]\nstate: done'] }] },
    ]);
    const run = await own.implement();
    expect(run.code, run.stderr).toBe(0);
    expect(eventsOf(run, 'attempt.started')).toMatchObject([{ issue: '01-a', attempt: 1 }]);
  });
});

describe('rounds', () => {
  // What it finds differs from round to round.
  const red = `test = "true"\n[verify.whole]\nrun = "ls *.txt; false"\non = ["spec"]`;

  test('end when they are spent', async () => {
    const own = await project([plan('a'), plan('b'), plan('c')], { verify: red, budget: 'attempts = 1\nrounds = 2' });
    const run = await own.implement();
    expect(run.code).toBe(2);
    expect(eventsOf(run, 'spec.escalated')).toMatchObject([{ cause: 'rounds-spent' }]);
    expect([await own.calls(), eventsOf(run, 'issue.integrated').length]).toEqual([2, 2]);
    expect(run.events.at(-1)).toMatchObject({
      lines: expect.arrayContaining([expect.stringMatching(/^validate: /)]) as unknown,
    });
  });

  test('end early when two of them find the same', async () => {
    const own = await project([plan('a'), plan('b'), plan('c')], {
      verify: wants('never.txt'),
      budget: 'attempts = 1\nrounds = 9',
    });
    const run = await own.implement();
    expect(run.code).toBe(2);
    expect(eventsOf(run, 'spec.escalated')).toMatchObject([{ cause: 'same-findings' }]);
    expect(await own.calls()).toBe(2);
  });

  test('a gate that cannot run here is nobody’s gap', async () => {
    const verify = 'test = "true"\n[verify.whole]\nrun = "no-such-program-here"\non = ["spec"]';
    const own = await project([plan('a')], { verify });
    const run = await own.implement();
    expect(run.code).toBe(2);
    expect(eventsOf(run, 'spec.escalated')).toMatchObject([{ cause: 'cannot-run-here' }]);
    expect(await own.calls()).toBe(1);
  });
});

describe('killed with kill -9', () => {
  test('while it plans: the plan counts, and the same command goes on', async () => {
    const own = await project(['', plan('a')], { before: { 1: 'exec sleep 60' } });
    const first = own.start(['implement', 's1', '--json']);
    await first.event('spec.plan.started');
    await waitFor(async () => (await own.calls()) === 1);
    first.kill('SIGKILL');
    await first.ended;
    await endBelow(own.folder);
    const run = await own.implement();
    expect(run.code, run.stderr).toBe(0);
    expect(await own.calls()).toBe(2);
    expect(await own.show('giro/s1', 'docs/specs/s1/SPEC.md')).toMatch(/### Plan 1 [^]*### Plan 2 [^]*verdict: pass/);
  });

  test('twice: a human is asked instead of paying for ever', async () => {
    const own = await project(['', '', plan('a')], { before: { 1: 'exec sleep 60', 2: 'exec sleep 60' } });
    for (const call of [1, 2]) {
      const run = own.start(['implement', 's1', '--json']);
      await waitFor(async () => (await own.calls()) === call);
      run.kill('SIGKILL');
      await run.ended;
      await endBelow(own.folder);
    }
    const run = await own.implement();
    expect(run.code).toBe(2);
    expect(eventsOf(run, 'spec.escalated')).toMatchObject([{ cause: 'plan-rejected' }]);
    expect(await own.calls()).toBe(2);
  });

  test('when the plan is written: it is not paid for again', async () => {
    const own = await project([plan('a'), plan('never')]);
    const first = own.start(['implement', 's1', '--json']);
    await first.event('spec.planned');
    first.kill('SIGKILL');
    await first.ended;
    await endBelow(own.folder);
    const run = await own.implement();
    expect(run.code, run.stderr).toBe(0);
    expect(await own.calls()).toBe(1);
  });

  test('after a red validation: its gaps are planned, the gates are not asked again', async () => {
    const own = await project([plan('a'), '', plan('b')], {
      verify: 'test = "true"\n[verify.whole]\nrun = "echo x >> $LOG; test -f 02-b.txt"\non = ["spec"]\nenv = ["LOG"]',
      before: { 2: 'exec sleep 60' },
    });
    const log = join(own.folder, 'validations');
    own.environment['LOG'] = log;
    const first = own.start(['implement', 's1', '--json']);
    await waitFor(async () => (await own.calls()) === 2);
    first.kill('SIGKILL');
    await first.ended;
    await endBelow(own.folder);
    const run = await own.implement();
    expect(run.code, run.stderr).toBe(0);
    // A red is looked at twice.
    expect((await readFile(log, 'utf8')).length).toBe('x\n'.repeat(3).length);
  });
});

test('a planner that cannot work is tried again, and counts as no plan', async () => {
  const own = await project(['', plan('a')], {
    before: { 1: 'echo \'{"status": "unavailable", "reason": "network"}\'; exit 75' },
  });
  const run = await own.implement();
  expect(run.code, run.stderr).toBe(0);
  expect(eventsOf(run, 'spec.plan.retrying')).toMatchObject([{ failures: 1 }]);
});

/** Agents of a killed giro live on: this ends those of the test. */
async function endBelow(folder: string): Promise<void> {
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) continue;
    const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => '');
    if (cwd.startsWith(`${folder}/`)) process.kill(Number(pid), 'SIGKILL');
  }
}

async function waitFor(holds: () => Promise<boolean>): Promise<void> {
  for (let wait = 0; wait < 600; wait += 1) {
    if (await holds()) return;
    await delay(25);
  }
  throw new Error('it never held');
}

import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { BacklogResult, Event } from '../../src/event.js';
import { blocksOf, readText } from '../docs/markdown.js';
import { eventsOf, makeProject, unchangedBy, type GiroRun, type Project, type ProjectSetup } from '../rig/giro.js';

interface SpecSetup {
  /** Lines of frontmatter beside `state: draft`. */
  readonly frontmatter?: string;
  readonly issues: readonly string[];
}

/** A project of several Specs; the agent adds a file named after its Spec and Issue, unless told otherwise. */
async function makeBacklog(
  specs: Readonly<Record<string, SpecSetup>>,
  more: Omit<Partial<ProjectSetup>, 'issues' | 'spec'> = {},
): Promise<Project> {
  const [first = '', ...rest] = Object.keys(specs);
  const issuesOf = (name: string): Record<string, object> =>
    Object.fromEntries((specs[name]?.issues ?? []).map((id) => [id, {}]));
  const agent = 'echo "by $GIRO_SPEC" > "$GIRO_SPEC-$GIRO_ISSUE.txt"\n';
  const project = await makeProject({ agent, ...more, spec: first, issues: issuesOf(first) });
  for (const name of [first, ...rest]) {
    const own = specs[name]?.frontmatter ?? '';
    await project.write(
      `docs/specs/${name}/SPEC.md`,
      `---\nstate: draft\n${own === '' ? '' : `${own}\n`}---\n# Spec ${name}\n\nWhat is wanted.\n`,
    );
    for (const id of specs[name]?.issues ?? [])
      await project.write(`docs/specs/${name}/issues/${id}.md`, `---\nstate: ready\n---\n# Issue ${id}\n\nDo ${id}.\n`);
  }
  return project;
}

const night = (project: Project, ...args: readonly string[]): Promise<GiroRun> =>
  project.giro(['implement', 'docs/specs', '--json', ...args]);

function results(run: GiroRun): Record<string, BacklogResult['result']> {
  const [finished] = eventsOf(run, 'backlog.finished');
  return Object.fromEntries((finished?.specs ?? []).map(({ spec, result }) => [spec, result]));
}

const startsOf = (run: GiroRun): readonly string[] => eventsOf(run, 'run.started').map(({ spec }) => spec);

test('Specs run by value in one limit, each with its own events, and all proved is exit 0', async () => {
  const project = await makeBacklog({
    low: { frontmatter: 'value: 1', issues: ['01-a'] },
    none: { issues: ['01-a'] },
    high: { frontmatter: 'value: 10', issues: ['01-a'] },
  });
  const run = await unchangedBy(project, () => night(project, '--concurrency', '1'));
  expect(run.stderr).toBe('');
  expect(run.code).toBe(0);
  expect(startsOf(run)).toEqual(['high', 'low', 'none']);
  expect(results(run)).toEqual({ high: 'proved', low: 'proved', none: 'proved' });
  const of = (event: Event): unknown => event.spec ?? null;
  expect(run.events.filter((event) => of(event) === null).map(({ type }) => type)).toEqual([
    'backlog.started',
    'backlog.finished',
  ]);
  const started = eventsOf(run, 'attempt.started').map(({ spec }) => spec);
  expect(started).toEqual(['high', 'low', 'none']);

  const again = await night(project);
  expect(again.code).toBe(0);
  expect(startsOf(again)).toEqual([]);
  expect(eventsOf(again, 'backlog.finished')[0]?.lines.at(-1)).toBe('proof: 3 of 3 Specs proved');
});

test('one that needs a human stops only what depends on it, and is not entered again until it is answered', async () => {
  const project = await makeBacklog(
    {
      base: { issues: ['01-a'] },
      stuck: { frontmatter: 'value: 9', issues: ['01-a'] },
      after: { frontmatter: 'depends-on: [stuck]', issues: ['01-a'] },
      later: { frontmatter: 'depends-on: [after]', issues: ['01-a'] },
    },
    {
      agent: 'if [ "$GIRO_SPEC" = stuck ]; then exit 0; fi\necho "by $GIRO_SPEC" > "$GIRO_SPEC-$GIRO_ISSUE.txt"\n',
      budget: 'attempts = 1\nattempt-timeout = "60s"',
    },
  );
  const run = await night(project);
  expect(run.code).toBe(2);
  expect(results(run)).toEqual({ base: 'proved', stuck: 'needs-human', after: 'not-started', later: 'not-started' });
  const why = (name: string): string | undefined =>
    eventsOf(run, 'backlog.finished')[0]?.specs.find(({ spec }) => spec === name)?.why;
  expect(why('later')).toBe('waits for stuck, which needs a human');
  expect(await project.show('giro/after', 'docs/specs/after/SPEC.md')).toBeNull();

  const again = await night(project);
  expect(again.code).toBe(2);
  expect(startsOf(again)).toEqual([]);
  expect(eventsOf(again, 'attempt.started')).toEqual([]);
  expect(eventsOf(again, 'backlog.started')[0]?.specs.find(({ spec }) => spec === 'stuck')?.plan).toBe('asking');

  await project.write(
    'docs/specs/stuck/issues/01-a.md',
    '---\nstate: ready\n---\n# Issue 01-a\n\nNow with the answer.\n',
  );
  const third = await night(project);
  expect(startsOf(third)).toEqual(['stuck']);
});

test('what depends on others starts at their proven tips, and what comes along is said', async () => {
  const project = await makeBacklog({
    store: { issues: ['01-a'] },
    mail: { issues: ['01-a'] },
    auth: { frontmatter: 'depends-on: [store]', issues: ['01-a'] },
    shop: { frontmatter: 'depends-on: [mail, auth]', issues: ['01-a'] },
  });
  const run = await unchangedBy(project, () => night(project));
  expect(run.stderr).toBe('');
  expect(results(run)).toEqual({ mail: 'proved', store: 'proved', auth: 'proved', shop: 'proved' });
  const started = (name: string) => eventsOf(run, 'run.started').find(({ spec }) => spec === name);
  expect(started('store')?.base).toBe(await project.git('rev-parse', 'HEAD'));
  expect(started('auth')?.base).toBe(await project.git('rev-parse', 'giro/store'));
  expect(started('shop')?.base).toBe(await project.git('rev-parse', 'giro/mail'));
  for (const file of ['store', 'mail', 'auth', 'shop'])
    expect(await project.show('giro/shop', `${file}-01-a.txt`)).toBe(`by ${file}`);
  expect(await project.git('log', '--first-parent', '--format=%s', 'giro/shop')).toContain(
    'shop: takes along giro/auth',
  );
  const said = eventsOf(run, 'run.notice').filter(({ spec }) => spec === 'shop');
  expect(said.map(({ message }) => message).join('\n')).toContain('auth-01-a.txt, store-01-a.txt come along');
  // giro's own records of the others are on the branch too, and the gates do not see them.
  expect(await project.show('giro/shop', 'docs/specs/store/SPEC.md')).toContain('state: done');
  const proof = await project.giro(['proof', 'shop', '--rerun']);
  expect(proof.code, proof.stdout).toBe(0);

  const again = await night(project);
  expect(again.code).toBe(0);
  expect(startsOf(again)).toEqual([]);
});

test('tips that do not go together ask a human before anything starts; merged by hand, the Spec goes on', async () => {
  const project = await makeBacklog(
    {
      left: { issues: ['01-a'] },
      right: { issues: ['01-a'] },
      both: { frontmatter: 'depends-on: [left, right]', issues: ['01-a'] },
    },
    { agent: 'if [ "$GIRO_SPEC" = both ]; then touch both.txt; else echo "$GIRO_SPEC" > same.txt; fi\n' },
  );
  const run = await night(project);
  expect(run.code).toBe(2);
  expect(results(run)).toEqual({ left: 'proved', right: 'proved', both: 'needs-human' });
  expect(eventsOf(run, 'spec.escalated')).toMatchObject([{ spec: 'both', cause: 'stack-conflict' }]);
  expect(eventsOf(run, 'attempt.started').map(({ spec }) => spec)).not.toContain('both');

  await project.git('worktree', 'add', '-q', '../mend', 'giro/both');
  await project.git('-C', '../mend', 'merge', '-q', '-X', 'ours', '-m', 'together', 'giro/right');
  await project.git('worktree', 'remove', '../mend');
  const again = await night(project);
  expect(results(again)).toMatchObject({ both: 'proved' });
  expect(await project.show('giro/both', 'same.txt')).toBe('left');
});

test('tips that merge and are red together ask a human before an agent is paid; mended by hand, the Spec goes on', async () => {
  const project = await makeBacklog(
    {
      b1: { issues: ['01-a'] },
      b2: { issues: ['01-a'] },
      top: { frontmatter: 'depends-on: [b1, b2]', issues: ['01-a'] },
    },
    {
      agent: 'touch "$HOME/call.$GIRO_SPEC"; echo "by $GIRO_SPEC" > "$GIRO_SPEC.txt"\n',
      verify: 'test = "! test -f b1.txt || ! test -f b2.txt || test -f both.txt"',
    },
  );
  const first = await night(project);
  expect(first.code, first.stderr).toBe(2);
  expect(results(first)).toEqual({ b1: 'proved', b2: 'proved', top: 'needs-human' });
  expect(eventsOf(first, 'spec.escalated')).toMatchObject([{ spec: 'top', cause: 'stack-red' }]);
  expect(await readdir(project.home)).not.toContain('call.top');
  expect((await project.giro(['status', 'top'])).stdout).toContain('giro/b2');
  // As the packet says: merged and mended in a worktree of giro/top.
  const mending = join(project.folder, 'mending');
  await project.git('worktree', 'add', '-q', mending, 'giro/top');
  await project.git('-C', mending, 'merge', '-q', '--no-edit', 'giro/b2');
  await writeFile(join(mending, 'both.txt'), 'they go together\n');
  await project.git('-C', mending, 'add', 'both.txt');
  await project.git('-C', mending, 'commit', '-qm', 'b1 and b2 go together');
  await project.git('worktree', 'remove', mending);
  const again = await night(project);
  expect(again.code, again.stdout + again.stderr).toBe(0);
  expect(await project.show('giro/top', 'top.txt')).toBe('by top');
});

test('the cost limit of a night holds all of its Specs together, and the next night goes on', async () => {
  const project = await makeBacklog(
    { one: { issues: ['01-a', '02-b'] }, three: { issues: ['01-a'] }, two: { issues: ['01-a'] } },
    {
      run: ['./agent.sh'],
      toml: '[driver.paid]\nkind = "command"\nrun = ["./agent.sh"]\nreports-cost = true\n[roles]\nworker = "paid"\nplanner = "paid"\n',
    },
  );
  await project.write(
    'agent.sh',
    '#!/bin/sh\necho "by $GIRO_SPEC" > "$GIRO_SPEC-$GIRO_ISSUE.txt"\necho \'{"status":"done","usage":{"cost-usd":0.4}}\'\n',
    0o755,
  );
  const first = await night(project, '--max-cost', '1.3', '-c', '1');
  expect(first.code, first.stderr).toBe(2);
  expect(eventsOf(first, 'attempt.started')).toHaveLength(3);
  expect(results(first)).toEqual({ one: 'proved', three: 'proved', two: 'unfinished' });
  const [finished] = eventsOf(first, 'backlog.finished');
  expect(finished).toMatchObject({ exit: 2, reason: 'stopped' });
  expect(finished?.lines.slice(-2)).toEqual([
    'spent  $1.20, run-cost $1.20 of $1.30',
    'stopped: [budget] run-cost is reached: $1.20 of $1.30 spent, and the next call is counted at $0.40; 2 of 3 Specs proved, 1 unfinished; go on with: giro implement docs/specs',
  ]);
  const second = await night(project, '--max-cost', '1.3');
  expect([second.code, eventsOf(second, 'attempt.started').length]).toEqual([0, 1]);
});

test('a fix that was left in the worktree of an Issue, without a commit, is an answer too', async () => {
  const project = await makeBacklog(
    { one: { issues: ['01-a'] }, two: { issues: ['01-a'] } },
    {
      agent: 'touch "$HOME/call.$GIRO_SPEC.$GIRO_ATTEMPT"; echo bad > "$GIRO_SPEC.txt"\n',
      budget: 'attempts = 1',
      verify: 'test = "! grep -q bad one.txt two.txt"',
    },
  );
  const first = await night(project);
  expect(results(first)).toEqual({ one: 'needs-human', two: 'needs-human' });
  const worktree = eventsOf(first, 'issue.escalated').find(({ spec }) => spec === 'one')?.worktree ?? '';
  expect(results(await night(project))).toEqual({ one: 'needs-human', two: 'needs-human' });
  await writeFile(join(worktree, 'one.txt'), 'good\n');
  const dry = await unchangedBy(project, () => project.giro(['implement', 'docs/specs', '--dry-run']));
  expect(dry.stdout).toMatch(/one: Spec one {2}\(runs\)\n.*two: Spec two {2}\(still asks/);
  const run = await night(project);
  expect(results(run)).toEqual({ one: 'proved', two: 'needs-human' });
  expect(eventsOf(run, 'attempt.started')).toEqual([]);
  expect(await project.show('giro/one', 'one.txt')).toBe('good');
  expect(await project.show('giro/one', 'docs/specs/one/issues/01-a.md')).toContain(
    'changed by hand in its worktree; the budget begins anew',
  );
});

test('a conflict that an agent left as it was shown is no answer', async () => {
  const project = await makeBacklog(
    { one: { issues: ['01-a', '02-b'] } },
    {
      files: { 'line.txt': 'base\n' },
      agent: [
        'case "$GIRO_ISSUE-$GIRO_ATTEMPT" in',
        '01-a-*) echo a > line.txt ;;',
        '02-b-1) while [ ! -f "$HOME/a-landed" ]; do sleep 0.05; done; echo b > line.txt ;;',
        '*) exit 3 ;;',
        'esac\n',
      ].join('\n'),
      budget: 'attempts = 2',
    },
  );
  const started = project.start(['implement', 'docs/specs', '--json', '-c', '2']);
  await started.event('issue.integrated');
  await writeFile(join(project.home, 'a-landed'), '');
  const first = await started.ended;
  const worktree = eventsOf(first, 'issue.escalated')[0]?.worktree ?? '';
  expect(await readFile(join(worktree, 'line.txt'), 'utf8')).toContain('<<<<<<<');
  expect(eventsOf(await night(project), 'run.started')).toEqual([]);
});

test('a single Spec starts at the proven tip as well, and is refused while there is none', async () => {
  const project = await makeBacklog({
    store: { issues: ['01-a'] },
    auth: { frontmatter: 'depends-on: [store]', issues: ['01-a'] },
  });
  const early = await unchangedBy(project, () => project.giro(['implement', 'auth']));
  expect(early.code).toBe(1);
  expect(early.stderr).toContain('auth depends on store');
  expect((await project.giro(['implement', 'store'])).code).toBe(0);
  // Taken over by the person, and the branch is gone: its proof is in their history.
  await project.git('add', '-A');
  await project.git('commit', '-q', '-m', 'the Specs');
  await project.git('merge', '-q', '-X', 'theirs', '-m', 'takes store', 'giro/store');
  await project.git('branch', '-q', '-D', 'giro/store');
  const run = await project.giro(['implement', 'auth', '--json']);
  expect(run.code).toBe(0);
  expect(eventsOf(run, 'run.started')[0]?.base).toBe(await project.git('rev-parse', 'HEAD'));
  expect(await project.show('giro/auth', 'store-01-a.txt')).toBe('by store');
  expect((await night(project)).code).toBe(0);
});

test('a dependency that a Spec is given after it began is waited for too, and taken along once it is proved', async () => {
  const project = await makeBacklog({ auth: { issues: ['01-a'] }, store: { issues: ['01-a'] } });
  expect((await project.giro(['implement', 'auth'])).code).toBe(0);
  const depends = (on: string) =>
    project.write('docs/specs/auth/SPEC.md', `---\nstate: draft\ndepends-on: [${on}]\n---\n# Spec auth\n\nMore.\n`);
  for (const on of ['store', 'stroe']) {
    await depends(on);
    const early = await unchangedBy(project, () => project.giro(['implement', 'auth']));
    expect([early.code, early.stderr]).toEqual([1, expect.stringContaining(`auth depends on ${on}`)]);
  }
  await depends('store');
  expect((await project.giro(['implement', 'store'])).code).toBe(0);
  const run = await project.giro(['implement', 'auth', '--json']);
  expect(run.code, run.stderr).toBe(0);
  expect(await project.show('giro/auth', 'store-01-a.txt')).toBe('by store');
});

test('unknown names and circles are refused before anything starts; a wrong file only stops its own Spec', async () => {
  const project = await makeBacklog({
    store: { issues: ['01-a'] },
    auth: { frontmatter: 'depends-on: [stor]', issues: ['01-a'] },
  });
  const unknown = await unchangedBy(project, () => night(project));
  expect(unknown.code).toBe(1);
  expect(unknown.stderr).toContain('docs/specs/auth/SPEC.md:3:');
  expect(unknown.stderr).toContain('did you mean store?');

  const spec = (on: string): string => `---\nstate: draft\ndepends-on: [${on}]\n---\n# S\n\nX.\n`;
  await project.write('docs/specs/auth/SPEC.md', spec('store'));
  await project.write('docs/specs/store/SPEC.md', spec('auth'));
  const circle = await unchangedBy(project, () => night(project));
  expect(circle.code).toBe(1);
  expect(circle.stderr).toContain('auth -> store -> auth');

  await project.write('docs/specs/store/SPEC.md', '---\nstate: draft\n---\n# S\n\nX.\n');
  await project.write('docs/specs/auth/SPEC.md', '---\nstate: nonsense\n---\n# S\n\nX.\n');
  const wrong = await night(project);
  expect(wrong.code).toBe(1);
  expect(results(wrong)).toEqual({ auth: 'failed', store: 'proved' });
});

test('at the deadline the run stops in order, and says what is proved, cut off and not started', async () => {
  const project = await makeBacklog(
    {
      quick: { frontmatter: 'value: 9', issues: ['01-a'] },
      slow: { frontmatter: 'value: 5', issues: ['01-a', '02-b'] },
      never: { issues: ['01-a'] },
    },
    {
      agent: 'echo "by $GIRO_SPEC" > "$GIRO_SPEC-$GIRO_ISSUE.txt"\nif [ "$GIRO_SPEC" = slow ]; then sleep 300; fi\n',
    },
  );
  const started = Date.now();
  const run = await unchangedBy(project, () => night(project, '--for', '8s', '--concurrency', '1'));
  expect(Date.now() - started).toBeLessThan(60_000);
  expect([run.code, run.signal]).toEqual([2, null]);
  expect(results(run)).toEqual({ quick: 'proved', slow: 'unfinished', never: 'not-started' });
  const [finished] = eventsOf(run, 'backlog.finished');
  expect(finished?.reason).toBe('stopped');
  expect(finished?.lines.at(-1)).toContain('the deadline (--for 8s) ended it');
  const lines = eventsOf(run, 'run.finished').find(({ spec }) => spec === 'slow')?.lines ?? [];
  const tip = (await project.git('rev-parse', '--short=7', 'giro-issue/slow/01-a')).trim();
  expect(lines.join('\n')).toContain('abandoned    01-a: attempt 1 was cut off');
  expect(lines.join('\n')).toContain(`giro-issue/slow/01-a at ${tip}`);
  expect(lines).toContain('not started  02-b');
  expect(await project.show('giro-issue/slow/01-a', 'slow-01-a.txt')).toBe('by slow');
  expect(await project.git('branch', '--list', 'giro/never')).toBe('');

  for (const bad of [
    ['--until', '25:00'],
    ['--for', 'soon'],
    ['--until', '07:00', '--for', '6h'],
  ]) {
    const refused = await unchangedBy(project, () => project.giro(['implement', 'slow', ...bad], { cwd: '/' }));
    expect([refused.code, refused.stdout], bad.join(' ')).toEqual([1, '']);
    expect(refused.stderr).not.toContain('repository');
  }
});

test('what is finished still lands while no agent is started any more', async () => {
  // The gate is slow, so after the first landing half of the time is kept: the second agent is never started.
  const project = await makeBacklog(
    { only: { issues: ['01-a', '02-b'] } },
    { agent: 'sleep 6\necho "by $GIRO_SPEC" > a.txt\n', verify: 'test = "sleep 5"' },
  );
  await project.writeIssue('02-b', { frontmatter: 'depends-on: [01]' });
  const run = await project.giro(['implement', 'only', '--json', '--for', '20s', '--concurrency', '1']);
  expect(run.code).toBe(2);
  expect(eventsOf(run, 'issue.integrated').map(({ issue }) => issue)).toEqual(['01-a']);
  expect(eventsOf(run, 'run.stopping')).toEqual([]);
  const lines = eventsOf(run, 'run.finished')[0]?.lines ?? [];
  expect(lines).toContain('not started  02-b');
  expect(lines.at(-1)).toContain('the deadline (--for 20s) ended it');
});

test('the example of docs/backlog.md does what the text says', async () => {
  const blocks = blocksOf(readText('docs/backlog.md'));
  const block = (part: string) => blocks.find(({ text }) => text.includes(part))?.text ?? '';
  const project = await makeProject({ spec: 'store', issues: {} });
  await project.write('docs/specs/store/SPEC.md', block('docs/specs/store/SPEC.md'));
  await project.write('docs/specs/greet/SPEC.md', block('docs/specs/greet/SPEC.md'));
  await project.write('docs/specs/store/issues/01-file.md', block('docs/specs/store/issues/'));
  await project.write('docs/specs/greet/issues/01-say.md', block('docs/specs/store/issues/'));
  await project.write('giro.toml', block('[verify]'));
  await project.write('agent.sh', block('#!/bin/sh'), 0o755);
  const dry = await unchangedBy(project, () => project.giro(['implement', 'docs/specs', '--dry-run']));
  expect(dry.stdout).toMatch(/1 {2}store: Keep greetings .*\n.*2 {2}greet: Greet people {2}\(after store, value 10\)/);
  const run = await night(project);
  expect(run.code, run.stderr).toBe(0);
  expect(await project.show('giro/greet', 'store.txt')).toBe('by store');
  expect(await project.show('giro/greet', 'greet.txt')).toBe('by greet');
});

test('a Spec that somebody else runs is reported and skipped; the others run, what depends on it does not', async () => {
  const project = await makeBacklog(
    {
      taken: { issues: ['01-a'] },
      free: { issues: ['01-a'] },
      after: { frontmatter: 'depends-on: [taken]', issues: ['01-a'] },
    },
    { agent: 'if [ "$GIRO_SPEC" = taken ]; then sleep 300; fi\necho "by $GIRO_SPEC" > "$GIRO_SPEC.txt"\n' },
  );
  const other = project.start(['implement', 'taken', '--json']);
  await other.event('attempt.started');
  const run = await night(project);
  expect(run.code).toBe(1);
  expect(results(run)).toEqual({ after: 'not-started', free: 'proved', taken: 'failed' });
  expect(run.stderr).toContain('giro is already running on taken');
  const [finished] = eventsOf(run, 'backlog.finished');
  expect(finished?.specs.find(({ spec }) => spec === 'after')?.why).toBe('waits for taken, which could not be run');
  other.kill('SIGINT');
  expect((await other.ended).signal).toBe('SIGINT');
});

test('all Specs together never have more agents at work than the limit', async () => {
  const issues = ['01-a', '02-b', '03-c'];
  const project = await makeBacklog({ one: { issues }, two: { issues }, three: { issues } });
  const counts = join(project.folder, 'counts');
  await mkdir(join(project.folder, 'at-work'));
  const agent = `me=${project.folder}/at-work/$GIRO_SPEC-$GIRO_ISSUE
touch "$me"; ls ${project.folder}/at-work | wc -l >> ${counts}; sleep 0.3; rm "$me"
echo "by $GIRO_SPEC" > "$GIRO_SPEC-$GIRO_ISSUE.txt"\n`;
  await project.write('agent.sh', `#!/bin/sh\nset -e\n${agent}`, 0o755);
  const run = await night(project, '--concurrency', '2');
  expect(run.code, run.stderr).toBe(0);
  const seen = (await readFile(counts, 'utf8')).trim().split(/\s+/).map(Number);
  expect(seen).toHaveLength(9);
  expect(Math.max(...seen)).toBe(2);
});

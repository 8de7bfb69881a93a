/** `giro stop` and `STOP` files on the built program. */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Event } from '../../src/event.js';
import { makeBarrier, makeBell } from '../rig/fifo.js';
import {
  eventsOf,
  makeProject,
  unchangedBy,
  type GiroProcess,
  type GiroRun,
  type Project,
  type ProjectSetup,
} from '../rig/giro.js';

/** Leaves something, says that it is there, and works on until the test lets it go. */
const patient = [
  'echo partial > "$GIRO_ISSUE.part"',
  'echo x >> "$HOME/ready"',
  ': < "$HOME/go"',
  'echo x > "$GIRO_ISSUE.txt"',
  '',
].join('\n');

const machineFolder = (project: Project): string => join(project.path, '.git', 'giro');

/** A project of patient agents. */
interface PatientProject extends Project {
  /** Waits until so many agents have begun to work. */
  readonly ready: (count: number) => Promise<unknown>;
  /** Lets those that work and all later ones come to their end. */
  readonly letGo: () => Promise<void>;
}

async function patientProject(setup: Partial<ProjectSetup> = {}): Promise<PatientProject> {
  const project = await makeProject({ issues: { '01-a': {}, '02-b': {} }, agent: patient, ...setup });
  const bell = await makeBell(join(project.home, 'ready'));
  const barrier = await makeBarrier(join(project.home, 'go'));
  return Object.assign(project, { ready: bell.rung, letGo: barrier.open });
}

/** Adds one more Spec with one Issue. */
async function addSpec(project: Project, name: string, frontmatter = ''): Promise<void> {
  await project.write(
    `docs/specs/${name}/SPEC.md`,
    `---\nstate: draft\n${frontmatter}---\n# Spec ${name}\n\nWanted.\n`,
  );
  await project.write(`docs/specs/${name}/issues/01-a.md`, '---\nstate: ready\n---\n# Issue\n\nDo it.\n');
}

const lastLine = (run: GiroRun): string | undefined =>
  (eventsOf(run, 'backlog.finished')[0] ?? eventsOf(run, 'run.finished').at(-1))?.lines.at(-1);

/** Nothing but what is for ever may be left: no lock, no request. */
async function expectNothingHeld(project: Project): Promise<void> {
  expect(await readdir(join(machineFolder(project), 'locks'))).toEqual([]);
}

async function startAt(project: Project, type: Event['type'], ...args: readonly string[]): Promise<GiroProcess> {
  const running = project.start(['implement', ...(args.length === 0 ? ['s1'] : args), '--json']);
  await running.event(type);
  return running;
}

describe('giro stop', () => {
  test('ends a run in good order from any worktree, says so, and the same command goes on', async () => {
    const project = await patientProject();
    const linked = join(project.folder, 'linked');
    await project.git('worktree', 'add', '-q', linked);
    const running = await startAt(project, 'attempt.started');
    await project.ready(2);
    const before = await project.git('for-each-ref', 'refs/heads/main');
    const stop = await project.giro(['stop'], { cwd: linked });
    expect([stop.code, stop.stderr]).toEqual([0, '']);
    expect(stop.stdout).toMatch(
      /^asked s1 to stop: process \d+ on .*\nstopped s1 after .*; go on with: giro implement s1\n$/,
    );
    expect(stop.stdout).toContain(`process ${String(running.pid)} on`);

    const run = await running.ended;
    expect([run.code, run.signal, run.stderr]).toEqual([2, null, '']);
    expect(lastLine(run)).toBe('stopped: giro stop ended it; go on with: giro implement s1');
    expect(eventsOf(run, 'run.stopping')).toMatchObject([
      { by: 'stop-command', reason: 'giro stop ended it: no new work; agents are ended, state is saved' },
    ]);
    expect(eventsOf(run, 'run.finished')[0]).toMatchObject({ exit: 2, reason: 'stopped' });
    await expectNothingHeld(project);
    expect(await project.issueFile('01-a', 'giro-issue/s1/01-a')).toContain('verdict: stopped');
    expect(await project.show('giro-issue/s1/02-b', '02-b.part')).toBe('partial');
    expect(await project.git('for-each-ref', 'refs/heads/main')).toBe(before);

    const again = await project.giro(['stop']);
    expect([again.code, again.stdout]).toEqual([0, 'nothing runs here, there is nothing to stop\n']);
    await project.letGo();
    expect((await project.implement()).code).toBe(0);
    expect(await project.show('giro/s1', '01-a.part')).toBe('partial');
  });

  test('stops the Spec that is named and no other; without a name, all', async () => {
    const project = await patientProject();
    await addSpec(project, 's2');
    await addSpec(project, 's3');
    const runs = await Promise.all(['s1', 's2', 's3'].map((spec) => startAt(project, 'attempt.started', spec)));
    await project.ready(4);
    const one = await project.giro(['stop', 'docs/specs/s2', '--json']);
    expect(one.code).toBe(0);
    expect(JSON.parse(one.stdout)).toMatchObject({
      engines: [{ spec: 's2', specs: [], pid: runs[1]?.pid, outcome: 'stopped' }],
    });
    expect((await runs[1]?.ended)?.code).toBe(2);
    expect([runs[0]?.child.exitCode, runs[2]?.child.exitCode]).toEqual([null, null]);

    const all = await project.giro(['stop']);
    expect(all.code).toBe(0);
    expect(all.stdout.match(/^stopped s[13] after /gm)).toHaveLength(2);
    for (const run of [runs[0], runs[2]]) expect((await run?.ended)?.code).toBe(2);
    await expectNothingHeld(project);
  });

  test('refuses what it cannot stop, with what to type instead', async () => {
    const project = await patientProject();
    const unknown = await project.giro(['stop', 'nosuch']);
    expect([unknown.code, unknown.stderr]).toEqual([1, 'giro: there is no Spec "nosuch"\n  see them: giro status\n']);
    const issue = await project.giro(['stop', 's1/01']);
    expect([issue.code, issue.stderr]).toMatchObject([1, expect.stringContaining('giro stop s1')]);
    const nothing = await unchangedBy(project, () => project.giro(['stop', 's1']));
    expect([nothing.code, nothing.stdout]).toEqual([0, 'nothing runs on s1\n']);
    const outside = await project.giro(['stop'], { cwd: project.home });
    expect(outside.code).toBe(1);
  });

  test('with --now leaves agents no grace, and all is saved all the same', async () => {
    const project = await patientProject({ agent: `trap "" TERM INT\n${patient}`, issues: { '01-a': {} } });
    const policy = await readFile(join(project.path, 'giro.toml'), 'utf8');
    await project.write('giro.toml', policy.replace('grace = "1s"', 'grace = "5m"'));
    const running = await startAt(project, 'attempt.started');
    await project.ready(1);
    const patience = await project.giro(['stop', '--wait', '1s']);
    expect(patience.code).toBe(1);
    expect(patience.stderr).toMatch(/s1 has not ended after 1\.\d s: it is ending its agents and saving state/);
    expect(patience.stderr).toContain('giro stop s1 --now');
    const status = await project.giro(['status', 's1']);
    expect(status.stdout).toMatch(/^stopping since .*: giro stop ended it$/m);

    const stop = await project.giro(['stop', '--now']);
    expect([stop.code, stop.stderr]).toEqual([0, '']);
    const run = await running.ended;
    expect([run.code, run.signal]).toEqual([2, null]);
    expect(lastLine(run)).toBe('stopped: giro stop ended it; go on with: giro implement s1');
    expect(await project.show('giro-issue/s1/01-a', '01-a.part')).toBe('partial');
    await expectNothingHeld(project);
  });

  test('says that a suspended giro does not answer; --now wakes it, and it ends in good order', async () => {
    const project = await patientProject({ issues: { '01-a': {} } });
    const running = await startAt(project, 'attempt.started');
    await project.ready(1);
    running.kill('SIGSTOP');
    const stop = await project.giro(['stop', 's1', '--wait', '1s']);
    expect(stop.code).toBe(1);
    expect(stop.stderr).toMatch(/process \d+ on \S+ does not answer, it may be suspended\n.*giro stop s1 --now/);
    const status = JSON.parse((await project.giro(['status', 's1', '--json'])).stdout) as { running: unknown };
    expect(status.running).toMatchObject({ pid: running.pid, stopping: { since: expect.any(String) as string } });
    expect((await project.giro(['status', 's1'])).stdout).toMatch(/^asked to stop at .*, not answered yet$/m);
    expect((await project.giro(['stop', '--now'])).code).toBe(0);
    const run = await running.ended;
    expect([run.code, run.signal]).toEqual([2, null]);
    await expectNothingHeld(project);
  });
});

test('giro stop ends what a giro that was killed left running, and the next run takes up what it left', async () => {
  const project = await patientProject({ issues: { '01-a': {} } });
  const running = await startAt(project, 'attempt.started');
  await project.ready(1);
  running.kill('SIGKILL');
  await running.ended;
  const other = await project.giro(['stop', 's1', '--json']);
  expect(other.code).toBe(0);
  expect(JSON.parse(other.stdout)).toMatchObject({ engines: [], left: { withstood: [] } });
  expect(other.stdout).toContain('"startedFor":"the agent of 01-a, attempt 1"');
  expect((await project.giro(['stop'])).stdout).toBe('nothing runs here, there is nothing to stop\n');
  expect((await project.giro(['status', 's1'])).stdout).not.toContain('left running');
  await project.letGo();
  const run = await project.implement();
  expect(run.code).toBe(0);
  expect(eventsOf(run, 'run.notice').filter(({ message }) => message.includes('ended now'))).toEqual([]);
});

describe('a backlog', () => {
  test('is stopped as a whole, with what it is at', async () => {
    const project = await patientProject({ issues: { '01-a': {} } });
    await addSpec(project, 's2');
    const running = await startAt(project, 'attempt.started', 'docs/specs');
    await project.ready(2);
    const stop = await project.giro(['stop', 'docs/specs']);
    expect(stop.code).toBe(0);
    expect(stop.stdout).toContain('stopped the backlog (s1, s2) after ');
    const run = await running.ended;
    expect(run.code).toBe(2);
    expect(eventsOf(run, 'run.stopping')).toMatchObject([{ by: 'stop-command' }]);
    expect(eventsOf(run, 'backlog.finished')[0]?.reason).toBe('stopped');
    expect(lastLine(run)).toBe(
      'stopped: giro stop ended it; 0 of 2 Specs proved, 2 unfinished; go on with: giro implement docs/specs',
    );
    await expectNothingHeld(project);
  });

  test('goes on without a Spec that is stopped alone, also at once; what depends on it waits', async () => {
    const project = await patientProject({
      issues: { '01-a': {} },
      agent: `if [ "$GIRO_SPEC" = s1 ]; then trap "" TERM; fi\n${patient}echo x > "$GIRO_SPEC.txt"\n`,
    });
    const policy = await readFile(join(project.path, 'giro.toml'), 'utf8');
    await project.write('giro.toml', policy.replace('grace = "1s"', 'grace = "5m"'));
    await addSpec(project, 's2');
    await addSpec(project, 's3', 'depends-on: [s1]\n');
    const running = await startAt(project, 'attempt.started', 'docs/specs');
    await project.ready(2);
    const early = await project.giro(['stop', 's3']);
    expect([early.code, early.stdout]).toMatchObject([
      0,
      expect.stringMatching(/nothing runs on s3; a backlog runs .*STOP\.s3'/),
    ]);
    const stop = await project.giro(['stop', 's1', '--now']);
    expect([stop.code, stop.stderr]).toEqual([0, '']);
    expect(running.child.exitCode).toBeNull();
    await project.letGo();
    const run = await running.ended;
    expect(run.code).toBe(2);
    const [finished] = eventsOf(run, 'backlog.finished');
    expect(Object.fromEntries((finished?.specs ?? []).map(({ spec, result }) => [spec, result]))).toEqual({
      s1: 'unfinished',
      s2: 'proved',
      s3: 'not-started',
    });
    expect(finished?.specs.find(({ spec }) => spec === 's1')?.why).toContain('giro stop ended it; 0 of 1');
    expect(lastLine(run)).toBe(
      'stopped: giro stop ended s1; 1 of 3 Specs proved, 1 unfinished, 1 not started; go on with: giro implement docs/specs',
    );
    expect(eventsOf(run, 'run.stopping')).toMatchObject([{ spec: 's1', by: 'stop-command' }]);
    await expectNothingHeld(project);
    const again = await project.giro(['implement', 'docs/specs', '--json']);
    expect([again.code, lastLine(again)]).toEqual([0, 'proof: 3 of 3 Specs proved']);
  });
});

describe('whatever a run is at, a stop ends it and the same command goes on', () => {
  test('planning', async () => {
    const plan = JSON.stringify({ issues: [{ slug: 'a', title: 'A', body: 'Do a.' }] });
    const agent = `if [ "$GIRO_ROLE" = planner ]; then echo x >> "$HOME/ready"; : < "$HOME/go"; echo '${plan}'; exit 0; fi\necho x > a.txt\n`;
    const project = await patientProject({ issues: {}, agent });
    const running = await startAt(project, 'spec.plan.started');
    await project.ready(1);
    expect((await project.giro(['stop', 's1'])).code).toBe(0);
    const run = await running.ended;
    expect([run.code, lastLine(run)]).toEqual([2, 'stopped: giro stop ended it; go on with: giro implement s1']);
    await project.letGo();
    expect((await project.implement()).code).toBe(0);
  });

  test('judging: no agent is paid again', async () => {
    const project = await patientProject({
      issues: { '01-a': {} },
      agent: 'echo x > 01-a.txt\n',
      verify: 'test = \'[ ! -f 01-a.txt ] || { echo x >> "$HOME/ready"; : < "$HOME/go"; }\'',
    });
    const running = await startAt(project, 'attempt.finished');
    await project.ready(1);
    expect((await project.giro(['stop', 's1'])).code).toBe(0);
    const run = await running.ended;
    expect([run.code, lastLine(run)]).toEqual([2, 'stopped: giro stop ended it; go on with: giro implement s1']);
    await project.letGo();
    const again = await project.implement();
    expect([again.code, eventsOf(again, 'attempt.started')]).toEqual([0, []]);
  });

  test('the base, and its set-up', async () => {
    const waits = 'echo x >> \\"$HOME/ready\\"; : < \\"$HOME/go\\"';
    for (const setup of [{ verify: `test = "${waits}"` }, { toml: `[worktree]\nsetup = "${waits}"\n` }]) {
      const project = await patientProject({ issues: { '01-a': {} }, ...setup });
      const running = await startAt(project, 'run.started');
      await project.ready(1);
      const stop = await project.giro(['stop', 's1']);
      expect([stop.code, stop.stderr]).toEqual([0, '']);
      const run = await running.ended;
      expect([run.code, lastLine(run)]).toEqual([2, 'stopped: giro stop ended it; go on with: giro implement s1']);
      await project.letGo();
      expect((await project.implement()).code).toBe(0);
    }
  });

  test('waiting for a usage limit', async () => {
    const limited =
      'if [ ! -f "$HOME/allowed" ]; then echo \'{"status":"unavailable","reason":"usage-limit"}\' > "$GIRO_ENVELOPE"; exit 75; fi\necho x > "$GIRO_ISSUE.txt"\n';
    const project = await makeProject({ issues: { '01-a': {}, '02-b': {} }, agent: limited });
    const running = await startAt(project, 'issue.retrying');
    expect((await project.giro(['stop'])).code).toBe(0);
    const run = await running.ended;
    expect([run.code, lastLine(run)]).toEqual([2, 'stopped: giro stop ended it; go on with: giro implement s1']);
    await writeFile(join(project.home, 'allowed'), '');
    expect((await project.implement()).code).toBe(0);
  });
});

describe('a STOP file', () => {
  const stopFile = (project: Project, name = 'STOP'): string => join(machineFolder(project), name);

  test('ends a run as giro stop does, and keeps the next from starting until it is taken away', async () => {
    const project = await patientProject({ issues: { '01-a': {} } });
    const running = await startAt(project, 'attempt.started');
    await project.ready(1);
    await writeFile(stopFile(project), 'the disk\u001b[2J is replaced\nby Ann\n');
    const run = await running.ended;
    const goOn = `go on with: rm '${stopFile(project)}' && giro implement s1`;
    expect([run.code, run.signal]).toEqual([2, null]);
    expect(lastLine(run)).toBe(`stopped: the STOP file (the disk\\u{1b}[2J is replaced) ended it; ${goOn}`);
    expect(eventsOf(run, 'run.stopping')).toMatchObject([{ by: 'stop-file' }]);
    await expectNothingHeld(project);

    const status = await project.giro(['status', 's1']);
    expect(status.stdout).toContain(`take it away: rm '${stopFile(project)}'`);
    expect((await project.giro(['status'])).stdout).toContain('a file keeps it from starting (the disk');
    await unchangedBy(project, async () => {
      const runs = await readdir(join(machineFolder(project), 'runs'));
      for (const target of ['s1', 's1/01', 'docs/specs']) {
        const refused = await project.giro(['implement', target]);
        expect([target, refused.code, refused.stderr]).toEqual([target, 2, '']);
        expect(refused.stdout).toMatch(
          /^stopped: the STOP file \(.*\) is there, nothing was started; go on with: rm '.*' && giro implement /,
        );
      }
      const json = await project.giro(['implement', 's1', '--json']);
      expect(json.events).toMatchObject([{ type: 'run.finished', exit: 2, reason: 'stopped' }]);
      const night = await project.giro(['implement', 'docs/specs', '--json']);
      expect(night.events).toMatchObject([{ type: 'backlog.finished', exit: 2, reason: 'stopped', specs: [] }]);
      expect((await project.giro(['implement', 's1', '--dry-run'])).code).toBe(0);
      expect(await readdir(join(machineFolder(project), 'runs'))).toEqual(runs);
    });
    await rm(stopFile(project));
    await project.letGo();
    expect((await project.implement()).code).toBe(0);
  });

  test('of one Spec stops that Spec, and a backlog goes on without it', async () => {
    const project = await patientProject({ issues: { '01-a': {} } });
    await addSpec(project, 's2');
    await mkdir(machineFolder(project), { recursive: true });
    await writeFile(stopFile(project, 'STOP.s2'), '');
    const running = await startAt(project, 'attempt.started', 'docs/specs');
    await project.ready(1);
    expect((await project.giro(['implement', 's2'])).code).toBe(2);
    await project.letGo();
    const run = await running.ended;
    expect(run.code).toBe(2);
    expect(lastLine(run)).toBe(
      `stopped: the STOP.s2 file keeps s2 from running; 1 of 2 Specs proved, 1 unfinished; go on with: rm '${stopFile(project, 'STOP.s2')}' && giro implement docs/specs`,
    );
    expect(await project.git('branch', '--list', 'giro/s2')).toBe('');
  });
});

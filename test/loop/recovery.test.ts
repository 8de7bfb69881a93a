import { describe, expect, onTestFinished, test } from 'vitest';
import type { Event } from '../../src/event.js';
import { eventsOf, makeProject, unchangedBy, type GiroRun, type Project } from '../rig/giro.js';
import { StandIn, type Invocation } from '../rig/stand-in.js';

type Part = 'agent' | 'judge' | 'merged' | 'all';

/** A project whose agents and gates the test plays. */
class Played {
  readonly project: Project;
  /** Agents that were started, as `NN-slug attempt`. */
  readonly agents: string[] = [];
  /** What leaves a part waiting for ever, once. */
  #hold: { readonly part: Part; readonly issue: string } | null = null;
  #held: (call: Invocation) => void = () => undefined;
  red = false;

  private constructor(project: Project, standIn: StandIn) {
    this.project = project;
    standIn.on('agent', async (call) => {
      this.agents.push(`${call.env['GIRO_ISSUE'] ?? ''} ${call.env['GIRO_ATTEMPT'] ?? ''}`);
      await this.#maybeHeld('agent', call);
      if (!call.isEnded) await call.write({ [`${call.env['GIRO_ISSUE'] ?? ''}.txt`]: 'done' });
    });
    for (const part of ['judge', 'merged', 'all'] as const) {
      standIn.on(part, async (call) => {
        await this.#maybeHeld(part, call);
        if (!call.isEnded) await call.exit(this.red ? 1 : 0);
      });
    }
  }

  static async make(budget = 'attempts = 2\nattempt-timeout = "60s"'): Promise<Played> {
    const standIn = await StandIn.open();
    onTestFinished(() => standIn.close());
    const gate = (name: Part, on: string) =>
      `[verify.${name}]\nrun = ${JSON.stringify(standIn.shellCommand(name))}\non = ["${on}"]\n`;
    const project = await makeProject({
      issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' } },
      run: standIn.command('agent'),
      budget,
      verify: `unit = "true"\n${gate('judge', 'issue')}${gate('merged', 'integration')}${gate('all', 'spec')}`,
    });
    return new Played(project, standIn);
  }

  /** Lets the next start of a part wait until it is ended; resolves when it is there. */
  hold(part: Part, issue = '01-a'): Promise<Invocation> {
    this.#hold = { part, issue };
    return new Promise((resolve) => {
      this.#held = resolve;
    });
  }

  /** Kills giro when an event was seen and the part waits, ends that part by its number, and runs again. */
  async killedAt(type: Event['type'], part: Part | null): Promise<GiroRun> {
    const held = part === null ? null : this.hold(part);
    const started = this.project.start(['implement', this.project.spec, '--json']);
    await started.event(type);
    const call = await held;
    started.kill('SIGKILL');
    expect((await started.ended).signal).toBe('SIGKILL');
    if (call !== null) await endProcess(call);
    return this.project.implement();
  }

  /** What an undisturbed run leaves: the code, the states, and the story of the Spec. */
  async end(): Promise<unknown> {
    const { project } = this;
    const files = (await project.git('ls-tree', '-r', 'giro/s1')).split('\n');
    const states = await Promise.all(
      ['01-a', '02-b'].map(async (id) => /^state: (.*)$/m.exec(await project.issueFile(id))?.[1]),
    );
    const spec = /^state: (.*)$/m.exec((await project.show('giro/s1', 'docs/specs/s1/SPEC.md')) ?? '')?.[1];
    const story = (await project.git('log', '--first-parent', '--format=%s', 'giro/s1')).split('\n');
    return {
      code: files.filter((line) => !line.includes('docs/specs/')),
      states,
      spec,
      landed: story.filter((line) => /^0\d-/.test(line)),
    };
  }

  async #maybeHeld(part: Part, call: Invocation): Promise<void> {
    if (this.#hold?.part !== part || this.#hold.issue !== call.env['GIRO_ISSUE']) return;
    this.#hold = null;
    if (part === 'agent') await call.write({ 'half.txt': 'half' });
    this.#held(call);
    await call.ended;
  }
}

async function endProcess(call: Invocation): Promise<void> {
  try {
    process.kill(call.pid, 'SIGKILL');
  } catch {
    // It went with giro.
  }
  await call.ended;
}

describe('giro killed with SIGKILL, and run again, comes to the end of an undisturbed run', () => {
  test.each<[Event['type'], Part | null, readonly string[]]>([
    // A crash counts: the next attempt is the second.
    ['attempt.started', 'agent', ['01-a 1', '01-a 2', '02-b 1']],
    // From here on the work of the first is recorded, and not paid for again.
    ['attempt.finished', 'judge', ['01-a 1', '02-b 1']],
    ['gate.started', 'judge', ['01-a 1', '02-b 1']],
    ['attempt.judged', 'merged', ['01-a 1', '02-b 1']],
    ['candidate.made', 'merged', ['01-a 1', '02-b 1']],
    ['spec.validated', null, ['01-a 1', '02-b 1']],
  ])('at %s', async (type, part, agents) => {
    const undisturbed = await Played.make();
    expect((await undisturbed.project.implement()).code).toBe(0);
    const played = await Played.make();
    const run = await unchangedBy(played.project, () => played.killedAt(type, part));
    expect(run.stderr).toBe('');
    expect(run.code).toBe(0);
    expect(await played.end()).toEqual(await undisturbed.end());
    expect(played.agents).toEqual(agents);
    const attempts = (await played.project.issueFile('01-a')).match(/^### Attempt \d+/gm);
    expect(attempts).toEqual(agents.includes('01-a 2') ? ['### Attempt 1', '### Attempt 2'] : ['### Attempt 1']);
  });

  test('at issue.integrated', async () => {
    const undisturbed = await Played.make();
    expect((await undisturbed.project.implement()).code).toBe(0);
    const played = await Played.make();
    const held = played.hold('agent', '02-b');
    const first = played.project.start(['implement', 's1', '--json']);
    await first.event('issue.integrated');
    const call = await held;
    first.kill('SIGKILL');
    await first.ended;
    await endProcess(call);
    expect((await played.project.implement()).code).toBe(0);
    expect(await played.end()).toEqual(await undisturbed.end());
    expect(played.agents).toEqual(['01-a 1', '02-b 1', '02-b 2']);
  });

  test('in its last attempt: it asks, and the answer starts an agent, whatever the dead one left', async () => {
    const played = await Played.make('attempts = 1\nattempt-timeout = "60s"');
    const run = await unchangedBy(played.project, () => played.killedAt('attempt.started', 'agent'));
    expect(run.code).toBe(2);
    expect(eventsOf(run, 'issue.escalated')).toMatchObject([{ issue: '01-a', cause: 'budget-spent', attempts: 1 }]);
    const again = await played.project.implement();
    expect(again.code).toBe(0);
    expect(played.agents).toEqual(['01-a 1', '01-a 2', '02-b 1']);
    expect(await played.project.show('giro/s1', 'half.txt')).toBeNull();
    expect(await played.project.git('for-each-ref', 'refs/giro/salvage/s1/01-a/')).not.toBe('');
  });

  test('at issue.escalated: it asks again, and nobody is started', async () => {
    const undisturbed = await Played.make();
    undisturbed.red = true;
    expect((await undisturbed.project.implement()).code).toBe(2);
    const played = await Played.make();
    played.red = true;
    const first = played.project.start(['implement', 's1', '--json']);
    await first.event('issue.escalated');
    first.kill('SIGKILL');
    const killed = await first.ended;
    // Otherwise the run had ended, and running again would be the answer.
    if (eventsOf(killed, 'spec.state').length > 0) return;
    const before = played.agents.length;
    const run = await played.project.implement();
    expect(run.code).toBe(2);
    expect(played.agents).toHaveLength(before);
    expect(await played.end()).toEqual(await undisturbed.end());
    expect(eventsOf(run, 'run.finished')[0]?.lines.join('\n')).toMatch(/asks {2}01-a: .*gate judge failed/);
  });
});

test('an escalation that giro/<spec> does not show yet is shown there, and nobody is started', async () => {
  const played = await Played.make();
  played.red = true;
  expect((await played.project.implement()).code).toBe(2);
  const before = played.agents.length;
  // As if giro was killed between the two commits: the escalation and the end of the Spec are not there.
  await played.project.git('update-ref', 'refs/heads/giro/s1', 'giro/s1~2');
  expect(await played.project.issueFile('01-a')).toContain('state: ready');
  const run = await played.project.implement();
  expect(run.code).toBe(2);
  expect(played.agents).toHaveLength(before);
  expect(await played.project.issueFile('01-a')).toMatch(/state: needs-human[\s\S]*### Escalated/);
  expect(eventsOf(run, 'run.finished')[0]?.lines[0]).toMatch(/^asks {2}01-a: \S/);
});

test('stopped in order, the attempt is given back and the next run goes on', async () => {
  const played = await Played.make();
  const held = played.hold('agent');
  const first = played.project.start(['implement', 's1', '--json']);
  await held;
  first.kill('SIGTERM');
  expect((await first.ended).signal).toBe('SIGTERM');
  expect(await played.project.issueFile('01-a', 'giro-issue/s1/01-a')).toContain('verdict: stopped');
  const run = await played.project.implement();
  expect(run.code).toBe(0);
  expect(played.agents).toEqual(['01-a 1', '01-a 2', '02-b 1']);
});

import { expect, test } from 'vitest';
import type { BacklogResult, Event } from '../../src/event.js';
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

import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { eventsOf, makeProject, unchangedBy, type Project } from '../rig/giro.js';

const interposer = resolve(import.meta.dirname, '../crash/interposer.mjs');

/** Two Issues, one on the other; agents and gates on what is merged write down that they ran. */
function project(): Promise<Project> {
  return makeProject({
    issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' } },
    agent: `echo "$GIRO_ISSUE" >> "$HOME/agents"\necho "by $GIRO_ISSUE" > "$GIRO_ISSUE.txt"\n`,
    verify: `test = "true"\n[verify.merged]\nrun = 'ls *.txt | wc -l | tee -a "$HOME/merged"'\non = ["integration", "spec"]`,
  });
}

async function linesOf(made: Project, name: string): Promise<readonly string[]> {
  return (await readFile(join(made.home, name), 'utf8').catch(() => '')).split('\n').filter((line) => line !== '');
}

/** What is there in the end, without what differs by time. */
async function endOf(made: Project): Promise<object> {
  const subjects = (await made.git('log', '--first-parent', '--format=%s', 'giro/s1')).split('\n');
  return {
    landed: ['01-a', '02-b'].map((id) => subjects.filter((subject) => subject.includes(id)).length),
    files: await made.git('ls-tree', '-r', 'giro/s1', '--', '01-a.txt', '02-b.txt'),
    states: await made.git('grep', '-h', '^state:', 'giro/s1', '--', 'docs/specs/s1'),
    worktrees: (await made.git('worktree', 'list')).split('\n').length,
    proof: (await made.giro(['proof', 's1'])).code,
    agents: await linesOf(made, 'agents'),
  };
}

test.each([
  ['the merge is made, and not verified', 'event candidate.made#1', 1],
  ['it is verified, and the branch has not moved', 'update heads/giro#1', 1],
  ['the branch has moved, and nobody was told', 'event issue.integrated#1', 0],
  ['everything is written down, and not cleared up', 'remove trash#1', 0],
])('C067 killed when %s: one merge for each Issue, and no second agent', async (_name, at, landsAgain) => {
  const undisturbed = await project();
  expect((await undisturbed.implement()).code).toBe(0);

  const made = await project();
  await unchangedBy(made, async () => {
    const env = { NODE_OPTIONS: `--import=${interposer}`, GIRO_KILL_AT: at };
    const killed = await made.start(['implement', 's1', '--json'], { env }).ended;
    expect(killed.signal).toBe('SIGKILL');
    const verified = (await linesOf(made, 'merged')).length;
    const run = await made.implement();
    expect([run.code, run.stderr]).toEqual([0, '']);
    if (at.startsWith('event candidate')) expect((await linesOf(made, 'merged')).length).toBeGreaterThan(verified);
    expect(eventsOf(run, 'issue.integrated').filter(({ issue }) => issue === '01-a')).toHaveLength(landsAgain);
  });
  expect(await endOf(made)).toEqual(await endOf(undisturbed));
  expect(await endOf(made)).toMatchObject({ landed: [1, 1], agents: ['01-a', '02-b'], worktrees: 1, proof: 0 });
});

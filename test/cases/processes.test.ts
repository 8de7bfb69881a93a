import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { appendFile, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { parseProcessStat } from '../../src/platform/identity.js';
import { findCgroups } from '../../src/platform/cgroups.js';
import { openConfinement } from '../../src/platform/confinement.js';
import { formatMark, newMark, parseMark, repositoryMark } from '../../src/platform/mark.js';
import { processLimits } from '../rig/policy.js';
import { eventsOf, makeProject, type GiroRun, type Project } from '../rig/giro.js';

const program = resolve(import.meta.dirname, '../../bin/giro.js');

/** Beats for at most a minute, and puts its number into a ledger; its arguments: the folder for both, and what it is. */
const beating = `#!/bin/sh
echo "$2 $$" >> "$1/ledger"
i=0
while [ $i -lt 600 ]; do echo $i > "$1/beat"; sleep 0.1; i=$((i+1)); done
`;

/** An agent that works on once it may, having looked for others that are still there. */
function agent(before: string): string {
  return [
    'if [ ! -f "$HOME/go" ]; then',
    before,
    'fi',
    'while read -r what pid; do',
    '  [ -d "/proc/$pid" ] || continue',
    '  grep -q "^State:[[:space:]]*Z" "/proc/$pid/status" || echo "both $pid" >> "$HOME/seen"',
    'done < "$HOME/ledger"',
    'echo x > "$GIRO_ISSUE.txt"',
  ].join('\n');
}

/** Whether giro gives its children cgroups here, where what hides from everything else is found. */
const hasCgroups = givesCgroups();

const waysToStay = {
  'that ignores SIGTERM': `trap '' TERM; sh "$HOME/beating" "$HOME" agent`,
  'that makes a session of its own': `setsid sh "$HOME/beating" "$HOME" agent & wait`,
  'that forks twice and is gone': `(setsid sh "$HOME/beating" "$HOME" agent </dev/null >/dev/null 2>&1 &) ; sleep 60`,
  'whose child clears its environment': `env -i PATH="$PATH" sh "$HOME/beating" "$HOME" agent & wait`,
  ...(hasCgroups
    ? {
        'that clears its environment and makes a session of its own': `env -i PATH="$PATH" setsid -f sh "$HOME/beating" "$HOME" agent </dev/null >/dev/null 2>&1; sleep 60`,
      }
    : {}),
};

test.each(Object.entries(waysToStay))(
  'C091 giro killed hard: an agent %s is ended by the same command, before another starts',
  async (_name, before) => {
    const project = await makeProject({ issues: { '01-a': {} }, agent: agent(before) });
    const old = await killedHard(project);
    await rm(join(project.path, '.git/giro/runs'), { recursive: true });
    await writeFile(join(project.home, 'go'), '');
    const run = await project.implement();
    expect(run.code).toBe(0);
    expect(isAlive(old)).toBe(false);
    expect(existsSync(join(project.home, 'seen'))).toBe(false);
    expect(saidEnded(run)).toHaveLength(1);
    expect(saidEnded(run)[0]).toContain('the agent of 01-a, attempt 1 (process');
    expect(await project.issueFile('01-a')).toContain('### Attempt 2');
  },
);

test('C091 after a hard kill giro status says what is left and ends nothing', async () => {
  const project = await makeProject({ issues: { '01-a': {} }, agent: agent(waysToStay['that ignores SIGTERM']) });
  const old = await killedHard(project);
  const one = await project.giro(['status', 's1']);
  expect(one.stdout).toMatch(
    /left running by a giro that was killed: the agent of 01-a, attempt 1 \(process(es)? [0-9, ]+\)/,
  );
  expect(one.stdout).toContain('it is ended by: giro implement s1');
  const json = JSON.parse((await project.giro(['status', 's1', '--json'])).stdout) as { left: { pid: number }[] };
  expect(json.left.map(({ pid }) => pid)).toContain(old);
  expect((await project.giro(['status'])).stdout).toContain('left running');
  const dry = await project.giro(['implement', 's1', '--dry-run']);
  expect([dry.code, isAlive(old)]).toEqual([0, true]);
  await writeFile(join(project.home, 'go'), '');
  expect((await project.implement()).code).toBe(0);
  expect((await project.giro(['status', 's1'])).stdout).not.toContain('left running');
});

test('C091 giro killed hard while a gate runs that made itself a daemon: it is ended, and the agent is not paid again', async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    agent: 'echo agent >> "$HOME/agents"\necho x > x.txt\n',
    verify: `test = '[ ! -f x.txt ] || [ -f "$HOME/go" ] || { (setsid sh "$HOME/beating" "$HOME" gate </dev/null >/dev/null 2>&1 &) ; sleep 60; }'`,
  });
  const old = await killedHard(project);
  await writeFile(join(project.home, 'go'), '');
  const run = await project.implement();
  expect([run.code, isAlive(old)]).toEqual([0, false]);
  expect(saidEnded(run)[0]).toContain('gate test of 01-a');
  expect(await readFile(join(project.home, 'agents'), 'utf8')).toBe('agent\n');
});

test('C091 giro that is started by the agent of one that was killed says so, and starts no second agent', async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    agent: [
      'echo "agent $$" >> "$HOME/ledger"',
      'while [ ! -f "$HOME/nest" ]; do sleep 0.02; done',
      `'${process.execPath}' '${program}' implement s1 -C "$HOME/../repo" > "$HOME/nested" 2>&1 || echo "exit $?" >> "$HOME/nested"`,
      'sleep 60',
    ].join('\n'),
  });
  const old = await killedHard(project);
  await writeFile(join(project.home, 'nest'), '');
  const nested = async (): Promise<string> => readFile(join(project.home, 'nested'), 'utf8').catch(() => '');
  for (let wait = 0; wait < 400 && !(await nested()).includes('exit '); wait += 1) await pause(50);
  expect(await nested()).toContain('left running what this one was started by: the agent of 01-a, attempt 1');
  expect(await nested()).toContain('exit 1');
  expect(readFileSync(join(project.home, 'ledger'), 'utf8').match(/agent/g)).toHaveLength(1);
  process.kill(-old, 'SIGKILL');
});

test('everything that a run starts has its mark, and only that of the run', async () => {
  const project = await makeProject({
    issues: {},
    agent: `cat > /dev/null
echo "$GIRO_ROLE $GIRO_RUN" >> "$HOME/marks"
case $GIRO_ROLE in
  planner) echo '{"issues":[{"slug":"one","title":"One","body":"Do one."}]}' ;;
  judge) echo '{"verdict":"pass","findings":[]}' ;;
  *) echo x > x.txt ;;
esac`,
    verify: `test = 'echo "gate $GIRO_RUN" >> "$HOME/marks"'
review = { kind = "prompt", rubric = "Is it good?" }`,
    toml: `[worktree]\nsetup = 'echo "setup $GIRO_RUN" >> "$HOME/marks"'`,
  });
  const run = await project.giro(['implement', 's1', '--json'], { env: { GIRO_RUN: 'of another giro' } });
  expect(run.code).toBe(0);
  const lines = readFileSync(join(project.home, 'marks'), 'utf8').trimEnd().split('\n');
  const marks = lines.map((line) => line.split(' ') as [string, string]);
  expect([...new Set(marks.map(([what]) => what))].sort()).toEqual(['gate', 'judge', 'planner', 'setup', 'worker']);
  expect(new Set(marks.map(([, mark]) => mark)).size).toBe(1);
  expect(parseMark(marks[0]?.[1] ?? '')).toMatchObject({ spec: 's1', run: run.events[0]?.run });
});

test.skipIf(!hasCgroups)(
  'everything that a run starts is in a cgroup of its own, of which nothing is left',
  async () => {
    const inside = `sed -n 's|^.*:pids:||p; s|^0::||p' /proc/self/cgroup | grep giro, | head -n 1`;
    const project = await makeProject({
      issues: {},
      agent: `cat > /dev/null
echo "$GIRO_ROLE $(${inside})" >> "$HOME/groups"
case $GIRO_ROLE in
  planner) echo '{"issues":[{"slug":"one","title":"One","body":"Do one."}]}' ;;
  judge) echo '{"verdict":"pass","findings":[]}' ;;
  *) echo x > x.txt ;;
esac`,
      verify: `test = '''echo "gate $(${inside})" >> "$HOME/groups"'''
review = { kind = "prompt", rubric = "Is it good?" }`,
      toml: `[worktree]\nsetup = '''echo "setup $(${inside})" >> "$HOME/groups"'''`,
    });
    expect((await project.implement()).code).toBe(0);
    const lines = readFileSync(join(project.home, 'groups'), 'utf8').trimEnd().split('\n');
    const [, run] = /\/(giro,[^/]+)\//.exec(lines[0] ?? '') ?? [];
    for (const line of lines) expect(line).toContain(`/${run ?? ''}/`);
    expect(new Set(lines.map((line) => line.split('/').at(-1))).size).toBe(lines.length);
    expect([...new Set(lines.map((line) => line.split(' ')[0]))].sort()).toEqual([
      'gate',
      'judge',
      'planner',
      'setup',
      'worker',
    ]);
    expect(lines.find((line) => line.startsWith('worker'))).toMatch(
      /GIRO_ROLE=worker,GIRO_ISSUE=01-one,GIRO_ATTEMPT=1$/,
    );
    expect(groupsCalled(run ?? '')).toEqual([]);
  },
);

test.skipIf(!hasCgroups)('an agent that meets a limit is said to have, and so is a gate', async () => {
  // Both are bounded by themselves: 200 MB, and 40 processes of a second.
  const many = 'i=0; while [ $i -lt 40 ]; do i=$((i+1)); sleep 1 & done; wait';
  const project = await makeProject({
    issues: { '01-a': {} },
    agent: `if [ "$GIRO_ATTEMPT" = 1 ]; then head -c 200000000 /dev/zero | tail > /dev/null || exit 1; fi
echo $GIRO_ATTEMPT > x.txt`,
    verify: `test = '''[ ! -f x.txt ] || [ "$(cat x.txt)" != 2 ] || sh -c '${many}' '''`,
    budget: 'attempts = 3',
    limits: 'memory = "64MB"\nprocesses = 20',
  });
  const run = await project.implement();
  expect(run.code).toBe(0);
  const history = await project.issueFile('01-a');
  if (hasMemoryLimit()) expect(history).toContain('agent exited 1: out of memory (limit 64 MB)');
  expect(history).toMatch(/gate test failed: exit \d+: too many processes \(limit 20\)/);
});

test.skipIf(!hasCgroups)('the cgroup of a giro that was killed is removed by the next command', async () => {
  const project = await makeProject({ issues: { '01-a': {} }, agent: agent(waysToStay['that ignores SIGTERM']) });
  const old = await killedHard(project);
  const [, run] = /\/(giro,[^/]+)\//.exec(readFileSync(`/proc/${String(old)}/cgroup`, 'utf8')) ?? [];
  expect(groupsCalled(run ?? '')).not.toEqual([]);
  expect((await project.giro(['stop'])).code).toBe(0);
  expect(groupsCalled(run ?? '')).toEqual([]);
});

test('what an agent leaves in a session of its own is gone before its work is judged', async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    agent: `(setsid sh "$HOME/beating" "$HOME" agent </dev/null >/dev/null 2>&1 &)
while [ ! -f "$HOME/ledger" ]; do sleep 0.01; done\necho x > x.txt\n`,
    verify: `test = 'pid=$(sed "s/agent //" "$HOME/ledger"); [ ! -d /proc/$pid ] || grep -q "^State:[[:space:]]*Z" /proc/$pid/status'`,
  });
  await writeFile(join(project.home, 'beating'), beating);
  const run = await project.implement();
  expect([run.code, isAlive(await ledger(project))]).toEqual([0, false]);
});

test.each(['SIGINT once', 'SIGINT twice'])(
  'what the set-up left running as a daemon goes with the run: %s',
  async (how) => {
    const project = await makeProject({
      issues: { '01-a': {} },
      agent: `trap '' TERM; sleep 60`,
      toml: `[worktree]\nsetup = '(setsid sh "$HOME/beating" "$HOME" setup </dev/null >/dev/null 2>&1 &)'`,
    });
    await writeFile(join(project.home, 'beating'), beating);
    const running = project.start(['implement', 's1', '--json']);
    await running.event('attempt.started');
    const daemon = await ledger(project);
    running.kill('SIGINT');
    if (how === 'SIGINT twice') {
      await running.event('run.stopping');
      running.kill('SIGINT');
    }
    expect((await running.ended).signal).toBe('SIGINT');
    await gone(daemon);
  },
);

test('a daemon of the set-up stays with its worktree, and goes with it', async () => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' } },
    agent: `pid=$(cat .daemon); echo "$pid $PWD" >> "$HOME/daemons"
grep -q "^State:[[:space:]]*[SR]" "/proc/$pid/status"; echo x > "$GIRO_ISSUE.txt"\n`,
    budget: 'attempts = 1',
    toml: `[worktree]
keep = [".daemon"]
setup = "setsid sh -c 'echo $$ > .daemon; exec sleep 60' </dev/null >/dev/null 2>&1 & while [ ! -s .daemon ]; do sleep 0.01; done"`,
  });
  const run = await project.implement();
  expect(run.code).toBe(0);
  const daemons = readFileSync(join(project.home, 'daemons'), 'utf8').trimEnd().split('\n');
  expect([daemons.length, new Set(daemons).size]).toEqual([2, 1]);
  expect(isAlive(Number(daemons[0]?.split(' ')[0]))).toBe(false);
});

test('a daemon of the set-up ends before the set-up runs again in its folder', async () => {
  const project = await makeProject({
    issues: { '01-a': {}, '02-b': { frontmatter: 'depends-on: [01]' } },
    agent: `pid=$(cat .daemon); echo "$PWD $pid" >> "$HOME/daemons"
! grep -q "^State:[[:space:]]*[SR]" /proc/$(head -1 "$HOME/daemons" | cut -d' ' -f2)/status || echo "$GIRO_ISSUE" >> "$HOME/first"
echo x > "$GIRO_ISSUE.txt"\n`,
    budget: 'attempts = 1',
    toml: `[worktree]
setup = "setsid sh -c 'echo $$ > .daemon; exec sleep 60' </dev/null >/dev/null 2>&1 & while [ ! -s .daemon ]; do sleep 0.01; done"`,
  });
  expect((await project.implement()).code).toBe(0);
  const daemons = readFileSync(join(project.home, 'daemons'), 'utf8').trimEnd().split('\n');
  const folders = daemons.map((line) => line.split(' ')[0]);
  // It is set up again, since what it made was not kept.
  expect([new Set(daemons).size, new Set(folders).size]).toEqual([2, 1]);
  expect(readFileSync(join(project.home, 'first'), 'utf8')).toBe('01-a\n');
});

test('a process of a person in a worktree is said and left alone, and its folder stays', async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    budget: 'attempts = 1',
    agent: 'echo x > x.txt\n',
    verify: `test = '[ -f "$HOME/go" ]'`,
  });
  expect((await project.implement()).code).toBe(2);
  const folder = await worktreeOf(project);
  // Its name and arguments are those of the agent: what counts is who started it.
  const shell = spawn('/bin/sh', ['-c', 'sleep 60; : ./agent.sh'], { cwd: folder, env: {}, detached: true });
  onTestFinished(() => void process.kill(-(shell.pid ?? 0), 'SIGKILL'));
  await untilIn(folder, shell.pid);
  await writeFile(join(project.home, 'go'), '');
  await project.writeIssue('01-a', { body: 'Do it now.' });
  const run = await project.implement();
  expect(run.code).toBe(0);
  expect(isAlive(shell.pid ?? 0)).toBe(true);
  const said = eventsOf(run, 'run.notice').map(({ message }) => message);
  expect(said.filter((line) => line.includes(`process ${String(shell.pid)}`))).toEqual([
    expect.stringContaining(`works in ${folder}; nothing shows that giro started it, so it is left alone`),
  ]);
  expect(said.filter((line) => line.includes(`${folder} is left`))).toHaveLength(1);
  expect(existsSync(folder)).toBe(true);
});

test('C091 a backlog that was killed hard: each Spec ends what was left of it', async () => {
  const project = await makeProject({
    issues: { '01-a': {} },
    agent: agent(`sh "$HOME/beating" "$HOME" "$GIRO_SPEC"`),
  });
  await project.write('docs/specs/s2/SPEC.md', '---\nstate: draft\n---\n# Another\n');
  await project.write('docs/specs/s2/issues/01-b.md', '---\nstate: ready\n---\n# B\n\nDo it.\n');
  await writeFile(join(project.home, 'beating'), beating);
  const running = project.start(['implement', 'docs/specs', '--json']);
  await ledger(project);
  while (!/^s1 \d+\n(.*\n)*s2 \d|^s2 \d+\n(.*\n)*s1 \d/m.test(readFileSync(join(project.home, 'ledger'), 'utf8')))
    await pause(20);
  running.kill('SIGKILL');
  await running.ended;
  await writeFile(join(project.home, 'go'), '');
  const run = await project.giro(['implement', 'docs/specs', '--json']);
  expect([run.code, existsSync(join(project.home, 'seen'))]).toEqual([0, false]);
  const said = eventsOf(run, 'run.notice').filter(({ message }) => message.includes('ended now'));
  expect(said.map(({ message }) => /agent of (\S+),/.exec(message)?.[1]).sort()).toEqual(['01-a', '01-b']);
});

test('a run of another Spec ends nothing of the one that was killed', async () => {
  const project = await makeProject({ issues: { '01-a': {} }, agent: agent(waysToStay['that ignores SIGTERM']) });
  const old = await killedHard(project);
  await project.write('docs/specs/s2/SPEC.md', '---\nstate: draft\n---\n# Another\n');
  await project.write('docs/specs/s2/issues/01-b.md', '---\nstate: ready\n---\n# B\n\nDo it.\n');
  await writeFile(join(project.home, 'go'), '');
  const other = await project.giro(['implement', 's2', '--json']);
  expect([other.code, saidEnded(other), isAlive(old)]).toEqual([0, [], true]);
  expect((await project.implement()).code).toBe(0);
  expect(isAlive(old)).toBe(false);
});

test('a process with the mark of another repository, of a giro that lives, or of another container is not touched', async () => {
  const project = await makeProject({ issues: { '01-a': {} } });
  const mark = newMark({ repository: repositoryMark(join(project.path, '.git')), spec: 's1', run: 'r' });
  const dead = { ...mark, owner: { ...mark.owner, startTime: '1' } };
  const marks = [
    formatMark({ ...dead, repository: '0123456789abcdef' }),
    formatMark({ ...dead, owner: { ...dead.owner, pidNamespace: 'pid:[1]' } }),
    formatMark(mark),
    'nonsense',
    '',
    formatMark(dead),
  ];
  const others = marks.map((text) => spawn('sleep', ['60'], { env: { GIRO_RUN: text }, detached: true }));
  onTestFinished(() => others.forEach((one) => one.kill('SIGKILL')));
  expect((await project.implement()).code).toBe(0);
  expect(others.map((one) => isAlive(one.pid ?? 0))).toEqual([true, true, true, true, true, false]);
});

/** Starts a run and kills giro hard as soon as something beats; gives the number of that. */
async function killedHard(project: Project): Promise<number> {
  await writeFile(join(project.home, 'beating'), beating);
  const running = project.start(['implement', 's1', '--json']);
  const pid = await ledger(project);
  running.kill('SIGKILL');
  await running.ended;
  expect(isAlive(pid)).toBe(true);
  return pid;
}

/** Waits for the first line of the ledger. */
async function ledger(project: Project): Promise<number> {
  const path = join(project.home, 'ledger');
  await appendFile(path, '');
  for (let wait = 0; wait < 600; wait += 1) {
    const pid = Number(/^\w+ (\d+)$/m.exec(await readFile(path, 'utf8'))?.[1] ?? 0);
    if (pid > 0) return pid;
    await pause(50);
  }
  throw new Error('nothing was started');
}

function saidEnded(run: GiroRun): readonly string[] {
  return eventsOf(run, 'run.notice')
    .map(({ message }) => message)
    .filter((message) => message.startsWith('left running by a giro that was killed, ended now:'));
}

function isAlive(pid: number): boolean {
  try {
    return parseProcessStat(readFileSync(`/proc/${String(pid)}/stat`, 'latin1')).state !== 'Z';
  } catch {
    return false;
  }
}

async function gone(pid: number): Promise<void> {
  for (let wait = 0; wait < 100 && isAlive(pid); wait += 1) await pause(20);
  expect(isAlive(pid)).toBe(false);
}

async function worktreeOf(project: Project): Promise<string> {
  const listed = await project.git('worktree', 'list', '--porcelain');
  const folder = /^worktree (.*\/w\d+)$/m.exec(listed)?.[1];
  if (folder === undefined) throw new Error(listed);
  return folder;
}

async function untilIn(folder: string, pid: number | undefined): Promise<void> {
  while ((await readlink(`/proc/${String(pid)}/cwd`).catch(() => '')) !== folder) await pause(10);
}

function givesCgroups(): boolean {
  const confinement = openConfinement(newMark({ repository: 'r', spec: 's', run: 'probe' }), processLimits);
  const cell = confinement.open({});
  cell?.close();
  confinement.close();
  return cell !== null;
}

function hasMemoryLimit(): boolean {
  const here = findCgroups();
  return here.kind !== 'none' && here.hierarchies.some(({ controllers }) => controllers.includes('memory'));
}

/** The cgroups of this name that are there. */
function groupsCalled(name: string): readonly string[] {
  const here = findCgroups();
  if (here.kind === 'none') return [];
  return here.hierarchies.map(({ folder }) => join(folder, name)).filter((folder) => existsSync(folder));
}

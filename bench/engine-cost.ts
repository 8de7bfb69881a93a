/** What a run costs beyond its agents, beside the shell script that most people would write instead. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { benchFolder } from './many-issues.js';
import { median, say, type Row } from './report.js';

/** Sizes and rounds of the benchmark. */
export interface EngineCostOptions {
  readonly program: string;
  readonly files: number;
  readonly issues: number;
  readonly agents: number;
  readonly rounds: number;
}

interface Cost {
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly gitProcesses: number | null;
}

const identity = {
  GIT_AUTHOR_NAME: 'b',
  GIT_AUTHOR_EMAIL: 'b@localhost',
  GIT_COMMITTER_NAME: 'b',
  GIT_COMMITTER_EMAIL: 'b@localhost',
};

/** The agent of all contestants: adds a file and commits it. */
const agent = `#!/bin/sh
name=\${1:-$GIRO_ISSUE}
echo "work of $name" > "work-$name.txt"
git add -A
git -c user.name=b -c user.email=b@localhost commit -q -m "work of $name"
`;

/** Runs all contestants interleaved and compares medians. */
export function engineCost(options: EngineCostOptions): readonly Row[] {
  const results = { floor: [] as Cost[], shell: [] as Cost[], giro: [] as Cost[] };
  for (let round = 0; round < options.rounds; round += 1) {
    const order = round % 2 === 0 ? (['floor', 'shell', 'giro'] as const) : (['giro', 'shell', 'floor'] as const);
    for (const name of order) results[name].push(contest(name, options));
  }
  const floor = middle(results.floor);
  const shell = middle(results.shell);
  const giro = middle(results.giro);
  const perIssue = (cost: Cost): number => (cost.wallMs - floor.wallMs) / options.issues;
  const size = `${String(options.files)} files`;
  const [shellOver, giroOver] = [perIssue(shell), perIssue(giro)];
  const cpu = (cost: Cost): number => (cost.cpuMs - floor.cpuMs) / options.issues;
  say(
    `  ${size}: floor ${floor.wallMs.toFixed(0)} ms, shell ${shell.wallMs.toFixed(0)} ms, giro ${giro.wallMs.toFixed(0)} ms`,
  );
  const rows: Row[] = [
    {
      what: `overhead per Issue beyond the agents, ${size}`,
      measured: `${giroOver.toFixed(1)} ms / ${shellOver.toFixed(1)} ms`,
      ratio: giroOver / shellOver,
      ...(options.files >= 10_000 ? { must: 0.4, goal: 0.15 } : { must: 1.0, goal: 0.4 }),
    },
  ];
  if (options.files >= 10_000) return rows;
  return [
    ...rows,
    {
      what: `CPU per Issue, engine and its git, ${size}`,
      measured: `${cpu(giro).toFixed(1)} ms / ${cpu(shell).toFixed(1)} ms`,
      ratio: cpu(giro) / cpu(shell),
      must: 1.0,
      goal: 0.5,
    },
    {
      what: 'git processes per one-attempt Issue',
      measured: ((giro.gitProcesses ?? 0) / options.issues).toFixed(1),
      ratio: (giro.gitProcesses ?? 0) / options.issues,
      must: 20,
      goal: 10,
    },
  ];
}

function contest(name: 'floor' | 'shell' | 'giro', options: EngineCostOptions): Cost {
  const folder = benchFolder();
  try {
    const repository = makeRepository(folder, options);
    switch (name) {
      case 'floor':
        return floorRun(folder, repository, options);
      case 'shell':
        return shellRun(folder, repository, options);
      case 'giro':
        return giroRun(folder, repository, options);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Agents alone, each group of them in a clone that was made before the clock starts. */
function floorRun(folder: string, repository: string, options: EngineCostOptions): Cost {
  for (let clone = 0; clone < options.agents; clone += 1) {
    execFileSync('git', ['clone', '-q', '--shared', repository, join(folder, `clone-${String(clone)}`)], {
      stdio: 'ignore',
    });
  }
  const script = `seq 0 ${String(options.issues - 1)} | xargs -P${String(options.agents)} -I{} sh -c '
    clone=$(( {} % ${String(options.agents)} ))
    cd ${folder}/clone-$clone && flock .git/agent.lock ${folder}/agent.sh i{}'`;
  return timed(script, folder);
}

function shellRun(folder: string, repository: string, options: EngineCostOptions): Cost {
  execFileSync('git', ['-C', repository, 'worktree', 'add', '-q', '-b', 'integration', join(folder, 'integration')], {
    stdio: 'ignore',
  });
  writeFileSync(
    join(folder, 'work.sh'),
    `set -e
cd ${repository}
git worktree add -q -b issue-$1 ${folder}/wt-$1 main
(cd ${folder}/wt-$1 && ${folder}/agent.sh i$1)
flock ${folder}/merge.lock git -C ${folder}/integration merge -q --no-ff -m "merge $1" issue-$1
git worktree remove --force ${folder}/wt-$1
`,
  );
  const cost = timed(
    `seq 1 ${String(options.issues)} | xargs -P${String(options.agents)} -I{} bash ${folder}/work.sh {}`,
    folder,
  );
  const landed = execFileSync('git', ['-C', join(folder, 'integration'), 'log', '--merges', '--oneline'], {
    encoding: 'utf8',
  })
    .trim()
    .split('\n').length;
  if (landed !== options.issues)
    throw new Error(`the shell script landed ${String(landed)} of ${String(options.issues)}`);
  return cost;
}

function giroRun(folder: string, repository: string, options: EngineCostOptions): Cost {
  writeFileSync(
    join(repository, 'giro.toml'),
    `[driver]\ndefault = "command"\n[driver.command]\nrun = ["${folder}/agent.sh"]\n[verify]\ntest = "true"\n[worktree]\nroot = "${folder}/worktrees"\n`,
  );
  const issues = join(repository, 'docs/specs/bench/issues');
  mkdirSync(issues, { recursive: true });
  writeFileSync(join(issues, '../SPEC.md'), '---\nstate: draft\n---\n# Bench\n');
  for (let issue = 1; issue <= options.issues; issue += 1) {
    writeFileSync(
      join(issues, `${String(issue)}-work.md`),
      `---\nstate: ready\n---\n# Issue ${String(issue)}\n\nAdd a file.\n`,
    );
  }
  const output = join(folder, 'events.ndjson');
  const cost = timed(
    `${process.execPath} ${options.program} implement bench --json -c ${String(options.agents)} -C ${repository} > ${output}`,
    folder,
  );
  const finished = JSON.parse(execFileSync('tail', ['-n', '1', output], { encoding: 'utf8' })) as {
    exit: number;
    gitProcesses?: number;
  };
  if (finished.exit !== 0) throw new Error(`giro ended with ${String(finished.exit)}`);
  return { ...cost, gitProcesses: finished.gitProcesses ?? null };
}

/** Wall and CPU time of a command with all its descendants. */
function timed(script: string, folder: string): Cost {
  const result = spawnSync('bash', ['-c', `TIMEFORMAT='%R %U %S'; time { ${script}; } 2> ${folder}/stderr`], {
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...identity, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
  });
  if (result.status !== 0) throw new Error(`failed: ${script}\n${result.stderr}`);
  const [wall = 0, user = 0, system = 0] = result.stderr.trim().split('\n').at(-1)?.split(' ').map(Number) ?? [];
  return { wallMs: wall * 1000, cpuMs: (user + system) * 1000, gitProcesses: null };
}

/** Files of 2 KB, twenty to a folder, in one commit. */
function makeRepository(folder: string, options: EngineCostOptions): string {
  const repository = join(folder, 'repo');
  mkdirSync(repository);
  for (let file = 0; file < options.files; file += 1) {
    const path = join(repository, `d${String(Math.floor(file / 20))}`, `f${String(file)}.txt`);
    if (file % 20 === 0) mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${String(file)} ${'lorem ipsum '.repeat(170)}\n`);
  }
  writeFileSync(join(folder, 'agent.sh'), agent, { mode: 0o755 });
  const git = (...args: string[]): void => {
    execFileSync('git', ['-C', repository, ...args], {
      stdio: 'ignore',
      env: { ...process.env, ...identity, GIT_CONFIG_GLOBAL: '/dev/null' },
    });
  };
  git('init', '-q', '-b', 'main');
  git('add', '-A');
  git('commit', '-q', '-m', 'base');
  return repository;
}

function middle(costs: readonly Cost[]): Cost {
  return {
    wallMs: median(costs.map((cost) => cost.wallMs)),
    cpuMs: median(costs.map((cost) => cost.cpuMs)),
    gitProcesses: costs[0]?.gitProcesses ?? null,
  };
}

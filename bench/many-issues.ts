/** A repository with a Spec of many Issues. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** What the Spec of a benchmark holds. */
export interface ManyIssues {
  readonly issues: number;
  readonly program: string;
  /** Bytes that each agent prints. */
  readonly outputBytes?: number;
  /** The agent, as a shell script; absent: one that prints so much and adds a file. */
  readonly agent?: string;
}

/** Where it was made. */
export interface ManyIssuesProject {
  readonly folder: string;
  readonly repository: string;
}

/** In memory where there is such a place: ext4 is slow and noisy at creating many files. */
export function benchFolder(): string {
  try {
    return mkdtempSync('/dev/shm/giro-bench-');
  } catch {
    return mkdtempSync(join(tmpdir(), 'giro-bench-'));
  }
}

/** Makes the repository; a chain of four is as deep as its graph goes. */
export function manyIssues(options: ManyIssues): ManyIssuesProject {
  const folder = benchFolder();
  const repository = join(folder, 'repo');
  const issues = join(repository, 'docs/specs/many/issues');
  mkdirSync(issues, { recursive: true });
  writeFileSync(join(repository, 'README.md'), '# Bench\n');
  writeFileSync(join(issues, '../SPEC.md'), '---\nstate: draft\n---\n# Many Issues\n');
  const width = String(options.issues).length;
  for (let number = 1; number <= options.issues; number += 1) {
    const dependsOn = number % 4 === 1 ? '' : `depends-on: [${String(number - 1)}]\n`;
    const name = `${String(number).padStart(width, '0')}-work.md`;
    writeFileSync(join(issues, name), `---\nstate: ready\n${dependsOn}---\n# Issue ${String(number)}\n\nAdd a file.\n`);
  }
  const printing = `#!/bin/sh\nhead -c ${String(options.outputBytes ?? 0)} /dev/zero | tr '\\0' x\necho done > "$GIRO_ISSUE.txt"\n`;
  writeFileSync(join(repository, 'agent.sh'), options.agent ?? printing, { mode: 0o755 });
  writeFileSync(
    join(repository, 'giro.toml'),
    `[driver]\ndefault = "command"\n[driver.command]\nrun = ["./agent.sh"]\n[verify]\ntest = "true"\n[worktree]\nroot = "${folder}/worktrees"\n`,
  );
  const identity = {
    GIT_AUTHOR_NAME: 'b',
    GIT_AUTHOR_EMAIL: 'b@localhost',
    GIT_COMMITTER_NAME: 'b',
    GIT_COMMITTER_EMAIL: 'b@localhost',
  };
  const env = { ...process.env, ...identity, GIT_CONFIG_GLOBAL: '/dev/null' };
  for (const args of [
    ['init', '-q', '-b', 'main'],
    ['add', '-A'],
    ['commit', '-q', '-m', 'base'],
  ]) {
    execFileSync('git', args, { cwd: repository, env, stdio: 'ignore' });
  }
  return { folder, repository };
}

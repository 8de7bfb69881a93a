/** Runs the built program on a temporary repository, as a person or a CI job would. */
import { spawn, type ChildProcess } from 'node:child_process';
import { readdir, readlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import type { Event } from '../../src/event.js';
import { makeRepository, type RepositorySetup, type TestRepository } from './repository.js';

const program = resolve(import.meta.dirname, '../../bin/giro.js');

/** How one run of giro ended. */
export interface GiroRun {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Parsed from stdout when it was started with `--json`. */
  readonly events: readonly Event[];
}

/** A run that is still going on. */
export interface GiroProcess {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly ended: Promise<GiroRun>;
  /** Waits for an event (past ones count) that a predicate accepts; needs `--json`. */
  event<T extends Event['type']>(
    type: T,
    accept?: (event: Extract<Event, { type: T }>) => boolean,
  ): Promise<Extract<Event, { type: T }>>;
  kill(signal: NodeJS.Signals): void;
}

/** An Issue of a test's Spec. */
export interface TestIssue {
  /** Lines of frontmatter beside `state: ready`, such as `depends-on: [01]`. */
  readonly frontmatter?: string;
  readonly body?: string;
}

/** What a test's project is made of. */
export interface ProjectSetup extends RepositorySetup {
  /** Slug of the Spec; `s1` when absent. */
  readonly spec?: string;
  readonly issues: Readonly<Record<string, TestIssue>>;
  /** A shell script that plays the agent; the default adds a file named after its Issue. */
  readonly agent?: string;
  /** Command of a driver instead of the script, such as a stand-in's. */
  readonly run?: readonly string[];
  /** `[verify]` lines; `test = "true"` when absent. */
  readonly verify?: string;
  /** Further TOML, after everything else. Without an `[evidence]` of its own the base may be red, as many a stand-in gate is. */
  readonly toml?: string;
  readonly budget?: string;
  /** Further lines of `[limits]`. */
  readonly limits?: string;
}

/** A repository with a Spec, a giro.toml and an agent. */
export interface Project extends TestRepository {
  readonly spec: string;
  /** Variables of giro's own environment. */
  readonly environment: Record<string, string>;
  /** Runs giro to its end. */
  giro(args: readonly string[], options?: RunOptions): Promise<GiroRun>;
  /** Starts giro. */
  start(args: readonly string[], options?: RunOptions): GiroProcess;
  /** Runs `giro implement <spec> --json`. */
  implement(...args: readonly string[]): Promise<GiroRun>;
  /** Content of a file at a ref; `null` when it is not there. */
  show(ref: string, path: string): Promise<string | null>;
  /** The Issue's file on `giro/<spec>`, or on another ref. */
  issueFile(id: string, ref?: string): Promise<string>;
  /** Writes the Issue's file in the checkout. */
  writeIssue(id: string, issue: TestIssue): Promise<void>;
}

/** How giro is started. */
export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Written to stdin; `null` (default): stdin is /dev/null. */
  readonly stdin?: string | null;
}

const defaultAgent = 'echo "by $GIRO_ISSUE" > "$GIRO_ISSUE.txt"\n';

/** Makes a project. Afterwards nothing of the person's may have changed, and no process of it may live. */
export async function makeProject(setup: ProjectSetup): Promise<Project> {
  const repository = await makeRepository(setup);
  const spec = setup.spec ?? 's1';
  const environment: Record<string, string> = {
    ...repository.own,
    TERM: 'dumb',
    XDG_CACHE_HOME: join(repository.folder, 'cache'),
    TMPDIR: repository.folder,
  };
  const project: Project = Object.assign(repository, {
    spec,
    environment,
    giro: (args: readonly string[], options: RunOptions = {}) => startGiro(project, args, options).ended,
    start: (args: readonly string[], options: RunOptions = {}) => startGiro(project, args, options),
    implement: (...args: readonly string[]) => startGiro(project, ['implement', spec, '--json', ...args], {}).ended,
    show: (ref: string, path: string) => repository.git('show', `${ref}:${path}`).catch(() => null),
    issueFile: async (id: string, ref = `giro/${spec}`) =>
      repository.git('show', `${ref}:docs/specs/${spec}/issues/${id}.md`),
    writeIssue: (id: string, issue: TestIssue) =>
      repository.write(`docs/specs/${spec}/issues/${id}.md`, issueText(id, issue)),
  });
  await repository.write(`docs/specs/${spec}/SPEC.md`, '---\nstate: draft\n---\n# A test Spec\n\nWhat is wanted.\n');
  for (const [id, issue] of Object.entries(setup.issues)) await project.writeIssue(id, issue);
  if (setup.run === undefined)
    await repository.write('agent.sh', `#!/bin/sh\nset -e\n${setup.agent ?? defaultAgent}`, 0o755);
  await repository.write('giro.toml', policyText(setup));
  onTestFinished(async () => {
    // What was just killed may need a moment to go.
    let left = await processesBelow(repository.folder);
    for (let wait = 0; left.length > 0 && wait < 40; wait += 1) {
      await delay(50);
      left = await processesBelow(repository.folder);
    }
    if (left.length > 0) throw new Error(`processes are left in ${repository.folder}: ${left.join(', ')}`);
  });
  return project;
}

/** Asserts that whatever ran left the person's side as it was. */
export async function unchangedBy<T>(project: TestRepository, act: () => Promise<T>): Promise<T> {
  const before = await project.fingerprint();
  const result = await act();
  const after = await project.fingerprint();
  if (before !== after) throw new Error(`the person's repository changed:\n${before}\n---\n${after}`);
  return result;
}

/** Events of one type. */
export function eventsOf<T extends Event['type']>(run: GiroRun, type: T): readonly Extract<Event, { type: T }>[] {
  return run.events.filter((event): event is Extract<Event, { type: T }> => event.type === type);
}

function issueText(id: string, issue: TestIssue): string {
  const frontmatter = issue.frontmatter === undefined ? '' : `${issue.frontmatter}\n`;
  return `---\nstate: ready\n${frontmatter}---\n# Issue ${id}\n\n${issue.body ?? `Do ${id}.`}\n`;
}

function policyText(setup: ProjectSetup): string {
  const run = setup.run ?? ['./agent.sh'];
  return `[driver]
default = "command"
[driver.command]
run = ${JSON.stringify(run)}
[budget]
${setup.budget ?? 'attempts = 2\nattempt-timeout = "60s"'}
[limits]
grace = "1s"
${setup.limits ?? ''}
[verify]
${setup.verify ?? 'test = "true"'}
${setup.toml?.includes('[evidence]') === true ? '' : '[evidence]\nbaseline = "allow"'}
${setup.toml ?? ''}
`;
}

function startGiro(project: Project, args: readonly string[], options: RunOptions): GiroProcess {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: options.cwd ?? project.path,
    env: { ...project.environment, ...options.env },
    stdio: [typeof options.stdin === 'string' ? 'pipe' : 'ignore', 'pipe', 'pipe'],
  });
  child.stdin?.end(options.stdin ?? '');
  const feed = new EventFeed();
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    if (args.includes('--json')) feed.take(text);
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = new Promise<GiroRun>((done, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      feed.close();
      done({ code, signal, stdout, stderr, events: feed.events });
    });
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  return {
    child,
    pid: child.pid ?? -1,
    ended,
    event: (type, accept) => feed.wait(type, accept),
    kill: (signal) => {
      child.kill(signal);
    },
  };
}

/** Parses NDJSON as it arrives, and lets a test wait for an event. */
class EventFeed {
  readonly events: Event[] = [];
  readonly #waiting = new Set<() => void>();
  #rest = '';
  #closed = false;

  take(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) if (line.startsWith('{')) this.events.push(JSON.parse(line) as Event);
    this.#wake();
  }

  close(): void {
    this.#closed = true;
    this.#wake();
  }

  async wait<T extends Event['type']>(
    type: T,
    accept: (event: Extract<Event, { type: T }>) => boolean = () => true,
  ): Promise<Extract<Event, { type: T }>> {
    for (;;) {
      const found = this.events.find(
        (event): event is Extract<Event, { type: T }> =>
          event.type === type && accept(event as Extract<Event, { type: T }>),
      );
      if (found !== undefined) return found;
      if (this.#closed) throw new Error(`giro ended without ${type}`);
      await new Promise<void>((wake) => this.#waiting.add(wake));
    }
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}

async function processesBelow(folder: string): Promise<readonly string[]> {
  const left: string[] = [];
  for (const pid of await readdir('/proc').catch(() => [])) {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) continue;
    const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => '');
    if (cwd === folder || cwd.startsWith(`${folder}/`)) left.push(pid);
  }
  return left;
}

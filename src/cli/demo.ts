/** `giro demo`: the whole engine on a made-up repository, played by the scripted driver through the real worktrees and gates. */
import { mkdtemp, realpath } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { writeAtomic } from '../platform/files.js';
import { makeFolder } from '../platform/folders.js';
import { createRepository, openGit } from '../worktree/git.js';
import { demoFiles, demoPolicy, demoScript, demoSpec } from './demo-project.js';
import { exitCodes } from './exit.js';
import { implement } from './implement.js';
import type { ProcessEnd } from './options.js';
import { renderFailure } from './failure-text.js';
import { write, type Terminal } from './show.js';

/** What was typed. */
export interface DemoOptions {
  readonly plain: boolean;
  readonly json: boolean;
  readonly fast: boolean;
}

/** Agents at once in the demo: enough to see them side by side. */
const demoAgents = 3;

/** Runs the command. */
export async function demo(options: DemoOptions, terminal: Terminal): Promise<ProcessEnd> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'giro-demo-')));
  const folder = join(root, 'tally');
  const say = (text: string): void => {
    if (!options.json) write(terminal, text);
  };
  await writeFiles(folder, demoFiles);
  const made = await createRepository({
    folder,
    own: terminal.env,
    message: 'A library that reads and writes amounts',
  });
  if (!made.ok) {
    process.stderr.write(`${renderFailure(made.failure)}\n`);
    return { exit: exitCodes.error };
  }
  await writeFiles(folder, {
    ...demoSpec,
    'giro.toml': demoPolicy(join(root, 'worktrees')),
    'demo.json': `${JSON.stringify(options.fast ? faster(demoScript) : demoScript, null, 2)}\n`,
  });
  say(
    `A made-up repository: ${folder}\nIts Spec docs/specs/tally has eight Issues; giro implement tally starts now.\n\n`,
  );
  const end = await implement(
    {
      target: 'tally',
      concurrency: demoAgents,
      maxCost: null,
      json: options.json,
      plain: options.plain,
      dryRun: false,
      quiet: false,
      verbose: false,
      folder,
      deadline: null,
    },
    terminal,
  );
  await tellStory(folder, terminal, say);
  return end;
}

/** Prints the story of the branch and where everything lies. */
async function tellStory(folder: string, terminal: Terminal, say: (text: string) => void): Promise<void> {
  const git = await openGit({ folder, own: terminal.env, runFolder: null });
  if (!git.ok) return;
  try {
    const story = await git.value.user.logGraph('refs/heads/giro/tally');
    say(
      [
        '',
        '$ git log --graph --first-parent giro/tally',
        story.trimEnd(),
        '',
        `repository  ${folder}`,
        `an Issue    ${join(folder, 'docs/specs/tally/issues/07-alerts.md')}`,
        `its story   git -C ${folder} show giro/tally:docs/specs/tally/issues/07-alerts.md`,
        `logs        ${join(git.value.commonDir, 'giro', 'runs')}`,
        `look again  ${program()} status tally -C ${folder}`,
        `remove it   rm -r ${dirname(folder)}`,
        '',
      ].join('\n'),
    );
  } finally {
    await git.value.close();
  }
}

/** How a person starts giro from where they are. */
function program(): string {
  const script = process.argv[1] ?? '';
  return basename(script) === 'giro.js' ? `node ${relative(process.cwd(), script)}` : 'giro';
}

async function writeFiles(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder, name);
    await makeFolder(dirname(path));
    await writeAtomic(path, text, { sync: false });
  }
}

/** The same play without the pauses; their order stays. */
function faster(script: typeof demoScript): typeof demoScript {
  const issues = Object.entries(script.issues).map(([id, attempts]) => {
    const quick = attempts.map((attempt) => ({ ...attempt, waitMs: Math.round(attempt.waitMs / 20) }));
    return [id, quick] as const;
  });
  return { issues: Object.fromEntries(issues) };
}

import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'smol-toml';
import { beforeAll, describe, expect, test } from 'vitest';
import { exitCodes, exitHelp } from '../../src/cli/exit.js';
import { loadPolicy } from '../../src/config/load.js';
import type { Policy } from '../../src/policy.js';
import { temporaryFolder } from '../rig/temp.js';
import { allSources, blocksOf, documents, proseOf, readText, root, tableBelow } from './markdown.js';

const run = promisify(execFile);

/** What the program says of one of its commands. */
async function helpOf(...command: readonly string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [join(root, 'bin/giro.js'), ...command, '--help'], {
    timeout: 20_000,
  });
  return stdout;
}

/** Long and short options that a help text lists. */
function optionsOf(help: string): ReadonlySet<string> {
  return new Set(
    [...help.matchAll(/^ {2}(?:(-\w), )?(--[\w-]+)/gm)].flatMap(([, short, long]) => [short ?? '', long ?? '']),
  );
}

interface Typed {
  readonly document: string;
  readonly line: string;
  readonly command: string;
  readonly words: readonly string[];
}

/** Every call of giro in a document, as a shell would cut it. */
function callsOf(document: string): readonly Typed[] {
  const shell = blocksOf(readText(document)).filter(({ language }) => /^(?:sh|bash|yaml|)$/.test(language));
  const spans = [...proseOf(readText(document)).matchAll(/^(?!#).*$/gm)]
    .flatMap(([row]) => [...row.matchAll(/`(giro [a-z-][^`]*)`/g)])
    .map(([, span = '']) => span);
  const lines = [...shell.flatMap(({ text }) => text.split('\n')), ...spans];
  const calls = lines.flatMap((line) => line.replace(/(?:^|\s)#.*$/, '').split(/&&|\|\||[|;(]/));
  return calls.flatMap((call) => {
    const [, text] = /(?:^|\s)(?:giro|node \S*bin\/giro\.js)\s+(\S.*)$/.exec(call.trim()) ?? [];
    if (text === undefined) return [];
    const [command = '', ...words] = text
      .replace(/\s*(?:>>?|2>&1).*$/, '')
      .trim()
      .split(/\s+/);
    return [{ document, line: call.trim(), command, words }];
  });
}

describe('the commands in the documents', () => {
  test('are ones that the program knows, with options that it has', async () => {
    const calls = documents.flatMap(callsOf);
    const top = await helpOf();
    const commands = [...top.matchAll(/^ {2}([a-z]+) (?:\[|<| )/gm)].map(([, name = '']) => name);
    const known = new Map<string, ReadonlySet<string>>([['', optionsOf(top)]]);
    for (const name of commands) known.set(name, optionsOf(await helpOf(name)));
    expect(calls.length).toBeGreaterThan(30);
    expect(new Set(calls.map(({ document }) => document))).toContain('README.md');
    const wrong = calls.filter(({ command, words }) => {
      const isOption = command.startsWith('-');
      const options = known.get(isOption ? '' : command);
      const used = [...(isOption ? [command] : []), ...words].filter((word) => word.startsWith('-'));
      return options === undefined || used.some((option) => !options.has(option.split('=')[0] ?? ''));
    });
    expect(wrong).toEqual([]);
  });

  test('say nothing of commands that do not exist', () => {
    const planned = ['logs', 'report'];
    const named = documents.flatMap((document) =>
      planned
        .filter((name) => new RegExp(`giro ${name}\\b`).test(readText(document)))
        .map((name) => `${document}: ${name}`),
    );
    expect(named).toEqual([]);
  });

  test('every option of implement is in the documents', async () => {
    const options = [...optionsOf(await helpOf('implement'))].filter((option) => option.startsWith('--'));
    const all = documents.map(readText).join('\n');
    const missing = options.filter((option) => !all.includes(option) && !['--help', '--version'].includes(option));
    expect(missing.filter((option) => option !== '--directory')).toEqual([]);
  });
});

describe('exit codes', () => {
  const fromSource = exitHelp
    .split('\n')
    .slice(1)
    .map((line) => /^ {2}(\d+(?:, \d+)*) {2}(.*)$/.exec(line)?.slice(1));

  test('the table of docs/exit-codes.md is that of the source', () => {
    const rows = tableBelow(readText('docs/exit-codes.md'), '# Exit codes');
    expect(rows.map((row) => row.map((cell) => cell.replaceAll('`', '')))).toEqual(fromSource);
  });

  test('the table of the README has the same codes in the same order', () => {
    const rows = tableBelow(readText('README.md'), '## Exit codes');
    expect(rows.map(([code]) => code)).toEqual(fromSource.map((row) => row?.[0]));
  });

  test('the table has every code that there is', () => {
    const codes = fromSource.flatMap((row) => row?.[0]?.split(', ').map(Number) ?? []);
    expect(codes).toEqual([
      ...Object.values(exitCodes).sort((left, right) => Number(left === 1) - Number(right === 1) || left - right),
      130,
      143,
      129,
    ]);
  });

  test('each has its own section in docs/exit-codes.md', () => {
    const text = readText('docs/exit-codes.md');
    for (const code of ['0', '2', '1', '130, 143, 129']) expect(text).toContain(`\n## ${code}: `);
  });
});

describe('settings', () => {
  let repository = '';

  // What the examples name besides themselves.
  beforeAll(async () => {
    const folder = await temporaryFolder();
    repository = folder.path;
    await mkdir(join(repository, 'skills/acceptance'), { recursive: true });
    await writeFile(
      join(repository, 'skills/acceptance/SKILL.md'),
      '---\nname: acceptance\ndescription: Accepts a Spec.\n---\n# Acceptance\n',
    );
    return () => folder.remove();
  });

  const load = (text: string): Policy => {
    const policy = loadPolicy({
      text,
      file: 'giro.toml',
      repository,
      processors: 7,
      own: { HOME: '/home/me' },
    });
    if (!policy.ok) throw new Error(JSON.stringify(policy.failure, null, 2));
    return policy.value;
  };
  const smallest = '[driver]\ndefault = "command"\n[driver.command]\nrun = ["x"]\n[verify]\ntest = "true"\n';

  test.each(
    documents.flatMap((document) =>
      blocksOf(readText(document))
        .filter(({ language }) => language === 'toml')
        .map(({ text }, index) => ({ name: `${document} ${String(index + 1)}`, text })),
    ),
  )('the giro.toml of $name is one that giro takes, alone or beside the smallest one', ({ text }) => {
    const given = parse(text);
    const missing = smallest.split(/(?=^\[)/m).filter((table) => {
      const [, name = ''] = /^\[(\w+)/.exec(table) ?? [];
      return given[name] === undefined;
    });
    const roles = given['roles'] === undefined ? '' : '\n[driver.fast]\nkind = "command"\nrun = ["x"]\n';
    const chosen = Object.keys((given['driver'] ?? {}) as object).find((name) => name !== 'default');
    const isChosen = chosen === undefined || (given['driver'] as Record<string, unknown>)['default'] !== undefined;
    const head = isChosen ? '' : `[driver]\ndefault = ${JSON.stringify(chosen)}\n`;
    expect(load(`${head}${missing.join('')}\n${text}${roles}`).gates.length).toBeGreaterThan(0);
  });

  test('the defaults in the README are those of the program', () => {
    const { budget, limits, worktree, drivers } = load(smallest);
    const rows = new Map(
      tableBelow(readText('README.md'), '## Configuration').map(([key = '', value = '']) => [key, value]),
    );
    const duration = (ms: number): string => `\`"${String(ms / 60_000)}m"\``;
    const inFile: Readonly<Record<string, string>> = {
      '`[driver] default`': 'none, required',
      '`[driver.<name>] run`': 'none, required',
      '`[driver.<name>] env`': `\`${JSON.stringify(drivers.byName.get('command')?.env)}\``,
      '`[verify] <name>`': 'at least one',
      '`[budget] attempts`': `\`${String(budget.attempts)}\``,
      '`[budget] attempt-timeout`': duration(budget.attemptTimeoutMs),
      '`[limits] agents`': `\`${String(limits.agents)}\``,
      '`[limits] gates`': limits.gates === 7 ? 'processors' : String(limits.gates),
      '`[limits] gate-timeout`': duration(load(smallest).gates[0]?.timeoutMs ?? 0),
      '`[worktree] setup`': worktree.setup ?? 'none',
      '`[worktree] copy`, `link`': `\`${JSON.stringify([...worktree.copy, ...worktree.link])}\``,
      '`[worktree] root`': worktree.root ?? 'your cache folder',
    };
    expect(Object.fromEntries(rows)).toEqual(inFile);
  });
});

describe('docs/troubleshooting.md', () => {
  test('quotes only what the program says', () => {
    const sources = allSources();
    const quotes = [...readText('docs/troubleshooting.md').matchAll(/^### .*`.*$/gm)].flatMap(([heading]) =>
      [...heading.matchAll(/`([^`]+)`/g)].map(([, quote = '']) => quote),
    );
    const parts = quotes
      .flatMap((quote) => quote.split('…').map((part) => part.trim()))
      .filter((part) => part.length > 3);
    expect(parts.length).toBeGreaterThan(15);
    expect(parts.filter((part) => !sources.includes(part))).toEqual([]);
  });
});

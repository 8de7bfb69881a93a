/**
 * `npm run torture`: kills a run of the demo's Spec at random, twenty times, and each time runs the same command again. Prints
 * each kill, and at the end whether `giro/tally` is what an undisturbed run comes to. `-- --kills N --seed S`.
 */
import { spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const program = path.resolve(import.meta.dirname, '../bin/giro.js');
const { values } = parseArgs({ options: { kills: { type: 'string' }, seed: { type: 'string' } } });
const kills = Number(values.kills ?? 20);
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'giro-torture-')));
const random = randomFrom(seed);

const template = await makeTemplate();
console.log(`seed ${seed}: undisturbed first`);
const undisturbed = copyOf('undisturbed');
const started = performance.now();
run(undisturbed, 'implement');
// Short enough that few runs come to the end before the last.
const longestMs = (2 * (performance.now() - started)) / kills;
const wanted = outcomeOf(undisturbed);
if (wanted.exit !== 0) throw new Error(`the undisturbed run does not end well: ${wanted.proof}`);

const tortured = copyOf('tortured');
let count = 0;
for (let time = 0; time < kills; time += 1) if (await killAfter(tortured, random() * longestMs)) count += 1;
const last = run(tortured, 'implement');
const found = outcomeOf(tortured);
const faults = [
  last.status === 0 ? '' : `the last run ended with ${last.status}:\n${last.stdout.slice(-1500)}${last.stderr}`,
  ...Object.keys(wanted).map((key) =>
    found[key] === wanted[key] ? '' : `${key}:\n${found[key]}\nundisturbed:\n${wanted[key]}`,
  ),
].filter((fault) => fault !== '');
console.log(
  `${count} kills; ${faults.length === 0 ? 'the end is that of the undisturbed run' : 'the end is another one'}`,
);
for (const fault of faults) console.error(fault);
if (faults.length === 0) rmSync(folder, { recursive: true, force: true });
else console.error(`kept: ${folder}, seed ${seed}`);
process.exitCode = faults.length === 0 ? 0 : 1;

/** The demo's repository before anything ran in it. */
async function makeTemplate() {
  const home = path.join(folder, 'template');
  mkdirSync(home);
  const child = spawn(process.execPath, [program, 'demo', '--plain', '--fast'], {
    stdio: 'ignore',
    env: environment(home),
  });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  const repository = () =>
    readdirSync(home)
      .filter((name) => name.startsWith('giro-demo-'))
      .map((name) => path.join(home, name, 'tally'))[0] ?? '';
  while (!existsSync(path.join(repository(), 'demo.json'))) await pause(5);
  child.kill('SIGKILL');
  await ended;
  const made = repository();
  for (const left of ['worktrees', 'giro']) rmSync(path.join(made, '.git', left), { recursive: true, force: true });
  for (const ref of git(made, 'for-each-ref', '--format=%(refname)', 'refs/heads/giro', 'refs/heads/giro-issue').split(
    '\n',
  ))
    if (ref !== '') git(made, 'update-ref', '-d', ref);
  return made;
}

/** A copy with worktrees of its own, more attempts than kills, and a part for each of them. */
function copyOf(name) {
  const home = path.join(folder, name);
  mkdirSync(home);
  const repository = path.join(home, 'tally');
  cpSync(template, repository, { recursive: true });
  const policy = path.join(repository, 'giro.toml');
  const text = readFileSync(policy, 'utf8').replace(/^attempts = .*$/m, `attempts = ${3 * kills}`);
  writeFileSync(policy, text.replace(/^root = .*$/m, `root = ${JSON.stringify(path.join(home, 'worktrees'))}`));
  const script = path.join(repository, 'demo.json');
  const { issues } = JSON.parse(readFileSync(script, 'utf8'));
  for (const id of Object.keys(issues)) issues[id] = wholeParts(issues[id]);
  writeFileSync(script, JSON.stringify({ issues }));
  return { home, repository };
}

/** Whatever attempt it is, all files are written: the one before may have been cut off. Both sides of the conflict end alike. */
function wholeParts(attempts) {
  const parts = attempts.map((attempt, at) => ({
    ...attempt,
    edits: attempts.slice(0, at + 1).flatMap(({ edits }) => edits.map(sorted)),
  }));
  return [...parts, ...Array.from({ length: 3 * kills }, () => parts.at(-1))];
}

function sorted(edit) {
  if (edit.write !== 'README.md') return edit;
  const lines = edit.text.split('\n');
  const items = lines.filter((line) => line.startsWith('- ')).sort();
  return { ...edit, text: lines.map((line) => (line.startsWith('- ') ? items.shift() : line)).join('\n') };
}

function environment(home) {
  return { ...process.env, HOME: home, TMPDIR: home, XDG_CACHE_HOME: path.join(home, 'cache') };
}

function commandLine({ repository }, command) {
  return [program, command, 'tally', ...(command === 'implement' ? ['--plain'] : []), '-C', repository];
}

function run(place, command) {
  return spawnSync(process.execPath, commandLine(place, command), { encoding: 'utf8', env: environment(place.home) });
}

/** True: it was killed; false: it had come to its end before. */
async function killAfter(place, ms) {
  const child = spawn(process.execPath, commandLine(place, 'implement'), {
    stdio: 'ignore',
    env: environment(place.home),
  });
  const ended = new Promise((resolve) => child.on('exit', (_code, signal) => resolve(signal === 'SIGKILL')));
  const early = await Promise.race([ended.then(() => true), pause(ms).then(() => false)]);
  if (!early) child.kill('SIGKILL');
  const wasKilled = await ended;
  console.log(wasKilled ? `killed after ${Math.round(ms)} ms` : 'came to its end');
  return wasKilled;
}

function outcomeOf(place) {
  const { repository } = place;
  const { status, stdout } = run(place, 'proof');
  const files = git(repository, 'ls-tree', '-r', 'giro/tally')
    .split('\n')
    .filter((line) => !line.includes('\tdocs/specs/'));
  const states = git(repository, 'grep', '^state:', 'giro/tally', '--', 'docs/specs');
  const worktrees = git(repository, 'worktree', 'list').trim().split('\n').length - 1;
  return { exit: status, proof: status === 0 ? '' : stdout, files: files.join('\n'), states, worktrees };
}

function git(repository, ...args) {
  const { status, stdout, stderr } = spawnSync('git', ['-C', repository, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`);
  return stdout;
}

/** Mulberry32, by Tommy Ettinger: small, and the same everywhere. */
function randomFrom(start) {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

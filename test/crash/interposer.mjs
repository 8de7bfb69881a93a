/**
 * Loaded into giro before anything else: names what it does to the machine (files, refs, processes) step by step, and kills
 * it right before one of them. What was begun before is done or half-done, as with any kill.
 *
 * GIRO_KILL_AT: `<kind>#<n>`, the n-th step of a kind, or `any#<n>`. GIRO_STEPS: a file to which the kinds are written.
 */
import { Buffer } from 'node:buffer';
import childProcess from 'node:child_process';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const [killKind, killNumber] = (process.env['GIRO_KILL_AT'] ?? 'none#0').split('#');
const trace = process.env['GIRO_STEPS'];
const append = fs.appendFileSync;
const seen = new Map();
let inside = false;

function step(kind) {
  if (inside) return;
  inside = true;
  for (const name of [kind, 'any']) seen.set(name, (seen.get(name) ?? 0) + 1);
  if (trace !== undefined) append(trace, `${kind}\n`);
  if (seen.get(killKind) === Number(killNumber)) process.kill(process.pid, 'SIGKILL');
  inside = false;
}

/** What a path is for, without what differs from run to run. */
function place(path) {
  const text = String(path);
  const parts = text.split('/');
  const last = parts.at(-1) ?? '';
  if (text.startsWith('/sys/fs/cgroup/')) return 'cgroup';
  if (text.includes('/objects/')) return 'object';
  if (text.includes('/verdicts/')) return 'verdict';
  if (text.includes('/giro/locks/')) return 'lock';
  if (text.includes('/giro/short-lock/')) return 'short lock';
  if (text.includes('/giro/leases/')) return 'lease';
  if (text.includes('/slot-') || /\/(?:\.old|giro)-\w+/.test(text)) return 'temporary folder';
  if (text.includes('.trash-')) return 'trash';
  if (['facts.json', 'index', 'HEAD', 'locked', 'config', 'exclude', 'gitdir'].includes(last)) return last;
  if (last === '.git' || parts.at(-2) === '.git') return 'git folder';
  return 'other';
}

function wrap(name, kindOf) {
  const real = fs[name];
  fs[name] = function (...args) {
    step(kindOf(...args));
    return real.apply(this, args);
  };
}

function written(data) {
  const text = typeof data === 'string' ? data : Buffer.from(data.subarray(0, 300)).toString('utf8');
  const event = /"type":"([a-z.]+)"/.exec(text)?.[1];
  return event === undefined ? 'write' : `event ${event}`;
}

wrap('writeSync', (_file, data) => written(data));
wrap('renameSync', (_from, to) => `rename ${place(to)}`);
wrap('linkSync', (_from, to) => `link ${place(to)}`);
wrap('symlinkSync', () => 'symlink');
wrap('rmSync', (path) => `remove ${place(path)}`);
wrap('unlinkSync', (path) => `remove ${place(path)}`);
wrap('rmdirSync', (path) => `remove ${place(path)}`);
wrap('mkdirSync', (path) => `mkdir ${place(path)}`);
wrap('fsync', () => 'sync');

/** What is said to a child that lives long: `update-ref --stdin`, and the shells that start git. */
function said(chunk) {
  const text = String(chunk);
  const ref = /(create|update|delete) refs\/(heads\/giro-issue|heads\/giro|giro\/salvage|notes)/.exec(text);
  if (ref !== null) return `${ref[1]} ${ref[2]}`;
  const command = /'(add|write-tree|read-tree|diff-files|ls-files|merge-tree|status|worktree|clean|update-index)'/.exec(
    text,
  );
  return command === null ? null : `git ${command[1]}`;
}

const realSpawn = childProcess.spawn;
childProcess.spawn = function (file, args, ...rest) {
  // A shell that goes into a cgroup becomes what stands behind it.
  const becomes = Array.isArray(args) && String(args[1]).endsWith('exec "$@"') ? args[3] : file;
  const program = String(becomes).split('/').at(-1);
  step(`start ${program === 'agent.sh' ? 'agent' : program === 'bash' ? 'gate' : program}`);
  const child = realSpawn.call(this, file, args, ...rest);
  const write = child.stdin?.write;
  if (write !== undefined && (program === 'git' || program === 'sh')) {
    child.stdin.write = function (chunk, ...more) {
      const kind = said(chunk);
      if (kind !== null) step(kind);
      return write.call(this, chunk, ...more);
    };
  }
  return child;
};
syncBuiltinESMExports();

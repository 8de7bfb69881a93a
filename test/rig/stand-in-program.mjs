// The program behind StandIn: connects to the test, tells how it was started, and does what it is told.
// argv: socket name [--no-stdin]. Everything comes by argv, since children get an allow-listed environment.
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';

const [socketPath, name, ...rest] = process.argv.slice(2);
const readsStdin = rest[0] !== '--no-stdin';
const socket = connect(socketPath);
const send = (message) => socket.write(`${JSON.stringify(message)}\n`);

// Without the test there is nobody to obey: never stay behind.
socket.on('close', () => process.kill(process.pid, 'SIGKILL'));
socket.on('error', () => process.kill(process.pid, 'SIGKILL'));

const commands = {
  write({ files }) {
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(path), { recursive: true });
      if (content === null) rmSync(path, { recursive: true, force: true });
      else writeFileSync(path, content);
    }
  },
  read: ({ path }) => readFileSync(path, 'utf8'),
  run: ({ command }) =>
    new Promise((resolve) => {
      const child = spawn('sh', ['-c', command], { stdio: ['ignore', 'pipe', 'pipe'] });
      let stdout = '';
      let stderr = '';
      child.stdout.on('data', (chunk) => (stdout += chunk));
      child.stderr.on('data', (chunk) => (stderr += chunk));
      child.on('close', (code) => resolve({ code, stdout, stderr }));
    }),
  // Left running in the background, with the output of this program.
  start: ({ command }) => spawn('sh', ['-c', command], { stdio: ['ignore', 'inherit', 'inherit'] }).pid,
  print: ({ text, to }) => new Promise((resolve) => process[to].write(text, () => resolve())),
  ignore: ({ signal }) => void process.on(signal, () => send({ signal })),
  exit({ code }) {
    process.exit(code);
  },
  kill({ signal }) {
    process.kill(process.pid, signal);
  },
};

socket.on('connect', async () => {
  let stdin = '';
  if (readsStdin) for await (const chunk of process.stdin.setEncoding('utf8')) stdin += chunk;
  send({ name, argv: process.argv.slice(2), cwd: process.cwd(), env: process.env, stdin, pid: process.pid });
  for await (const line of createInterface({ input: socket })) {
    const { id, command, parameters } = JSON.parse(line);
    try {
      send({ id, value: (await commands[command](parameters)) ?? null });
    } catch (error) {
      send({ id, error: String(error) });
    }
  }
});

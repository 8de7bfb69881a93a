import { execFileSync } from 'node:child_process';
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  readEnvelopeFile as readFileBy,
  readOutput as readOutputBy,
  type EnvelopeReading,
} from '../../src/drivers/envelope.js';
import { workerContract, type WorkerEnvelope } from '../../src/drivers/worker.js';
import { temporaryFolder } from '../rig/temp.js';

const done = { kind: 'valid', envelope: { status: 'done' } } as const;

async function readEnvelopeFile(path: string): Promise<EnvelopeReading<WorkerEnvelope>> {
  return (await readFileBy(path, workerContract)).reading;
}

function readOutput(output: string): { readonly reading: EnvelopeReading<WorkerEnvelope>; readonly isLast: boolean } {
  const { reading, isLast } = readOutputBy(output, workerContract);
  return { reading, isLast };
}

async function readingOf(content: string | Uint8Array): Promise<EnvelopeReading<WorkerEnvelope>> {
  const folder = await temporaryFolder();
  const path = join(folder.path, 'envelope.json');
  await writeFile(path, content);
  return readEnvelopeFile(path);
}

test('an envelope is read with its summary and question, and unknown keys are let be', async () => {
  expect(await readingOf('{"status":"blocked","summary":"s","question":"q?","model":"m"}')).toEqual({
    kind: 'valid',
    envelope: { status: 'blocked', summary: 's', question: 'q?' },
  });
  expect(await readingOf('Here it is:\n```json\n{"status":"done"}\n```\n')).toEqual(done);
});

test('no file and an empty file are absent', async () => {
  const folder = await temporaryFolder();
  expect(await readEnvelopeFile(join(folder.path, 'none'))).toEqual({ kind: 'absent' });
  expect(await readEnvelopeFile(join(folder.path, 'no', 'folder'))).toEqual({ kind: 'absent' });
  expect(await readingOf('')).toEqual({ kind: 'absent' });
  expect(await readingOf(' \n')).toEqual({ kind: 'absent' });
});

test('a file that is there and is no envelope is invalid, never absent', async () => {
  for (const content of [
    'done',
    '{"status":"done"',
    '{"state":"done"}',
    '{"status":"DONE"}',
    '{"status":true}',
    '{"status":"done","summary":null}',
    '{"status":"done","question":["a"]}',
    '{"status":"done","status":"blocked"}',
    '{"__proto__":{"status":"done"}}',
    '[]',
    'null',
    '{"status":"unavailable"}',
    '{"status":"unavailable","reason":"tired"}',
    '{"status":"unavailable","reason":"auth","until":"some day"}',
  ]) {
    expect((await readingOf(content)).kind, content).toBe('invalid');
  }
});

test('a folder, a link, a pipe and a file that may not be read are invalid', { timeout: 10_000 }, async () => {
  const folder = await temporaryFolder();
  const at = (name: string): string => join(folder.path, name);
  await mkdir(at('folder'));
  await writeFile(at('target'), '{"status":"done"}');
  await symlink(at('target'), at('link'));
  execFileSync('mkfifo', [at('pipe')]);
  expect(await readEnvelopeFile(at('folder'))).toEqual({
    kind: 'invalid',
    reason: 'the envelope file cannot be read: it is a folder, not a plain file',
  });
  expect((await readEnvelopeFile(at('link'))).kind).toBe('invalid');
  expect((await readEnvelopeFile(at('pipe'))).kind).toBe('invalid');
  // Root may read everything, so for root the path has to be impossible instead.
  await writeFile(at('closed'), '{"status":"done"}');
  await chmod(at('closed'), 0);
  const closed = process.getuid?.() === 0 ? at('x'.repeat(300)) : at('closed');
  expect((await readEnvelopeFile(closed)).kind).toBe('invalid');
});

test('of a huge file only the end counts, and bytes that are no UTF-8 do no harm', async () => {
  const huge = Buffer.concat([Buffer.alloc(3 * 1024 * 1024, 'ä{"'), Buffer.from('\n{"status":"done"}')]);
  expect(await readingOf(huge)).toEqual(done);
  const bad = Buffer.concat([
    Buffer.from([0xff, 0xc3, 0x28]),
    Buffer.from('{"status":"done","summary":"'),
    Buffer.from([0xff]),
    Buffer.from('"}'),
  ]);
  expect(await readingOf(bad)).toEqual({ kind: 'valid', envelope: { status: 'done', summary: '\ufffd' } });
});

test('what stands more than a mebibyte before the end is not read', async () => {
  expect((await readingOf(`{"status":"done"}\n${'-'.repeat(1024 * 1024)}`)).kind).toBe('invalid');
  expect(await readingOf(`{"status":"done"}\n${'-'.repeat(1024 * 1024 - 100)}`)).toEqual(done);
});

test('a summary of a megabyte is cut', async () => {
  const reading = await readingOf(JSON.stringify({ status: 'done', summary: 'x'.repeat(900_000) }));
  expect(reading.kind === 'valid' && reading.envelope.summary?.length).toBe(4001);
});

test('trouble is read with its time', async () => {
  expect(await readingOf('{"status":"unavailable","reason":"usage-limit","until":"2030-01-02T03:04+01:00"}')).toEqual({
    kind: 'unavailable',
    unavailable: { status: 'unavailable', reason: 'usage-limit', until: '2030-01-02T02:04:00.000Z' },
  });
});

test('in an output the last envelope counts, and words never do', () => {
  const output = 'I will not output DONE.\n{"status":"blocked"}\nimplementation complete\n{"status":"done"}\nbye\n';
  expect(readOutput(output)).toEqual({ reading: done, isLast: false });
  expect(readOutput('status: done, "status":"done", DONE')).toEqual({ reading: { kind: 'absent' }, isLast: false });
});

test('in an output a foreign object with a status is noise in the middle, and a bad envelope at the end', () => {
  expect(readOutput('curl: {"status":"ok"}\nAll good.').reading).toEqual({ kind: 'absent' });
  expect(readOutput('All good.\n{"status":"ok"}\n').reading.kind).toBe('invalid');
  expect(readOutput('{"status":"done","summary":7}\nbye').reading.kind).toBe('invalid');
});

test('an envelope is the last thing also in a code fence', () => {
  expect(readOutput('```json\n{"status":"done"}\n```\n').isLast).toBe(true);
  expect(readOutput('{"status":"done"} and more').isLast).toBe(false);
});

test('an error flag in the closing line of an agent is read from its field', () => {
  const line =
    '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"limit\\u001b[2J reached"}';
  expect(readOutput(`starting\n${line}\n`).reading).toEqual({
    kind: 'error',
    reason: 'error 429: limit\\u{1b}[2J reached',
  });
  expect(readOutput(`${line}\nand then it went on`).reading).toEqual({ kind: 'absent' });
  expect(readOutput('{"type":"user","is_error":true}').reading).toEqual({ kind: 'absent' });
  expect(readOutput('{"type":"result","is_error":false,"result":"is_error: true"}').reading).toEqual(done);
});

test('an envelope inside the closing line of an agent counts, as text or as structured output', () => {
  const blocked = { status: 'blocked', question: 'q' };
  const text = { type: 'result', is_error: false, result: `I am stuck.\n${JSON.stringify(blocked)}` };
  const structured = { type: 'result', is_error: false, structured_output: blocked };
  for (const line of [text, structured]) {
    const output = `{"type":"system","subtype":"status","status":"compacting"}\n${JSON.stringify(line)}\n`;
    expect(readOutput(output)).toEqual({ reading: { kind: 'valid', envelope: blocked }, isLast: true });
  }
});

test('denied tools are named once each, beside what the agent says itself', () => {
  const denials = ['Write', 'Bash', 'Write'].map((tool_name) => ({ tool_name, tool_use_id: 'x' }));
  const summaryOf = (result: string): string | undefined => {
    const { reading } = readOutput(
      JSON.stringify({ type: 'result', is_error: false, result, permission_denials: denials }),
    );
    return reading.kind === 'valid' ? reading.envelope.summary : reading.kind;
  };
  const denied = 'the agent was denied Write, Bash: allow that in the permission options of its command line';
  expect(summaryOf('I could not.')).toBe(denied);
  expect(summaryOf('{"status":"done","summary":"half"}')).toBe(`half (${denied})`);
  expect(summaryOf('{"status":"DONE"}')).toBe('invalid');
});

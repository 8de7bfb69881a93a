/** Reads what an agent says at its end. One parser for every driver and role; what it cannot read is never taken for a yes. */
import { z } from 'zod';
import { failed, ok, type Result } from '../failure.js';
import { kindOf, readTail } from '../platform/files.js';
import { printable } from '../platform/text.js';
import { unknownUsage, type Usage } from '../usage.js';
import type { EnvelopeContract } from './driver.js';
import { endsInside, lastObjectWith, objectsFromTheEnd, type FoundObject } from './json.js';
import { claudeUsage, envelopeUsage, type Spent } from './spent.js';

/** How much of the end of a file or an output is looked at. */
export const envelopeBytes = 1024 * 1024;

const unavailableSchema = z.object({
  status: z.literal('unavailable'),
  reason: z.enum(['usage-limit', 'auth', 'network', 'overload']),
  until: z
    .string()
    .refine((value) => !Number.isNaN(Date.parse(value)), 'not a time')
    .transform((value) => new Date(value).toISOString())
    .exactOptional(),
});

/** Claude Code and its like end with such a line. Its words are not read, only its flags. */
const reportSchema = z.object({
  type: z.literal('result'),
  is_error: z.boolean(),
  subtype: z.string().exactOptional(),
  api_error_status: z.union([z.number(), z.string()]).nullish(),
  result: z.unknown().optional(),
  structured_output: z.unknown().optional(),
  permission_denials: z.array(z.object({ tool_name: z.string() })).exactOptional(),
});

type Report = z.infer<typeof reportSchema>;

/** What a `command` agent says together with exit 75. */
export type Unavailable = z.infer<typeof unavailableSchema>;

/** What stands where an envelope was looked for. */
export type EnvelopeReading<T> =
  | { readonly kind: 'absent' }
  | { readonly kind: 'valid'; readonly envelope: T }
  /** Not an envelope, but trouble told in the agreed form; means something only with exit 75. */
  | { readonly kind: 'unavailable'; readonly unavailable: Unavailable }
  /** The agent's own closing line flags an error. */
  | { readonly kind: 'error'; readonly reason: string }
  | { readonly kind: 'invalid'; readonly reason: string };

/** What was read, and what the call says it cost. */
export interface Read<T> extends Spent {
  readonly reading: EnvelopeReading<T>;
}

/** An envelope, and whether it is the very last thing that was printed. */
export interface OutputReading<T> extends Read<T> {
  readonly isLast: boolean;
}

const unknown: Spent = { usage: unknownUsage, model: null };

/** Reads what an agent printed: its own closing line, where it has one, else the last envelope. */
export function readOutput<T>(output: string, contract: EnvelopeContract<T>): OutputReading<T> {
  const report = readReport(output, contract);
  return report === null ? readEnvelope(output, contract) : { ...report, isLast: true };
}

/** Reads the last JSON object of an output that has a field of the envelope. */
function readEnvelope<T>(output: string, contract: EnvelopeContract<T>): OutputReading<T> {
  const found = lastObjectWith(output, ...contract.fields);
  if (found === undefined) {
    const trouble = readTrouble(output);
    const isLast = trouble !== undefined && nothingAfter(output, trouble.end);
    return { ...unknown, reading: trouble?.reading ?? { kind: 'absent' }, isLast };
  }
  const isLast = nothingAfter(output, found.end);
  const doubt = contract.single ? doubtOf(output, found, contract.fields) : null;
  const reading = doubt ?? judgeObject(found, contract);
  if (reading.kind === 'invalid' && reading !== doubt && !isLast && !contract.isMeant(found.value)) {
    return { ...unknown, reading: { kind: 'absent' }, isLast: false };
  }
  return { ...envelopeUsage(found.value), reading, isLast };
}

/** Reads an envelope file. One that is there and cannot be read is invalid, never absent; an empty one is absent. */
export async function readEnvelopeFile<T>(path: string, contract: EnvelopeContract<T>): Promise<Read<T>> {
  const content = await contentOf(path);
  if (!content.ok) {
    return {
      ...unknown,
      reading: { kind: 'invalid', reason: `the envelope file cannot be read: ${content.failure}` },
    };
  }
  if (content.value.trim() === '') return { ...unknown, reading: { kind: 'absent' } };
  const { reading, usage, model } = readEnvelope(content.value, contract);
  if (reading.kind !== 'absent') return { reading, usage, model };
  const wanted = contract.fields.map((field) => JSON.stringify(field)).join(' or ');
  const reason = `the envelope file holds no complete JSON object with a ${wanted}`;
  return { ...unknown, reading: { kind: 'invalid', reason } };
}

/** The agent made this file, so everything about it may be odd; nothing of that is a bug. */
async function contentOf(path: string): Promise<Result<string, string>> {
  try {
    const kind = await kindOf(path);
    if (kind === null) return ok('');
    // Reading a pipe would never end, and a link could lead anywhere.
    return kind === 'file' ? ok(await readTail(path, envelopeBytes)) : failed(`it is a ${kind}, not a plain file`);
  } catch (cause) {
    return failed(cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause));
  }
}

/** Reads the closing line of an agent that reports in its own format; only the very last thing of an output is one. */
function readReport<T>(output: string, contract: EnvelopeContract<T>): Read<T> | null {
  const found = lastObjectWith(output, 'is_error');
  if (found === undefined || !nothingAfter(output, found.end)) return null;
  const parsed = reportSchema.safeParse(found.value);
  if (!parsed.success) return null;
  const report = parsed.data;
  const spent = claudeUsage(found.value);
  if (report.is_error) return { ...spent, reading: { kind: 'error', reason: describeError(report) } };
  const { reading } = readEnvelope(spokenBy(report), contract);
  const { absent } = contract;
  // Such a line is the agent's own word that it has ended, with or without an envelope in it.
  const told: EnvelopeReading<T> =
    reading.kind === 'absent' && absent !== null ? { kind: 'valid', envelope: absent } : reading;
  return { ...spent, reading: withDenials(told, report, contract) };
}

/** Where a program has a place of its own for a structured answer, only that counts, not the prose beside it. */
function spokenBy({ structured_output: structured, result }: Report): string {
  if (structured !== undefined && structured !== null) return JSON.stringify(structured);
  return typeof result === 'string' ? result : '';
}

/** An agent that may not do its work ends politely. Whoever looks into it should see why. */
function withDenials<T>(
  reading: EnvelopeReading<T>,
  { permission_denials: denials = [] }: Report,
  { noted }: EnvelopeContract<T>,
): EnvelopeReading<T> {
  const tools = [...new Set(denials.map((denial) => printable(denial.tool_name).slice(0, 40)))].slice(0, 10);
  if (tools.length === 0 || reading.kind !== 'valid' || noted === undefined) return reading;
  const note = `the agent was denied ${tools.join(', ')}: allow that in the permission options of its command line`;
  return { kind: 'valid', envelope: noted(reading.envelope, note) };
}

function describeError({ api_error_status: status, result, subtype }: Report): string {
  const words = typeof result === 'string' && result !== '' ? result : (subtype ?? 'no reason given');
  const code = status === null || status === undefined ? '' : ` ${String(status)}`;
  return printable(`error${code}: ${words.replace(/\s+/g, ' ').trim().slice(0, 300)}`);
}

function nothingAfter(output: string, end: number): boolean {
  return /^[\s`]*$/.test(output.slice(end));
}

/** What two envelopes say that do not agree. */
export const contradiction = {
  kind: 'invalid',
  reason: 'there is more than one envelope, and they do not agree',
} as const;

const cutOff = { kind: 'invalid', reason: 'the envelope was cut off' } as const;

/** Why an output that is to say one thing only says nothing, whatever object stands last in it. */
function doubtOf(
  output: string,
  found: FoundObject,
  fields: readonly string[],
): typeof contradiction | typeof cutOff | null {
  if (!allAlike(output, fields)) return contradiction;
  return endsInside(output, found, fields) ? cutOff : null;
}

function allAlike(output: string, fields: readonly string[]): boolean {
  const said = new Set<string>();
  for (const { value } of objectsFromTheEnd(output, fields)) said.add(JSON.stringify(value));
  return said.size <= 1;
}

/** Trouble is told in the same form by every role. */
function readTrouble(
  output: string,
):
  | { readonly reading: { readonly kind: 'unavailable'; readonly unavailable: Unavailable }; readonly end: number }
  | undefined {
  const found = lastObjectWith(output, 'status');
  const parsed = unavailableSchema.safeParse(found?.value);
  if (found === undefined || found.repeated.length > 0 || !parsed.success) return undefined;
  return { reading: { kind: 'unavailable', unavailable: parsed.data }, end: found.end };
}

function judgeObject<T>({ value, repeated }: FoundObject, contract: EnvelopeContract<T>): EnvelopeReading<T> {
  const [twice] = repeated;
  if (twice !== undefined)
    return { kind: 'invalid', reason: `the envelope has ${JSON.stringify(printable(twice.slice(0, 40)))} twice` };
  const unavailable = unavailableSchema.safeParse(value);
  if (unavailable.success) return { kind: 'unavailable', unavailable: unavailable.data };
  const parsed = contract.parse(value);
  return parsed.ok ? { kind: 'valid', envelope: parsed.value } : { kind: 'invalid', reason: parsed.failure };
}

/** What two places say of the same call: the first that knows. */
export function firstKnown(first: Spent, second: Spent): Spent {
  const usage: Usage = {
    costUsd: first.usage.costUsd ?? second.usage.costUsd,
    tokens: first.usage.tokens ?? second.usage.tokens,
  };
  return { usage, model: first.model ?? second.model };
}

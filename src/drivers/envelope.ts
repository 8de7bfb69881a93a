/** Reads what a worker says at its end. One parser for every driver; whatever it cannot read is never taken for "done". */
import { z } from 'zod';
import { failed, ok, type Result } from '../failure.js';
import { kindOf, readTail } from '../platform/files.js';
import { printable } from '../platform/text.js';
import type { WorkerEnvelope } from './driver.js';
import { lastObjectWith } from './json.js';

/** How much of the end of a file or an output is looked at. */
export const envelopeBytes = 1024 * 1024;

/** More is not kept of a summary or a question: they go into a file that people read. The transcript has the whole text. */
const longestText = 4000;

const text = z.string().transform((value) => (value.length > longestText ? `${value.slice(0, longestText)}…` : value));

const workerSchema = z.object({
  status: z.enum(['done', 'blocked']),
  summary: text.exactOptional(),
  question: text.exactOptional(),
});

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
export type EnvelopeReading =
  | { readonly kind: 'absent' }
  | { readonly kind: 'valid'; readonly envelope: WorkerEnvelope }
  /** Not an envelope of a worker, but trouble told in the agreed form; means something only with exit 75. */
  | { readonly kind: 'unavailable'; readonly unavailable: Unavailable }
  /** The agent's own closing line flags an error. */
  | { readonly kind: 'error'; readonly reason: string }
  | { readonly kind: 'invalid'; readonly reason: string };

/** An envelope, and whether it is the very last thing that was printed. */
export interface OutputReading {
  readonly reading: EnvelopeReading;
  readonly isLast: boolean;
}

/** Reads what an agent printed: its own closing line, where it has one, else the last envelope. */
export function readOutput(output: string): OutputReading {
  const report = readReport(output);
  return report === null ? readEnvelope(output) : { reading: report, isLast: true };
}

/** Reads the last JSON object of an output that has a `status`. */
function readEnvelope(output: string): OutputReading {
  const found = lastObjectWith(output, 'status');
  if (found === undefined) return { reading: { kind: 'absent' }, isLast: false };
  const isLast = nothingAfter(output, found.end);
  const reading = judgeObject(found.value, found.repeated);
  // An output holds other things too: {"status":"ok"} of some server in the middle of it is not an attempt at an envelope.
  if (reading.kind === 'invalid' && !isLast && !isMeant(found.value['status'])) {
    return { reading: { kind: 'absent' }, isLast: false };
  }
  return { reading, isLast };
}

/** Reads an envelope file. One that is there and cannot be read is invalid, never absent; an empty one is absent. */
export async function readEnvelopeFile(path: string): Promise<EnvelopeReading> {
  const content = await contentOf(path);
  if (!content.ok) return { kind: 'invalid', reason: `the envelope file cannot be read: ${content.failure}` };
  if (content.value.trim() === '') return { kind: 'absent' };
  const found = lastObjectWith(content.value, 'status');
  if (found !== undefined) return judgeObject(found.value, found.repeated);
  return { kind: 'invalid', reason: 'the envelope file holds no complete JSON object with a "status"' };
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
function readReport(output: string): EnvelopeReading | null {
  const found = lastObjectWith(output, 'is_error');
  if (found === undefined || !nothingAfter(output, found.end)) return null;
  const parsed = reportSchema.safeParse(found.value);
  if (!parsed.success) return null;
  const report = parsed.data;
  if (report.is_error) return { kind: 'error', reason: describeError(report) };
  const { reading } = readEnvelope(
    typeof report.result === 'string' ? report.result : JSON.stringify(report.structured_output ?? ''),
  );
  // Such a line is the agent's own word that it has ended, with or without an envelope in it.
  return withDenials(reading.kind === 'absent' ? { kind: 'valid', envelope: { status: 'done' } } : reading, report);
}

/** An agent that may not do its work ends politely. Whoever looks into it should see why. */
function withDenials(reading: EnvelopeReading, { permission_denials: denials = [] }: Report): EnvelopeReading {
  const tools = [...new Set(denials.map((denial) => printable(denial.tool_name).slice(0, 40)))].slice(0, 10);
  if (tools.length === 0 || reading.kind !== 'valid') return reading;
  const { envelope } = reading;
  const denied = `the agent was denied ${tools.join(', ')}: allow that in the permission options of its command line`;
  const summary = envelope.summary === undefined ? denied : `${envelope.summary} (${denied})`;
  return { kind: 'valid', envelope: { ...envelope, summary } };
}

function describeError({ api_error_status: status, result, subtype }: Report): string {
  const words = typeof result === 'string' && result !== '' ? result : (subtype ?? 'no reason given');
  const code = status === null || status === undefined ? '' : ` ${String(status)}`;
  return printable(`error${code}: ${words.replace(/\s+/g, ' ').trim().slice(0, 300)}`);
}

function nothingAfter(output: string, end: number): boolean {
  return /^[\s`]*$/.test(output.slice(end));
}

function isMeant(status: unknown): boolean {
  return status === 'done' || status === 'blocked' || status === 'unavailable';
}

function judgeObject(value: Readonly<Record<string, unknown>>, repeated: readonly string[]): EnvelopeReading {
  const [twice] = repeated;
  if (twice !== undefined)
    return { kind: 'invalid', reason: `the envelope has ${JSON.stringify(printable(twice.slice(0, 40)))} twice` };
  const unavailable = unavailableSchema.safeParse(value);
  if (unavailable.success) return { kind: 'unavailable', unavailable: unavailable.data };
  const worker = workerSchema.safeParse(value);
  if (worker.success) return { kind: 'valid', envelope: worker.data };
  return { kind: 'invalid', reason: describeIssue(worker.error) };
}

function describeIssue(error: z.ZodError): string {
  const [issue] = error.issues;
  if (issue === undefined) return 'the envelope is not valid';
  return `the envelope is not valid: ${issue.path.join('.')}: ${issue.message}`;
}

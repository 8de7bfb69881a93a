/** The embedded driver of the demo and of tests: plays back declared edits and envelopes, really, in a real worktree. */
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import type { Ended } from '../event.js';
import { failed, ok, type Result } from '../failure.js';
import type { Clock } from '../platform/clock.js';
import {
  kindOf,
  makeFolder,
  openAppend,
  readIfExists,
  removeTree,
  writeAtomic,
  type LineWriter,
} from '../platform/files.js';
import type { DriverDefinition } from '../policy.js';
import { transcriptTail } from './command.js';
import type { Driver, DriverOutcome, DriverRequest, WorkerResult } from './driver.js';
import { readEnvelopeFile } from './envelope.js';
import { judgeEnding } from './result.js';

/** What the driver needs beyond its request. */
export interface ScriptedPorts {
  readonly clock: Clock;
  /** Root of the user's checkout; the script is looked up from there. */
  readonly repository: string;
}

const editSchema = z.union([
  z.strictObject({ write: z.string(), text: z.string(), executable: z.literal(true).exactOptional() }),
  z.strictObject({ delete: z.string() }),
  z.strictObject({ replace: z.string(), find: z.string().min(1), with: z.string() }),
]);

const attemptSchema = z.strictObject({
  edits: z.array(editSchema).default([]),
  output: z.array(z.string()).default([]),
  waitMs: z.number().int().nonnegative().default(0),
  /** Anything, so that a bad envelope can be played too. */
  envelope: z.unknown().optional(),
  exit: z.number().int().min(0).max(255).default(0),
});

const scriptSchema = z.strictObject({ issues: z.record(z.string(), z.array(attemptSchema)) });

type Edit = z.infer<typeof editSchema>;
type ScriptedAttempt = z.infer<typeof attemptSchema>;
type Script = z.infer<typeof scriptSchema>;

/** Creates the driver of a `scripted` definition. */
export function createScriptedDriver(
  definition: Extract<DriverDefinition, { kind: 'scripted' }>,
  ports: ScriptedPorts,
): Driver {
  let script: Promise<Result<Script, string>> | undefined;
  return {
    name: definition.name,
    async run(request) {
      script ??= loadScript(resolve(ports.repository, definition.script), definition.script);
      const loaded = await script;
      const startedAt = ports.clock.monotonic();
      await makeFolder(dirname(request.logFile));
      const transcript = await openAppend(request.logFile);
      const played = await play(loaded, request, { transcript, clock: ports.clock }).finally(() => transcript.close());
      const durationMs = Math.round(ports.clock.monotonic() - startedAt);
      return { ...played, durationMs, tail: await transcriptTail(request.logFile) };
    },
  };
}

interface Stage {
  readonly transcript: LineWriter;
  readonly clock: Clock;
}

async function play(
  script: Result<Script, string>,
  request: DriverRequest,
  stage: Stage,
): Promise<Pick<DriverOutcome, 'result' | 'ended'>> {
  const scene = script.ok ? sceneOf(script.value, request) : script;
  if (!scene.ok) return broken(scene.failure, stage);
  await removeTree(request.envelopeFile);
  const interrupted = await perform(scene.value, request, stage);
  if (interrupted !== null) return { ended: interrupted, result: judge(interrupted) };
  for (const edit of scene.value.edits) {
    const done = await makeEdit(request.folder, edit);
    if (!done.ok) return broken(done.failure, stage);
    show(stage, done.value);
  }
  if (scene.value.envelope !== undefined) await writeAtomic(request.envelopeFile, JSON.stringify(scene.value.envelope));
  const ended: Ended = { kind: 'exited', code: scene.value.exit };
  const envelope = await readEnvelopeFile(request.envelopeFile);
  return { ended, result: judgeEnding(ended, envelope) };
}

function judge(ended: Ended): WorkerResult {
  return judgeEnding(ended, { kind: 'absent' });
}

/** A script that does not fit ends the attempt as failed: trying again would play the same. */
function broken(reason: string, stage: Stage): Pick<DriverOutcome, 'result' | 'ended'> {
  show(stage, reason);
  return { ended: { kind: 'exited', code: 1 }, result: { kind: 'failed', reason } };
}

/** Shows the lines, spread over the declared time; gives how it was interrupted, if it was. */
async function perform(
  scene: ScriptedAttempt,
  { signal, timeoutMs }: DriverRequest,
  stage: Stage,
): Promise<Ended | null> {
  const { clock } = stage;
  const deadline = clock.monotonic() + timeoutMs;
  const pauses = Math.max(scene.output.length, 1);
  for (let index = 0; index < pauses; index += 1) {
    const left = deadline - clock.monotonic();
    const pause = scene.waitMs / pauses;
    if (pause > 0) await clock.sleep(Math.min(pause, Math.max(left, 0)), signal);
    if (signal.aborted) return { kind: 'cancelled', reason: describeReason(signal.reason) };
    if (pause > left) return { kind: 'timed-out', limitMs: timeoutMs };
    const line = scene.output[index];
    if (line !== undefined) show(stage, line);
  }
  return null;
}

function show({ transcript }: Stage, text: string): void {
  for (const line of text.split('\n')) transcript.line(line);
}

function describeReason(reason: unknown): string {
  return typeof reason === 'string' ? reason : reason instanceof Error ? reason.message : 'stopped';
}

function sceneOf(script: Script, { issue, attempt }: DriverRequest): Result<ScriptedAttempt, string> {
  const scenes = Object.hasOwn(script.issues, issue) ? script.issues[issue] : undefined;
  const scene = scenes?.[attempt - 1];
  return scene === undefined ? failed(`no scripted attempt ${String(attempt)} for ${issue}`) : ok(scene);
}

async function loadScript(path: string, shown: string): Promise<Result<Script, string>> {
  const bytes = await readIfExists(path);
  if (bytes === null) return failed(`the script ${shown} does not exist`);
  const json = parseJson(bytes.toString('utf8'));
  if (!json.ok) return failed(`the script ${shown} is not JSON: ${json.failure}`);
  const parsed = scriptSchema.safeParse(json.value);
  if (parsed.success) return ok(parsed.data);
  const [issue] = parsed.error.issues;
  return failed(`the script ${shown} is not valid: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`);
}

function parseJson(text: string): Result<unknown, string> {
  try {
    return ok(JSON.parse(text));
  } catch (cause) {
    return failed(cause instanceof Error ? cause.message : String(cause));
  }
}

/** Makes one edit; gives the line that tells of it. */
async function makeEdit(folder: string, edit: Edit): Promise<Result<string, string>> {
  if ('delete' in edit) return deleteFile(folder, edit.delete);
  if ('write' in edit) return writeText(folder, edit);
  return replaceText(folder, edit);
}

async function writeText(folder: string, edit: Extract<Edit, { write: string }>): Promise<Result<string, string>> {
  const place = await locate(folder, edit.write);
  if (!place.ok) return place;
  await makeFolder(dirname(place.value));
  await writeAtomic(place.value, edit.text, { sync: false, ...(edit.executable === true ? { mode: 0o755 } : {}) });
  return ok(`write ${edit.write}`);
}

async function deleteFile(folder: string, path: string): Promise<Result<string, string>> {
  const place = await locate(folder, path);
  if (!place.ok) return place;
  if ((await kindOf(place.value)) === null) return failed(`the script deletes ${path}, which does not exist`);
  await removeTree(place.value);
  return ok(`delete ${path}`);
}

async function replaceText(folder: string, edit: Extract<Edit, { replace: string }>): Promise<Result<string, string>> {
  const place = await locate(folder, edit.replace);
  if (!place.ok) return place;
  const before = await readIfExists(place.value);
  if (before === null) return failed(`the script replaces text in ${edit.replace}, which does not exist`);
  const text = before.toString('utf8');
  const at = text.indexOf(edit.find);
  if (at === -1)
    return failed(`the script replaces ${JSON.stringify(edit.find)} in ${edit.replace}, which does not hold it`);
  await writeAtomic(place.value, text.slice(0, at) + edit.with + text.slice(at + edit.find.length), { sync: false });
  return ok(`edit ${edit.replace}`);
}

/** A path of a script stays inside the worktree, out of `.git`, and goes through no link. */
async function locate(folder: string, path: string): Promise<Result<string, string>> {
  const parts = path.split('/');
  const bad = (part: string): boolean => ['', '.', '..'].includes(part) || part.toLowerCase() === '.git';
  if (path.includes('\0') || path.includes('\\') || parts.some(bad)) {
    return failed(`the script names ${JSON.stringify(path)}, which is not a plain path inside the worktree`);
  }
  for (let depth = 1; depth <= parts.length; depth += 1) {
    const kind = await kindOf(join(folder, ...parts.slice(0, depth)));
    const wanted = depth === parts.length ? 'file' : 'folder';
    if (kind !== null && kind !== wanted) return failed(`the script names ${path}, which meets a ${kind} on its way`);
  }
  return ok(join(folder, ...parts));
}

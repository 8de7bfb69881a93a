/** The embedded driver of the demo and of tests: plays back declared edits and envelopes, really, in a real worktree. */
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import type { Ended } from '../event.js';
import { failed, ok, unreachable, type Result } from '../failure.js';
import type { Clock } from '../platform/clock.js';
import { kindOf, openAppend, readIfExists, writeAtomic, type LineWriter } from '../platform/files.js';
import { makeFolder, removeTree } from '../platform/folders.js';
import type { DriverDefinition } from '../policy.js';
import { transcriptTail } from './command.js';
import { unknownUsage, type Usage } from '../usage.js';
import type { Driver, DriverOutcome, DriverRequest, EnvelopeContract } from './driver.js';
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

const sceneSchema = z.strictObject({
  edits: z.array(editSchema).default([]),
  output: z.array(z.string()).default([]),
  waitMs: z.number().int().nonnegative().default(0),
  /** Anything, so that a bad envelope can be played too. */
  envelope: z.unknown().optional(),
  exit: z.number().int().min(0).max(255).default(0),
  /** What the call is said to cost; without it that is unknown. */
  usage: z
    .strictObject({ costUsd: z.number().nonnegative().nullable(), tokens: z.number().int().nonnegative().nullable() })
    .exactOptional(),
  model: z.string().exactOptional(),
});

const scenes = z.array(sceneSchema);

const scriptSchema = z.strictObject({
  /** Per Issue, one for each attempt. */
  issues: z.record(z.string(), scenes).default({}),
  /** One for each call. */
  planner: scenes.default([]),
  /** Per gate, then per Issue (or Spec, for what is judged as a whole), one for each call. */
  judges: z.record(z.string(), z.record(z.string(), scenes)).default({}),
});

type Edit = z.infer<typeof editSchema>;
type Scene = z.infer<typeof sceneSchema>;
type Script = z.infer<typeof scriptSchema>;

/** Creates the driver of a `scripted` definition. */
export function createScriptedDriver(
  definition: Extract<DriverDefinition, { kind: 'scripted' }>,
  ports: ScriptedPorts,
): Driver {
  let script: Promise<Result<Script, string>> | undefined;
  const calls = new Map<string, number>();
  const numbered = (name: string): number => {
    const number = (calls.get(name) ?? 0) + 1;
    calls.set(name, number);
    return number;
  };
  return {
    name: definition.name,
    async run<T>(request: DriverRequest, contract: EnvelopeContract<T>) {
      script ??= loadScript(resolve(ports.repository, definition.script), definition.script);
      const loaded = await script;
      const startedAt = ports.clock.monotonic();
      await makeFolder(dirname(request.logFile));
      const transcript = await openAppend(request.logFile);
      const scene = loaded.ok ? sceneOf(loaded.value, request, numbered) : loaded;
      const stage = { transcript, clock: ports.clock };
      const played = await play(scene, { request, contract }, stage).finally(() => transcript.close());
      const durationMs = Math.round(ports.clock.monotonic() - startedAt);
      const usage: Usage = (scene.ok ? scene.value.usage : undefined) ?? unknownUsage;
      const model = (scene.ok ? scene.value.model : undefined) ?? null;
      return { ...played, durationMs, tail: await transcriptTail(request.logFile), usage, model };
    },
  };
}

interface Stage {
  readonly transcript: LineWriter;
  readonly clock: Clock;
}

async function play<T>(
  scene: Result<Scene, string>,
  { request, contract }: { readonly request: DriverRequest; readonly contract: EnvelopeContract<T> },
  stage: Stage,
): Promise<Pick<DriverOutcome<T>, 'result' | 'ended'>> {
  if (!scene.ok) return broken(scene.failure, stage);
  await removeTree(request.envelopeFile);
  const interrupted = await perform(scene.value, request, stage);
  if (interrupted !== null)
    return { ended: interrupted, result: judgeEnding(interrupted, { kind: 'absent' }, contract) };
  for (const edit of scene.value.edits) {
    const done = await makeEdit(request.folder, edit);
    if (!done.ok) return broken(done.failure, stage);
    show(stage, done.value);
  }
  if (scene.value.envelope !== undefined) await writeAtomic(request.envelopeFile, JSON.stringify(scene.value.envelope));
  const ended: Ended = { kind: 'exited', code: scene.value.exit };
  const { reading } = await readEnvelopeFile(request.envelopeFile, contract);
  return { ended, result: judgeEnding(ended, reading, contract) };
}

/** A script that does not fit ends the call as failed: trying again would play the same. */
function broken(
  reason: string,
  stage: Stage,
): { readonly ended: Ended; readonly result: { readonly kind: 'failed'; readonly reason: string } } {
  show(stage, reason);
  return { ended: { kind: 'exited', code: 1 }, result: { kind: 'failed', reason } };
}

/** Shows the lines, spread over the declared time; gives how it was interrupted, if it was. */
async function perform(scene: Scene, { signal, timeoutMs }: DriverRequest, stage: Stage): Promise<Ended | null> {
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

/** A worker's scene is found by its attempt, so that a resumed run goes on in the script; the others by counting calls. */
function sceneOf(script: Script, request: DriverRequest, numbered: (name: string) => number): Result<Scene, string> {
  const { role, attempt } = request;
  const subject = request.issue ?? request.spec;
  switch (role) {
    case 'worker': {
      const scene = ownValue(script.issues, subject)?.[attempt - 1];
      return scene === undefined ? failed(`no scripted attempt ${String(attempt)} for ${subject}`) : ok(scene);
    }
    case 'planner': {
      const number = numbered('planner');
      const scene = script.planner[number - 1];
      return scene === undefined ? failed(`no scripted plan ${String(number)}`) : ok(scene);
    }
    case 'judge': {
      const gate = request.gate ?? '';
      const number = numbered(`${gate} ${subject}`);
      const scene = ownValue(ownValue(script.judges, gate) ?? {}, subject)?.[number - 1];
      return scene === undefined
        ? failed(`no scripted judgement ${String(number)} of gate ${gate} for ${subject}`)
        : ok(scene);
    }
    default:
      return unreachable(role);
  }
}

function ownValue<V>(record: Readonly<Record<string, V>>, key: string): V | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
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

/**
 * Everything that can be known and refused before a run writes or spends anything: the repository, giro.toml, the
 * Spec's files, the graph, the branches in the way.
 */
import { isAbsolute, join } from 'node:path';
import { access, constants } from 'node:fs/promises';
import { checkGates, parseSpecFolder, type ParsedSpec } from '../config/issue-file.js';
import { nearest } from '../config/nearest.js';
import { failed, ok, unreachable, type Diagnostic, type Failure, type Result } from '../failure.js';
import type { Issue, IssueId, Oid, SpecSlug } from '../issue.js';
import { issueNumber } from '../issue.js';
import { childEnvironment } from '../platform/environment.js';
import { kindOf } from '../platform/files.js';
import { listFolder } from '../platform/folders.js';
import type { DriverDefinition, Policy } from '../policy.js';
import { checkGraph, type GraphProblem } from '../scheduler/graph.js';
import { specsFolder, type Spec } from '../spec.js';
import { notFiles, readCheckout } from './checkout-files.js';
import { mendedIssues } from './mended.js';
import { findIssue, someOf } from './target.js';
import { readUserPolicy, type PolicyPlace } from './user-policy.js';
import { firstIntake, laterIntake, type Intake } from '../store/intake.js';
import type { IssueBranches } from '../store/facts.js';
import { readOpenBranches } from '../store/facts.js';
import { readSpecFiles, type SpecFile } from '../store/read.js';
import { branchName, integrationRef } from '../store/refs.js';
import type { OpenedGit } from '../worktree/git-types.js';

/** A run that may start. */
export interface Prepared {
  readonly policy: Policy;
  readonly spec: SpecSlug;
  readonly parsed: ParsedSpec;
  readonly intake: Intake;
  /** The Spec's files of the checkout, as read; `null`: the checkout has no such folder. */
  readonly read: readonly SpecFile[] | null;
  /** `null`: this is the first run. */
  readonly tip: Oid | null;
  /** The Spec's state on the integration branch before this run. */
  readonly before: 'draft' | 'active' | 'done' | 'needs-human';
  /** Of Issues that are not at rest, and of none that is known. */
  readonly branches: IssueBranches;
}

/** Reads and checks everything; the first thing wrong of each kind, or all mistakes of all files. */
export async function prepare(
  request: PrepareRequest & {
    readonly own: Readonly<Record<string, string | undefined>>;
    readonly processors: number;
  },
): Promise<Result<Prepared, Failure>> {
  const policy = await readPolicy(request);
  return policy.ok ? prepareSpec(policy.value, request) : policy;
}

/** One Spec that is to be prepared. */
export interface PrepareRequest {
  readonly git: OpenedGit;
  readonly top: string;
  readonly spec: SpecSlug;
  /** The Issue that was named, as typed; `null`: the whole Spec. */
  readonly issue: string | null;
  /** False: a backlog came upon the Spec, which answers nothing. */
  readonly named: boolean;
  readonly at: string;
}

/** The same for one Spec of several: the policy was read at the start of the run. */
export async function prepareSpec(policy: Policy, request: PrepareRequest): Promise<Result<Prepared, Failure>> {
  const wrong = await notFiles(request.top, request.spec);
  if (wrong.length > 0) return failed({ kind: 'diagnostics', diagnostics: wrong });
  return prepareRead(policy, { ...request, read: await readCheckout(request.top, request.spec) });
}

/** The same with the Spec's files of the checkout, which were read; `null`: it has no such folder. */
export async function prepareRead(
  policy: Policy,
  request: PrepareRequest & Pick<Prepared, 'read'>,
): Promise<Result<Prepared, Failure>> {
  const { git, spec, read } = request;
  const tip = await git.readRef(integrationRef(spec));
  const inTheWay = await blockingBranch(git, spec, tip);
  if (inTheWay !== null) return failed(inTheWay);
  if (tip === null && read === null) return failed(await noSuchSpec(request.top, spec));
  const taken = await takeIn({ ...request, tip, read });
  if (!taken.ok) return taken;
  const { intake, before, unchanged } = taken.value;
  const files = [...intake.files].map(([path, content]) => ({ path, bytes: Buffer.from(content) }));
  const parsed = unchanged === null ? parseSpecFolder({ slug: spec, files }) : ok(unchanged);
  if (!parsed.ok) return parsed;
  const mistakes = check(parsed.value, policy);
  if (mistakes.length > 0) return failed({ kind: 'diagnostics', diagnostics: mistakes });
  // Whom the intake wakes goes on from a branch too.
  const asleep = atRest(parsed.value.spec.issues);
  const isSame = tip !== null && sameNames(asleep, taken.value.atRest);
  const branches = isSame ? taken.value.branches : await readOpenBranches(git, spec, (issue) => asleep.has(issue));
  return ok({ policy, spec, parsed: parsed.value, read, tip, branches, intake, before });
}

/** Reads giro.toml, and looks for the program that is to do the work. */
export async function readPolicy(request: PolicyPlace): Promise<Result<Policy, Failure>> {
  const policy = await readUserPolicy(request);
  if (!policy.ok) return policy;
  const missing = await missingProgram(policy.value, request);
  return missing === null ? policy : failed(missing);
}

function sameNames(left: ReadonlySet<string>, right: ReadonlySet<string>): boolean {
  return left.size === right.size && [...left].every((name) => right.has(name));
}

interface TakenIn extends Pick<Prepared, 'intake' | 'before' | 'branches'> {
  /** Issues that were done or `wontfix` before; `branches` are without theirs. */
  readonly atRest: ReadonlySet<string>;
  /** The Spec, when the intake leaves it as it stands at the tip. */
  readonly unchanged: ParsedSpec | null;
}

async function takeIn(request: {
  readonly git: OpenedGit;
  readonly spec: SpecSlug;
  readonly issue: string | null;
  readonly named: boolean;
  readonly tip: Oid | null;
  readonly read: readonly SpecFile[] | null;
  readonly at: string;
}): Promise<Result<TakenIn, Failure>> {
  const { git, spec, tip, read } = request;
  if (tip === null) {
    const intake = firstIntake(read ?? [], request.at);
    const parsed = parseSpecFolder({
      slug: spec,
      files: (read ?? []).map((file) => ({ path: file.path, bytes: file.bytes })),
    });
    if (!parsed.ok) return parsed;
    if (parsed.value.spec.state === 'done') return failed(doneWithoutBranch(spec));
    return ok({ intake, before: 'draft', branches: new Map(), atRest: new Set(), unchanged: null });
  }
  const files = await readSpecFiles(git, tip, spec);
  const present = parseSpecFolder({ slug: spec, files });
  const before = present.ok ? present.value.spec.state : 'active';
  const asleep = atRest(present.ok ? present.value.spec.issues : []);
  const branches = await readOpenBranches(git, spec, (issue) => asleep.has(issue));
  const intake = await laterIntake(git, {
    spec,
    tip,
    branches,
    folder: `${specsFolder}/${spec}`,
    checkout: read,
    present: files,
    atRest: asleep,
    head: git.user.head,
    answers:
      present.ok && request.named && before === 'needs-human' ? answeredBy(request.issue, present.value.spec) : [],
    mended:
      present.ok && !request.named && before === 'needs-human'
        ? await mendedIssues(git, { spec, issues: present.value.spec.issues, branches })
        : [],
    named: request.named,
    at: request.at,
  });
  const unchanged = present.ok && isUnchanged(files, intake) ? present.value : null;
  return ok({ intake, before, branches, atRest: asleep, unchanged });
}

/** Issues that nothing is to be done for. */
export function atRest(issues: readonly Pick<Issue, 'id' | 'state'>[]): ReadonlySet<string> {
  return new Set(issues.filter(({ state }) => state === 'done' || state === 'wontfix').map(({ id }) => id));
}

function isUnchanged(present: readonly SpecFile[], { files }: Intake): boolean {
  return (
    present.length === files.size &&
    present.every(({ path, bytes }) => {
      const content = files.get(path);
      return content === bytes || (content !== undefined && Buffer.from(content).equals(bytes));
    })
  );
}

/** After a run that ended asking, naming the Spec answers everything; naming an Issue answers that one. */
function answeredBy(typed: string | null, { issues, folder }: Spec): readonly string[] {
  if (typed === null) return [`${folder}/SPEC.md`, ...issues.map((issue) => issue.path)];
  const only = findIssue(
    issues.map((issue) => issue.id),
    typed,
  );
  return issues.filter((issue) => issue.id === only).map((issue) => issue.path);
}

function check(parsed: ParsedSpec, policy: Policy): readonly Diagnostic[] {
  const graph = checkGraph(parsed.spec.issues).map((problem) => graphDiagnostic(parsed, problem));
  return [
    ...graph,
    ...checkGates(
      parsed,
      policy.gates.map((gate) => gate.name),
    ),
  ];
}

function graphDiagnostic(parsed: ParsedSpec, problem: GraphProblem): Diagnostic {
  const place = (issue: IssueId, on: IssueId | undefined): Pick<Diagnostic, 'file'> => {
    const known = on === undefined ? undefined : parsed.places.get(issue)?.dependsOn.get(on);
    return known ?? { file: parsed.spec.issues.find((one) => one.id === issue)?.path ?? issue };
  };
  switch (problem.kind) {
    case 'cycle': {
      const [first, second] = problem.path;
      return {
        ...(first === undefined ? { file: parsed.spec.folder } : place(first, second)),
        message: `the dependencies form a cycle: ${problem.path.join(' -> ')}`,
        hint: 'remove one of these dependencies',
      };
    }
    case 'self':
      return { ...place(problem.issue, problem.issue), message: `${problem.issue} depends on itself` };
    case 'wontfix': {
      const on = parsed.spec.issues.find((issue) => issue.id === problem.id)?.id;
      return {
        ...place(problem.issue, on),
        message: `${problem.issue} depends on ${problem.id}, which is wontfix`,
        hint: 'remove the dependency, or set the other Issue to ready',
      };
    }
    case 'unknown':
      return {
        ...place(problem.issue, undefined),
        message: `${problem.issue} depends on ${JSON.stringify(problem.id)}, which does not exist`,
        ...(problem.nearest.length === 0 ? {} : { hint: `did you mean ${problem.nearest.join(' or ')}?` }),
      };
    case 'duplicate-number': {
      const [first] = problem.issues;
      return {
        file: first === undefined ? parsed.spec.folder : place(first, undefined).file,
        message: `two Issues have the number ${first === undefined ? '' : String(issueNumber(first))}: ${problem.issues.join(', ')}`,
        hint: 'give one of them the next free number',
      };
    }
    default:
      return unreachable(problem);
  }
}

/** git cannot hold both `x` and `x/y`: a branch of the person's that keeps giro's names from existing. */
async function blockingBranch(git: OpenedGit, spec: SpecSlug, tip: Oid | null): Promise<Failure | null> {
  for (const above of ['refs/heads/giro', 'refs/heads/giro-issue', `refs/heads/giro-issue/${spec}`]) {
    if ((await git.readRef(above)) === null) continue;
    const name = branchName(above);
    return inTheWay(name, `git branch -m ${name} ${name.replaceAll('/', '-')}-old`);
  }
  if (tip !== null) return null;
  const [below] = (await git.listRefs(`${integrationRef(spec)}/`)).keys();
  if (below === undefined) return null;
  const name = branchName(below);
  return inTheWay(name, `git branch -m ${name} ${name.replaceAll('/', '-')}`);
}

function inTheWay(name: string, fix: string): Failure {
  return {
    kind: 'environment',
    message: `the branch ${name} is in the way: git cannot hold it beside the branches of giro`,
    hint: `rename it: ${fix}`,
  };
}

async function noSuchSpec(top: string, spec: SpecSlug): Promise<Failure> {
  const known = (await listFolder(join(top, specsFolder)))
    .filter((entry) => entry.kind === 'folder')
    .map((entry) => entry.name);
  const close = nearest(spec, known);
  return {
    kind: 'usage',
    message: `there is no Spec ${JSON.stringify(spec)}: ${specsFolder}/${spec}/SPEC.md does not exist`,
    hint:
      close.length > 0
        ? `did you mean ${close.join(' or ')}?`
        : known.length > 0
          ? `known: ${someOf(known)}`
          : 'write one with: giro init',
  };
}

function doneWithoutBranch(spec: SpecSlug): Failure {
  return {
    kind: 'usage',
    message: `${specsFolder}/${spec}/SPEC.md says done, but there is no branch giro/${spec} that could prove it`,
    hint: 'set state: draft in SPEC.md to run it again',
  };
}

interface Machine {
  readonly top: string;
  readonly own: Readonly<Record<string, string | undefined>>;
}

/** An agent program that is not there is said before anything is spent; of the roles, those that a run can need. */
async function missingProgram(policy: Policy, machine: Machine): Promise<Failure | null> {
  const { worker, planner, judge } = policy.roles;
  const isJudged = policy.gates.some((gate) => gate.kind !== 'command');
  for (const name of new Set([worker, planner, ...(isJudged ? [judge] : [])])) {
    const definition = policy.drivers.byName.get(name);
    const missing = definition === undefined ? null : await missingProgramOf(definition, machine);
    if (missing !== null) return missing;
  }
  return null;
}

async function missingProgramOf(definition: DriverDefinition, request: Machine): Promise<Failure | null> {
  const program = programOf(definition);
  if (program.includes('/')) {
    const path = isAbsolute(program) ? program : join(request.top, program);
    if (definition.kind === 'scripted')
      return (await kindOf(path)) === null ? notThere(definition.name, program, path) : null;
    if (await isExecutable(path)) return null;
    const kind = await kindOf(path);
    if (kind === null) return notThere(definition.name, program, path);
    const message = `[driver.${definition.name}] cannot run ${program}`;
    return kind === 'folder'
      ? { kind: 'environment', message: `${message}: it is a folder`, hint: 'name the program in it' }
      : { kind: 'environment', message, hint: `make it executable: chmod +x ${path}` };
  }
  if (definition.kind === 'scripted') {
    const path = join(request.top, program);
    return (await kindOf(path)) === null ? notThere(definition.name, program, path) : null;
  }
  const folders = (childEnvironment(request.own)['PATH'] ?? '').split(':').filter((folder) => folder !== '');
  for (const folder of folders) if (await isExecutable(join(folder, program))) return null;
  return {
    kind: 'environment',
    message: `[driver.${definition.name}] names ${program}, which is not on PATH`,
    hint: 'install it, or write its full path in giro.toml',
  };
}

function programOf(definition: DriverDefinition): string {
  switch (definition.kind) {
    case 'command':
      return definition.run[0];
    case 'scripted':
      return definition.script;
    default:
      return unreachable(definition);
  }
}

function notThere(driver: string, program: string, path: string): Failure {
  return {
    kind: 'environment',
    message: `[driver.${driver}] names ${program}, but there is no ${path}`,
    hint: 'write it, or change giro.toml',
  };
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await kindOf(path)) !== 'folder';
  } catch {
    return false;
  }
}

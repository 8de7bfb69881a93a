/** Reads the Specs of a backlog: how each stands, which are to run, and in which order. Writes nothing. */
import { join } from 'node:path';
import { checkSpecSlug, parseSpecFolder, type ParsedSpec } from '../config/issue-file.js';
import { nearest } from '../config/nearest.js';
import type { BacklogItem } from '../event.js';
import { failed, ok, type Diagnostic, type Failure, type Result } from '../failure.js';
import type { SpecSlug } from '../issue.js';
import { kindOf } from '../platform/files.js';
import { listFolder } from '../platform/folders.js';
import type { Policy } from '../policy.js';
import { checkBacklog, orderBacklog, type BacklogNode, type BacklogProblem } from '../scheduler/backlog.js';
import { specsFolder } from '../spec.js';
import { integrationRef } from '../store/refs.js';
import type { OpenedGit } from '../worktree/git-types.js';
import { readCheckout } from './checkout-files.js';
import { renderFailure } from './failure-text.js';
import { prepareSpec, type Prepared } from './prepare.js';
import { provedAlready } from './run-spec.js';
import { provedTip } from './stacking.js';

/** What a backlog is read with. */
export interface BacklogSource {
  readonly git: OpenedGit;
  readonly top: string;
  readonly policy: Policy;
  readonly at: string;
}

/** One Spec of the backlog. */
export interface BacklogSpec extends BacklogNode {
  readonly title: string;
  readonly plan: BacklogItem['plan'];
  /** What is wrong with its files; only when they are. */
  readonly failure: Failure | null;
  readonly places: ParsedSpec['dependsOnPlaces'];
}

/** Reads every Spec of the checkout that has anything to do with a run, in the order in which they may start. */
export async function readBacklog(source: BacklogSource): Promise<Result<readonly BacklogSpec[], Failure>> {
  const found: BacklogSpec[] = [];
  const known = new Set<SpecSlug>();
  for (const name of await specFolders(source.top)) {
    const slug = checkSpecSlug(name);
    if (!slug.ok) return failed({ kind: 'usage', ...slug.failure });
    known.add(slug.value);
    const spec = await readOne(source, slug.value);
    if (spec !== null) found.push(spec);
  }
  const nodes = found.filter((spec) => spec.plan === 'run' || spec.plan === 'asking');
  for (const on of new Set(nodes.flatMap((node) => node.dependsOn))) {
    if (!known.has(on) && (await provedTip(source, on)).kind === 'proved') known.add(on);
  }
  const problems = checkBacklog(nodes, known);
  if (problems.length > 0) {
    const diagnostics = problems.map((problem) => diagnosticOf(problem, { found, known }));
    return failed({ kind: 'diagnostics', diagnostics });
  }
  return ok(orderBacklog(found));
}

async function specFolders(top: string): Promise<readonly string[]> {
  const folders = (await listFolder(join(top, specsFolder))).filter(({ kind }) => kind === 'folder');
  const names: string[] = [];
  for (const { name } of folders) {
    if ((await kindOf(join(top, specsFolder, name, 'SPEC.md'))) === 'file') names.push(name);
  }
  return names.sort();
}

/** `null`: it is done on the person's word, and no branch says anything else. */
async function readOne(source: BacklogSource, spec: SpecSlug): Promise<BacklogSpec | null> {
  const { git, top, policy, at } = source;
  if ((await git.readRef(integrationRef(spec))) === null) {
    const read = parseSpecFolder({ slug: spec, files: (await readCheckout(top, spec)) ?? [] });
    if (read.ok && read.value.spec.state === 'done') return null;
  }
  const prepared = await prepareSpec(policy, { git, top, spec, issue: null, named: false, at });
  if (!prepared.ok) {
    const none = { title: spec, dependsOn: [], value: null, places: new Map() };
    return { id: spec, ...none, plan: 'wrong', failure: prepared.failure };
  }
  const { parsed } = prepared.value;
  const { title, dependsOn, value } = parsed.spec;
  const plan = await planOf(git, prepared.value);
  return { id: spec, title, dependsOn, value: value ?? null, places: parsed.dependsOnPlaces, plan, failure: null };
}

async function planOf(git: OpenedGit, prepared: Prepared): Promise<'run' | 'proved' | 'asking'> {
  if ((await provedAlready(git, prepared)) !== null) return 'proved';
  return prepared.before === 'needs-human' && !prepared.intake.touched ? 'asking' : 'run';
}

function diagnosticOf(
  problem: BacklogProblem,
  { found, known }: { readonly found: readonly BacklogSpec[]; readonly known: ReadonlySet<SpecSlug> },
): Diagnostic {
  const place = (spec: SpecSlug, on: SpecSlug | undefined): Pick<Diagnostic, 'file'> => {
    const places = found.find(({ id }) => id === spec)?.places;
    return (on === undefined ? undefined : places?.get(on)) ?? { file: `${specsFolder}/${spec}/SPEC.md` };
  };
  switch (problem.kind) {
    case 'self':
      return { ...place(problem.spec, problem.spec), message: `the Spec ${problem.spec} depends on itself` };
    case 'unknown': {
      const close = nearest(problem.on, [...known]);
      return {
        ...place(problem.spec, problem.on),
        message: `the Spec ${problem.spec} depends on ${JSON.stringify(problem.on)}, which does not exist`,
        ...(close.length === 0 ? {} : { hint: `did you mean ${close.join(' or ')}?` }),
      };
    }
    case 'cycle': {
      const [first, second] = problem.path;
      return {
        ...(first === undefined ? { file: specsFolder } : place(first, second)),
        message: `the Specs depend on each other in a circle: ${problem.path.join(' -> ')}`,
        hint: 'remove one of these dependencies',
      };
    }
  }
}

/** Says in one line how a Spec stands before the night. */
export function itemOf(spec: BacklogSpec, all: readonly BacklogSpec[]): BacklogItem {
  const { id, title, value, dependsOn, plan } = spec;
  return { spec: id, title, value, dependsOn, plan, why: whyOf(spec, all) };
}

function whyOf({ plan, failure, dependsOn, value, id }: BacklogSpec, all: readonly BacklogSpec[]): string {
  switch (plan) {
    case 'proved':
      return 'proved already';
    case 'asking':
      return `still asks, nothing was answered: giro status ${id}`;
    case 'wrong':
      return failure === null ? 'cannot be read' : (renderFailure(failure).split('\n')[0] ?? '');
    case 'run': {
      const open = dependsOn.filter((on) => all.some((other) => other.id === on && other.plan !== 'proved'));
      const worth = value === null ? '' : `value ${String(value)}`;
      const waits = open.length === 0 ? '' : `after ${open.join(', ')}`;
      return [waits, worth].filter((part) => part !== '').join(', ') || 'runs';
    }
  }
}

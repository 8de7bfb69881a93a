/** What agents and gates work with in a run: slots, worktrees, gate checkouts, the verifier, the driver. */
import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { withoutRecord } from '../config/splice.js';
import { createDriver } from '../drivers/create.js';
import type { Driver } from '../drivers/driver.js';
import type { Emit } from '../event.js';
import { failed, ok, type Failure, type Result } from '../failure.js';
import { createBaseline, type Baseline } from '../gates/baseline.js';
import { createVerdictCache, passKey } from '../gates/cache.js';
import { readEvidence } from '../gates/evidence.js';
import type { Verifier, VerifierPorts, WithCheckout } from '../gates/gate.js';
import { findShell } from '../gates/shell.js';
import { createVerifier } from '../gates/verify.js';
import type { IssueId, Oid } from '../issue.js';
import type { SpecBudget } from '../loop/budget.js';
import type { Parking } from '../loop/parking.js';
import type { EnvironmentRequest, WorkFolders } from '../loop/ports.js';
import type { Clock } from '../platform/clock.js';
import { childEnvironment, type Environment } from '../platform/environment.js';
import { machineLoad } from '../platform/load.js';
import type { DriverDefinition, Policy, WorktreePolicy } from '../policy.js';
import { readingTree } from '../store/reading.js';
import { codeTree } from '../store/tree.js';
import { createCheckouts } from '../worktree/checkout.js';
import type { OpenedGit } from '../worktree/git-types.js';
import { createReadings, type Readings } from '../worktree/reading.js';
import { markRoom, roomOf } from '../worktree/room.js';
import { createSetup, type Setup, type SetupPorts } from '../worktree/setup.js';
import type { Slot } from '../worktree/slots.js';
import { createWorktrees, type Worktrees } from '../worktree/worktrees.js';
import { workFolders } from './folders.js';
import { judgePorts } from './judging.js';
import { lackingIn } from './lacks.js';
import { createPlanner } from './planner.js';
import type { Leftovers } from './leftovers.js';
import type { Planner } from './planning.js';
import type { Prepared } from './prepare.js';
import type { Shared } from './shared.js';

/** What the workshop is made with. */
export interface WorkshopPorts {
  readonly git: OpenedGit;
  readonly prepared: Pick<Prepared, 'policy' | 'spec'>;
  readonly top: string;
  readonly own: Readonly<Record<string, string | undefined>>;
  readonly cacheFolder: string;
  readonly runFolder: string;
  readonly shared: Shared;
  readonly leftovers: Leftovers;
  /** `docs/specs/` of the user's base commit. */
  readonly baseSpecs: Oid | null;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly emit: Emit;
  /** Whether passes of earlier runs count, and those of this one are kept for later. */
  readonly remember: boolean;
  readonly budget: SpecBudget;
  readonly jitter: () => number;
}

/** The workshop of a run. */
export interface Workshop {
  readonly folders: WorkFolders;
  /** Removes the folders of integrated Issues, also those of an earlier run; with trees that are safe. */
  readonly clear: Worktrees['reclaim'];
  readonly verifier: Verifier;
  /** What the gates came to before any work; set by whoever looks at that. */
  readonly baseline: Baseline;
  readonly driver: Driver;
  readonly parking: Parking;
  readonly budget: SpecBudget;
  readonly planner: Planner;
  readonly environment: (request: EnvironmentRequest) => Environment;
  readonly logFile: (issue: IssueId, attempt: number) => string;
  readonly envelopeFile: (issue: IssueId, attempt: number) => string;
  /** Shows the path of a log as people read it: from the repository. */
  readonly shown: (path: string) => string;
  close(): Promise<void>;
}

/** Makes the workshop; folders are made when they are first needed. */
export async function openWorkshop(ports: WorkshopPorts): Promise<Result<Workshop, Failure>> {
  const { git, top, own, runFolder, clock, emit, leftovers } = ports;
  const { policy, spec } = ports.prepared;
  const shell = await findShell(childEnvironment(own));
  if (!shell.ok) return failed({ kind: 'environment', message: shell.failure, hint: 'install bash' });
  const root = workRoot({ git, prepared: ports.prepared, cacheFolder: ports.cacheFolder });
  await markRoom(dirname(root), git.commonDir);
  const notice = (message: string, issue?: IssueId): void => {
    emit({ type: 'run.notice', level: 'warning', message, ...(issue === undefined ? {} : { issue }) });
  };
  const setup = setupOf(ports, { shell: shell.value, notice });
  const { vacate, environment: mark, confinement } = leftovers;
  const common = { git, policy: policy.worktree, slots: ports.shared.slots, setup, vacate, notice };
  const worktrees = createWorktrees({ ...common, spec, root, clock, makers: foldersAtOnce() });
  const gateRoom = { root: join(root, 'gates'), baseSpecs: ports.baseSpecs, limit: policy.limits.gates };
  const checkouts = createCheckouts({ ...common, ...gateRoom });
  const readings = createReadings({ git, root: join(root, 'reading'), slots: common.slots });
  const baseline = createBaseline();
  const verifier = verifierOf(ports, { withCheckout: checkouts.withCheckout, readings, baseline });
  const definition = driverOf(policy, policy.roles.worker);
  return ok({
    folders: workFolders({ git, spec, policy }, worktrees),
    clear: (integrated) => clear(worktrees, integrated),
    verifier,
    baseline,
    driver: createDriver(definition, { clock, repository: top, own, confinement }),
    parking: ports.shared.parking(definition.name),
    budget: ports.budget,
    planner: plannerOf(ports, readings),
    environment: ({ issue, attempt, folder, envelopeFile }) => ({
      ...childEnvironment(own, definition.env),
      ...mark,
      GIRO_ROLE: 'worker',
      GIRO_SPEC: spec,
      GIRO_ISSUE: issue,
      GIRO_ATTEMPT: String(attempt),
      GIRO_ENVELOPE: envelopeFile,
      ...slotEnvironment(folder.slot),
    }),
    logFile: (issue, attempt) => join(runFolder, 'agents', `${issue}.${String(attempt)}.log`),
    envelopeFile: (issue, attempt) => join(runFolder, 'agents', `${issue}.${String(attempt)}.envelope.json`),
    shown: (path) => relative(dirname(git.commonDir), path),
    async close() {
      await Promise.all([worktrees.close(), checkouts.close(), readings.close()]);
    },
  });
}

function setupOf(ports: WorkshopPorts, parts: Pick<SetupPorts, 'shell' | 'notice'>): Setup {
  const { git, prepared, top, own, clock, runFolder, signal, emit } = ports;
  const { policy, spec } = prepared;
  const given = { ...childEnvironment(own), ...ports.leftovers.environment, CI: 'true' };
  return createSetup({
    ...parts,
    git,
    policy: policy.worktree,
    userTop: top,
    environment: (slot) => ({ ...given, ...slotEnvironment(slot), GIRO_SPEC: spec }),
    logFolder: join(runFolder, 'setup'),
    graceMs: policy.limits.graceMs,
    signal,
    clock,
    confinement: ports.leftovers.confinement,
    started: (message) => {
      emit({ type: 'run.notice', level: 'info', message });
    },
  });
}

async function clear(worktrees: Worktrees, integrated: Parameters<Worktrees['reclaim']>[0]): Promise<void> {
  await worktrees.reclaim(integrated);
  await worktrees.close();
}

/** Half of the processors are for the agents and gates that run already. */
function foldersAtOnce(): number {
  return Math.max(1, Math.trunc(availableParallelism() / 2));
}

function plannerOf(ports: WorkshopPorts, readings: Readings): Planner {
  const { git, prepared, top, own, clock, runFolder, signal } = ports;
  const { confinement } = ports.leftovers;
  const { policy, spec } = prepared;
  const definition = driverOf(policy, policy.roles.planner);
  return createPlanner({
    driver: createDriver(definition, { clock, repository: top, own, confinement }),
    policy,
    spec,
    withReading: async (commit, use) => {
      const code = await codeTree(git, (await git.readCommit(commit)).tree);
      const { tree } = await readingTree(git, { spec, commit, code, withoutRecord });
      return readings.withReading(tree, use);
    },
    environment: (slot) => ({
      ...childEnvironment(own, definition.env),
      ...ports.leftovers.environment,
      ...slotEnvironment(slot),
    }),
    runFolder,
    signal,
  });
}

function driverOf(policy: Policy, name: string): DriverDefinition {
  const definition = policy.drivers.byName.get(name);
  if (definition === undefined) throw new Error(`no such driver: ${name}`);
  return definition;
}

function verifierOf(
  ports: WorkshopPorts,
  parts: { readonly withCheckout: WithCheckout; readonly readings: Readings; readonly baseline: Baseline },
): Verifier {
  const { withCheckout, readings, baseline } = parts;
  const { git, prepared, top, own, clock, emit, runFolder } = ports;
  const { policy, spec } = prepared;
  const { budget, shared, jitter } = ports;
  const parking = shared.parking(policy.roles.judge);
  const { environment: mark, confinement } = ports.leftovers;
  const judges = judgePorts({
    git,
    spec,
    policy,
    top,
    own,
    mark,
    confinement,
    clock,
    readings,
    budget,
    parking,
    jitter,
  });
  const verifierPorts: VerifierPorts = {
    withCheckout,
    cache: createVerdictCache(ports.remember ? join(git.commonDir, 'giro', 'verdicts') : null),
    passKey,
    readEvidence,
    slots: (run, urgent) => ports.shared.gates.add(run, { priority: urgent ? 1 : 0 }),
    emit,
    clock,
    environment: (_slot, gate) => ({ ...childEnvironment(own, gate.env), ...mark, GIRO_SPEC: spec }),
    logFolder: join(runFolder, 'gates'),
    graceMs: policy.limits.graceMs,
    confinement,
    toolFingerprint: fingerprint(policy.worktree, own),
    evidence: policy.evidence,
    baseline: (gate) => baseline.get(gate),
    load: machineLoad,
    lacks: (checkout) => lackingIn(checkout, top),
  };
  return createVerifier(verifierPorts, judges);
}

function slotEnvironment(slot: Slot): Environment {
  return { GIRO_SLOT: String(slot.number), GIRO_PORT_BASE: String(slot.portBase), TMPDIR: slot.temporary };
}

/** Where the worktrees and checkouts of a Spec are. */
export function workRoot({
  git,
  prepared,
  cacheFolder,
}: Pick<WorkshopPorts, 'prepared' | 'cacheFolder'> & { readonly git: Pick<OpenedGit, 'commonDir'> }): string {
  const { policy, spec } = prepared;
  return join(roomOf(policy.worktree.root ?? join(cacheFolder, 'giro'), git.commonDir), spec);
}

/** What a gate's pass depends on beside the tree and the gate: how its checkout is made, and where tools are looked up. */
function fingerprint(policy: WorktreePolicy, own: Readonly<Record<string, string | undefined>>): string {
  const { setup, inputs, copy, link } = policy;
  const tools = [process.version, process.platform, process.arch, own['PATH'] ?? ''];
  return createHash('sha256')
    .update(JSON.stringify([setup ?? '', inputs, copy, link, tools]))
    .digest('hex');
}

/** Turns giro.toml into a Policy that is valid by type, or into every mistake that is in it. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { failed, ok, type Diagnostic, type Result } from '../failure.js';
import type { Policy } from '../policy.js';
import { checkUnknown, readBudget } from './budget-table.js';
import { checkTable, duration, isTable, unknownKey, wholeNumber, type Checked, type Problem } from './check.js';
import { quote, type SourceText } from './diagnostic.js';
import { readEvidence } from './evidence-table.js';
import { readIntegrate } from './integrate-table.js';
import { readDrivers, readRoles } from './driver-table.js';
import { fileLimits, processLimits, readProtect } from './protect-table.js';
import { parseToml, type TomlFile } from './toml.js';
import { readGates } from './verify-table.js';
import { readWorktree, readWorktreeInclude } from './worktree-table.js';

/** What a policy is made from. */
export interface PolicyRequest {
  /** Text of giro.toml. */
  readonly text: string;
  /** Its path as a person knows it. */
  readonly file: string;
  /** Absolute path of the user's checkout. */
  readonly repository: string;
  /** Text of `.worktreeinclude`, when there is one. */
  readonly worktreeInclude?: string | null;
  /** How many processors the machine has: that many gates run at once unless the file says otherwise. */
  readonly processors: number;
  /** giro's own environment, for `~`. */
  readonly own: Readonly<Record<string, string | undefined>>;
}

const minuteMs = 60_000;
const tables = ['driver', 'roles', 'budget', 'limits', 'verify', 'worktree', 'protect', 'evidence', 'integrate'];
const laterTables = ['sandbox', 'notify', 'github', 'ui'];

/** Reads and checks giro.toml; all mistakes at once, nothing half-valid comes out. */
export function loadPolicy(
  request: PolicyRequest,
): Result<Policy, { readonly kind: 'diagnostics'; readonly diagnostics: readonly Diagnostic[] }> {
  const source: SourceText = { file: request.file, text: request.text };
  const file = parseToml(source);
  const included = readWorktreeInclude('.worktreeinclude', request.worktreeInclude ?? '');
  const fromInclude = included.ok ? [] : included.failure;
  if (!file.ok) return failed({ kind: 'diagnostics', diagnostics: [...file.failure, ...fromInclude] });
  const { problems, value } = readTables(file.value.value, request, included.ok ? included.value : []);
  const diagnostics = [...inOrder(problems.map((problem) => diagnosticOf(problem, file.value))), ...fromInclude];
  if (diagnostics.length > 0 || value === undefined) return failed({ kind: 'diagnostics', diagnostics });
  return ok({ ...value, digest: digestOf(value) });
}

function readTables(
  root: Readonly<Record<string, unknown>>,
  request: PolicyRequest,
  included: readonly string[],
): Checked<Omit<Policy, 'digest'>> {
  const drivers = readDrivers(root['driver']);
  const roles = readRoles(root['roles'], drivers.names);
  const budget = readBudget(root['budget']);
  const limits = readLimits(root['limits'], request.processors);
  const gates = readGates(root['verify'], {
    defaultTimeoutMs: limits.value?.gateTimeoutMs ?? 15 * minuteMs,
    repository: request.repository,
  });
  const worktree = readWorktree(root['worktree'], {
    repository: request.repository,
    home: request.own['HOME'],
    included,
  });
  const protect = readProtect(root['protect']);
  const evidence = readEvidence(root['evidence']);
  const integrate = readIntegrate(root['integrate']);
  const problems = [
    ...unknownTables(root),
    ...[drivers, roles, budget, limits, gates, worktree, protect, evidence, integrate].flatMap(
      (checked): readonly Problem[] => checked.problems,
    ),
  ];
  if (drivers.value === undefined || roles.value === undefined || budget.value === undefined) return { problems };
  if (limits.value === undefined || gates.value === undefined || worktree.value === undefined) return { problems };
  if (protect.value === undefined || evidence.value === undefined || integrate.value === undefined) return { problems };
  const allRoles = { ...rolesOf(drivers.value.default), ...roles.value };
  const inUse = { drivers: drivers.value.byName, roles: allRoles, gates: gates.value };
  return {
    problems: [...problems, ...checkUnknown(budget.value, inUse)],
    value: {
      drivers: drivers.value,
      roles: allRoles,
      budget: budget.value,
      limits: limits.value.limits,
      gates: gates.value,
      worktree: worktree.value,
      protect: protect.value,
      evidence: evidence.value,
      integrate: integrate.value,
    },
  };
}

function rolesOf(driver: string): Policy['roles'] {
  return { worker: driver, judge: driver, planner: driver };
}

function unknownTables(root: Readonly<Record<string, unknown>>): readonly Problem[] {
  return Object.keys(root)
    .filter((key) => !tables.includes(key))
    .map((key) => {
      if (!laterTables.includes(key)) return unknownKey([key], tables);
      const message = `${isTable(root[key]) ? `[${key}]` : quote(key)} is not available in this version`;
      return { path: [key], part: 'key', message, hint: 'remove it' };
    });
}

interface Limits {
  readonly limits: Policy['limits'];
  readonly gateTimeoutMs: number;
}

function readLimits(input: unknown, processors: number): Checked<Limits> {
  const schema = z.strictObject({
    agents: wholeNumber(1, 256).default(4),
    gates: wholeNumber(1, 256).default(Math.min(256, Math.max(1, Math.trunc(processors)))),
    'gate-timeout': duration().default(15 * minuteMs),
    grace: duration().default(10_000),
    ...processLimits,
    ...fileLimits,
  });
  const { problems, value } = checkTable(schema, input ?? {}, ['limits']);
  if (value === undefined) return { problems };
  const { agents, gates, grace: graceMs, processes, memory: memoryBytes, files, lines } = value;
  const limits = { agents, gates, graceMs, processes, memoryBytes, files, lines, fileBytes: value['file-size'] };
  return { problems, value: { limits, gateTimeoutMs: value['gate-timeout'] } };
}

function diagnosticOf({ path, part, message, hint, elsewhere }: Problem, file: TomlFile): Diagnostic {
  if (elsewhere !== undefined) return elsewhere;
  return { ...file.locate(path, part), message, ...(hint === undefined ? {} : { hint }) };
}

function inOrder(diagnostics: readonly Diagnostic[]): readonly Diagnostic[] {
  return [...diagnostics].sort(
    (left, right) => (left.line ?? 0) - (right.line ?? 0) || (left.column ?? 0) - (right.column ?? 0),
  );
}

/** Hashes what the policy says, not how the file says it: comments and order do not count. */
function digestOf(policy: Omit<Policy, 'digest'>): string {
  return createHash('sha256')
    .update(JSON.stringify(canonical(policy)))
    .digest('hex');
}

function canonical(value: unknown): unknown {
  if (value instanceof Map) return canonical(Object.fromEntries(value));
  if (Array.isArray(value)) return value.map(canonical);
  if (!isTable(value)) return value;
  const keys = Object.keys(value).sort();
  return keys.map((key) => [key, canonical(value[key])]);
}

/**
 * What a red command gate comes to in the end. A red is run once more on the same tree: one that is green then is *flaky*.
 * What is still red is compared, test by test, with what the gate came to before any work. `[evidence]` says what of that
 * a person accepts.
 */
import { printable } from '../platform/text.js';
import { aloneCommand } from './alone.js';
import { isNamed } from './evidence.js';
import type { Red } from './finding.js';
import { runOnce, type OneRun, type Runner } from './run-once.js';

/** A gate's run after second thoughts. */
export interface Settled {
  /** `null`: green. */
  readonly red: Red | null;
  /** The rule of giro.toml that accepts the red. */
  readonly waiver: string | null;
  /** Why the checkout is of no use any more. */
  readonly lost: string | null;
}

/** Settles what a first run has shown. `nextLog` names a fresh file for each run that this takes. */
export async function settle(runner: Runner, first: OneRun, nextLog: () => string): Promise<Settled> {
  const { red, lost } = first;
  const settled = { red, waiver: null, lost };
  if (red?.cause !== 'failed' || lost !== null || runner.request.probing === true) return settled;
  const again = await repeat(runner, first, nextLog);
  if (again.isFlaky) {
    const waiver = runner.ports.evidence.flaky === 'warn' ? '[evidence] flaky = "warn"' : null;
    return { red: flakyRed(runner, first, red), waiver, lost: again.lost };
  }
  return { ...compared(runner, first, red), lost: again.lost };
}

/** The failed tests alone where that can be done, then the gate. */
async function repeat(
  runner: Runner,
  first: OneRun,
  nextLog: () => string,
): Promise<{ readonly isFlaky: boolean; readonly lost: string | null }> {
  const { gate, request } = runner;
  const command = aloneCommand(gate.run, first.evidence);
  if (command !== null && first.evidence !== null) {
    const log = nextLog();
    say(runner, log, first.evidence.failures);
    const rules = { minTests: null, mustMatch: null, mustNotMatch: null, junit: null };
    const alone = await runOnce({ ...runner, gate: { ...gate, run: command, rules } }, log);
    const isStillRed = alone.red !== null && (alone.evidence?.failed ?? 0) > 0;
    if (isStillRed || alone.lost !== null) return { isFlaky: false, lost: alone.lost };
  }
  if (request.signal.aborted) return { isFlaky: false, lost: null };
  const log = nextLog();
  say(runner, log);
  const second = await runOnce(runner, log);
  return { isFlaky: second.red === null || failsElsewhere(first, second), lost: second.lost };
}

/** Two reds that have no failed test in common are not the same red. */
function failsElsewhere({ evidence: first }: OneRun, { evidence: second }: OneRun): boolean {
  if (!isNamed(first) || !isNamed(second)) return false;
  return !first.failures.some((name) => second.failures.includes(name));
}

function say({ ports, request, gate }: Runner, log: string, tests?: readonly string[]): void {
  const { scope, issue, codeTree: tree } = request;
  const { average: load, processors } = ports.load();
  const what = { scope, gate: gate.name, issue, tree, log, ...(tests === undefined ? {} : { tests }) };
  ports.emit({ type: 'gate.repeated', ...what, load, processors });
}

function flakyRed({ ports, gate }: Runner, { evidence }: OneRun, { finding }: Red): Red {
  const { average, processors } = ports.load();
  const tests = isNamed(evidence) ? `: ${listed(evidence.failures)}` : '';
  const load = `load of the machine: ${String(average)} on ${String(processors)} processors`;
  const message = printable(`gate ${gate.name} is flaky: red, and then not the same on the same code${tests}`);
  return {
    cause: 'flaky',
    finding: {
      ...finding,
      message,
      detail: [load, finding.detail ?? ''].join('\n').trimEnd(),
      ...testOf(evidence?.failures),
    },
  };
}

/** With `[evidence] baseline = "allow"` only what the base did not have counts, where both say by name what failed. */
function compared({ ports, request, gate }: Runner, { evidence }: OneRun, red: Red): Omit<Settled, 'lost'> {
  const before = request.scope === 'base' ? null : ports.baseline(gate.name);
  const base = before?.verdict === 'fail' ? before.evidence : null;
  if (ports.evidence.baseline !== 'allow' || !isNamed(evidence) || !isNamed(base)) return { red, waiver: null };
  const fresh = evidence.failures.filter((name) => !base.failures.includes(name));
  const old = evidence.failures.filter((name) => base.failures.includes(name));
  if (old.length === 0) return { red, waiver: null };
  const told = `${count(old.length, 'failure')} of the base (${listed(old)})`;
  if (fresh.length === 0) {
    const finding = {
      ...red.finding,
      message: printable(`gate ${gate.name} has ${told} and no other`),
      ...testOf(old),
    };
    return { red: { ...red, finding }, waiver: '[evidence] baseline = "allow"' };
  }
  const what = `${count(fresh.length, 'new failure')}: ${listed(fresh)}; besides ${told}`;
  const message = printable(`gate ${gate.name} has ${what}`);
  return { red: { ...red, finding: { ...red.finding, message, ...testOf(fresh) } }, waiver: null };
}

function testOf(names: readonly string[] | undefined): { readonly test?: string } {
  const [only, ...others] = names ?? [];
  return only === undefined || others.length > 0 ? {} : { test: only };
}

const mostListed = 5;

function listed(names: readonly string[]): string {
  const more = names.length - mostListed;
  return names.slice(0, mostListed).join(', ') + (more > 0 ? ` and ${String(more)} more` : '');
}

function count(number: number, word: string): string {
  return `${String(number)} ${word}${number === 1 ? '' : 's'}`;
}

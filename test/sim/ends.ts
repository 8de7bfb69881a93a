/** How a run of a simulated world may end. */
import type { EngineEnd } from '../../src/cli/engine-request.js';
import type { IssueId, Oid } from '../../src/issue.js';
import { issueIn, lacking } from './code.js';
import type { Life } from './process.js';
import type { World } from './world.js';

/** Gives what is wrong with an end; `null`: it is one that is allowed. */
export function wrongEnd(world: World, life: Life, { end }: EngineEnd): string | null {
  const tip = world.store.readRef(world.tipRef);
  if (tip === null) return 'it ended without a branch';
  const states = statesAt(world, tip);
  const spec = /^state: (\S+)$/m.exec(world.store.text(tip, `${world.folder}/SPEC.md`) ?? '')?.[1];
  switch (end.kind) {
    case 'proof': {
      const open = [...states].filter(([, state]) => state !== 'done' && state !== 'wontfix');
      if (open.length > 0) return `proof, and ${open.map(([issue, state]) => `${issue} is ${state}`).join(', ')}`;
      if (spec !== 'done') return `proof, and the Spec is ${String(spec)}`;
      const [lack] = lacking(world.script, world.filesOf(world.code(tip)));
      return lack === undefined ? null : `proof, and ${lack}`;
    }
    case 'needs-human':
      if (spec !== 'needs-human') return `asks, and the Spec is ${String(spec)}`;
      if (end.asks !== null)
        return explained(world, end.asks.cause) ? null : `the Spec asks without a reason: ${end.asks.cause}`;
      return notGoneOn(world, states);
    case 'stopped':
      return life.noMore.signal.aborted ? null : 'it ended as stopped, and nobody did';
    case 'held':
      return `held: ${end.message}`;
  }
}

/** The states of all Issues where everybody can read them. */
export function statesAt(world: World, tip: Oid): ReadonlyMap<IssueId, string> {
  return new Map(world.issuesAt(tip).map((issue) => [issue, world.factsAt(tip, issue)?.state ?? 'gone']));
}

/** Everything that could go on went on. */
function notGoneOn(world: World, states: ReadonlyMap<IssueId, string>): string | null {
  const asking = [...states].filter(([, state]) => state === 'needs-human').map(([issue]) => issue);
  if (asking.length === 0) return isGivenUp(states) ? null : 'it asks, and no Issue does';
  const waits = (issue: IssueId): boolean =>
    issueIn(world.script, issue).dependsOn.some(
      (on) => states.get(on) === 'needs-human' || (states.get(on) !== 'done' && waits(on)),
    );
  for (const [issue, state] of states) {
    if (state === 'done' || state === 'wontfix' || state === 'needs-human') continue;
    if (!waits(issue)) return `${issue} is ${state} and could have gone on`;
  }
  return null;
}

/** There is nothing left that anybody wants. */
export function isGivenUp(states: ReadonlyMap<IssueId, string>): boolean {
  return [...states.values()].every((state) => state === 'wontfix');
}

function explained({ script, wholeTrouble }: World, cause: string): boolean {
  switch (cause) {
    case 'rounds-spent':
    case 'same-findings':
      return script.gaps > 0 || wholeTrouble.has('flaky');
    case 'baseline-red':
      return wholeTrouble.has('flaky');
    case 'cannot-run-here':
      return wholeTrouble.size > 0;
    case 'plan-rejected':
    case 'operation-failures':
      return script.gaps > 0 || wholeTrouble.size > 0;
    default:
      return false;
  }
}

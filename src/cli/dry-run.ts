/** What `--dry-run` shows of one Spec. */
import { gateFacts } from '../gates/definition.js';
import { shortOid, type Oid } from '../issue.js';
import { buildGraph } from '../scheduler/graph.js';
import { exitCodes } from './exit.js';
import type { ImplementOptions, ProcessEnd } from './options.js';
import { gatePreview, planPreview, runPreview } from './plan-preview.js';
import type { Budget } from '../policy.js';
import type { Prepared } from './prepare.js';
import { write, type Terminal } from './show.js';

/** The plan, the waves, the gates and the budget; nothing is written or spent. */
export function dryRun(
  prepared: Prepared,
  { head, run }: { readonly head: Oid; readonly run: Budget['run'] },
  { options, terminal }: { readonly options: ImplementOptions; readonly terminal: Terminal },
): ProcessEnd {
  const { spec } = prepared.parsed;
  const { intake, tip } = prepared;
  const policy = { ...prepared.policy, budget: { ...prepared.policy.budget, run } };
  const graph = buildGraph(spec.issues);
  if (options.json) {
    const issues = spec.issues.map((issue) => ({
      id: issue.id,
      title: issue.title,
      state: issue.state,
      wave: graph.wave(issue.id),
      dependsOn: issue.dependsOn,
    }));
    const gates = policy.gates.map(gateFacts);
    write(
      terminal,
      `${JSON.stringify({ spec: spec.slug, base: head, tip, issues, gates, budget: policy.budget, driver: policy.roles.worker, planner: policy.roles.planner })}\n`,
    );
    return { exit: exitCodes.proof };
  }
  const lines = [
    `${spec.slug}: ${spec.title}`,
    tip === null
      ? `base      ${shortOid(head)} (a first run would snapshot the Spec onto giro/${spec.slug})`
      : `tip       ${shortOid(tip)} of giro/${spec.slug}`,
    ...graph.waves.map((wave, index) => {
      const names = wave.map((id) => {
        const state = spec.issues.find((issue) => issue.id === id)?.state ?? 'ready';
        return state === 'ready' ? id : `${id} (${state})`;
      });
      return `wave ${String(index + 1).padEnd(5)}${names.join(', ')}`;
    }),
    ...gatePreview(policy),
    ...planPreview(spec.issues.length, policy),
    ...runPreview(policy, options),
    ...spec.ignored.map((file) => `ignored   ${file.path} (${file.reason})`),
    ...(intake.edited.length > 0 ? [`taken in  ${intake.edited.join(', ')}`] : []),
    'nothing was started or written',
  ];
  write(terminal, `${lines.join('\n')}\n`);
  return { exit: exitCodes.proof };
}

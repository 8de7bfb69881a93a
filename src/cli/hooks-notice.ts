/** Says, in one line, that giro runs no git hook, when the repository has some and no gate does their work. */
import type { Policy } from '../policy.js';
import { describeRepository } from '../worktree/git.js';
import { detectHooks } from './detect-hooks.js';
import { readProject } from './read-project.js';

/** The line to say; `null` when there is nothing to say. */
export async function hooksNotice(request: {
  readonly folder: string;
  readonly own: Readonly<Record<string, string | undefined>>;
  readonly policy: Policy;
}): Promise<string | null> {
  const repository = await describeRepository(request);
  if (!repository.ok) return null;
  const project = await readProject(repository.value, request.own);
  const checks = detectHooks(project);
  const names = [...new Set([...project.hooks.map((hook) => hook.path), ...checks.map((check) => check.from)])];
  if (names.length === 0) return null;
  const commands = new Set(request.policy.gates.flatMap((gate) => (gate.kind === 'command' ? [gate.run] : [])));
  if (checks.length > 0 && checks.every((check) => commands.has(check.command))) return null;
  const proposed = checks.map((check) => `${check.name} = ${JSON.stringify(check.command)}`).join(', ');
  const fix = proposed === '' ? 'make what they check a gate in [verify]' : `as gates in [verify]: ${proposed}`;
  return `git hooks are not run by giro (${names.slice(0, 5).join(', ')}); ${fix}`;
}

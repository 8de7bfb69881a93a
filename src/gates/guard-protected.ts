/** Files that only a person changes: giro.toml, what it names, and `[protect] paths`. */
import { posix } from 'node:path';
import type { Finding } from '../issue.js';
import { unreachable } from '../failure.js';
import type { DriverDefinition } from '../policy.js';
import { guardFinding, type GuardChange, type GuardRule, type RuleContext } from './guard-rule.js';
import { wordsOf } from './guard-commands.js';
import { matcher } from './guard-globs.js';

/** Finds changes of files that only a person changes. */
export function protectedRule({ work }: RuleContext): GuardRule {
  const { policy } = work;
  const named = new Map<string, string>();
  for (const driver of policy.drivers.byName.values()) named.set(programOf(driver), `the driver ${driver.name} is`);
  for (const word of wordsOf(policy.worktree.setup ?? '')) named.set(word, '[worktree] setup names');
  for (const { name, ...gate } of policy.gates) {
    if (gate.kind === 'prompt' && gate.rubric.source !== null) named.set(gate.rubric.source, `the gate ${name} reads`);
  }
  const skills = policy.gates.flatMap((gate) => (gate.kind === 'skill' ? [posix.dirname(gate.skill.path)] : []));
  // Beside a SKILL.md lie the files that it refers to; at the top of the repository everything would.
  const isOfSkill = matcher(skills.filter((folder) => folder !== '.'));
  const skillFiles = new Set(policy.gates.flatMap((gate) => (gate.kind === 'skill' ? [gate.skill.path] : [])));
  const isProtected = matcher(policy.protect.paths);
  const findings: Finding[] = [];
  const add = (file: string, message: string, allow?: string): void => {
    findings.push(guardFinding(work, { rule: 'protected', file, message, ...(allow === undefined ? {} : { allow }) }));
  };
  return {
    needsBefore: () => false,
    see({ change }) {
      const { path } = change;
      const why = named.get(path);
      if (path === 'giro.toml' || path === '.worktreeinclude') add(path, 'only a person changes it; put it back');
      else if (isProtected(path)) {
        add(path, `${done(change)}, though [protect] paths names it; put it back`, 'another [protect] paths');
      } else if (skillFiles.has(path) || isOfSkill(path))
        add(path, `${done(change)}, though it is part of a skill that judges; put it back`);
      else if (why !== undefined && change.oldOid !== null) {
        add(path, `${done(change)}, though ${why} this file; put it back`);
      }
    },
    findings: () => findings,
  };
}

/** Says what happened to a file. */
export function done(change: Pick<GuardChange, 'status'>): string {
  return change.status === 'added' ? 'added' : change.status === 'deleted' ? 'deleted' : 'changed';
}

function programOf(driver: DriverDefinition): string {
  switch (driver.kind) {
    case 'command':
      return driver.run[0].replace(/^\.\//, '');
    case 'scripted':
      return driver.script.replace(/^\.\//, '');
    default:
      return unreachable(driver);
  }
}

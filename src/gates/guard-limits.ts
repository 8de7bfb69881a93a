/** How much one Issue may change, and where. */
import { posix } from 'node:path';
import type { Finding } from '../issue.js';
import { readLimit } from './guard-contents.js';
import { matcher } from './guard-globs.js';
import { guardFinding, inIssue, type GuardChange, type GuardRule, type RuleContext } from './guard-rule.js';

/** Written by tools, line after line: nobody reads them, so they do not count as lines. */
const lockFiles = new Set([
  'package-lock.json',
  'npm-shrinkwrap.json',
  'pnpm-lock.yaml',
  'yarn.lock',
  'bun.lock',
  'deno.lock',
  'Cargo.lock',
  'go.sum',
  'poetry.lock',
  'uv.lock',
  'pdm.lock',
  'Pipfile.lock',
  'Gemfile.lock',
  'composer.lock',
  'gradle.lockfile',
]);

/** Finds work with too many files or lines, and files that are too large. */
export async function limitRule({ work, moved, contents, touched }: RuleContext): Promise<GuardRule> {
  const { limits } = work.policy;
  const findings: Finding[] = [];
  // A move is one change, and nobody wrote its lines.
  const files = work.changes.filter(({ path, status }) => !(moved.has(path) && status === 'deleted')).length;
  const lines = work.changes.reduce((sum, change) => sum + linesOf(change, moved), 0);
  const add = (key: 'files' | 'lines', count: number): void => {
    if (count <= limits[key]) return;
    const message = `${String(count)} ${key} are changed, more than [limits] ${key} = ${String(limits[key])}; do less`;
    findings.push(guardFinding(work, { rule: 'limits', message, allow: `a higher [limits] ${key}` }));
  };
  add('files', files);
  add('lines', lines);
  const large = await largeFiles(work.changes, limits.fileBytes, (oid) => contents.sizeOf(oid));
  for (const { path, bytes } of large) {
    const message = `${inUnits(bytes)}, more than [limits] file-size (${inUnits(limits.fileBytes)}); leave it out`;
    findings.push(guardFinding(work, { rule: 'size', file: path, message, allow: 'a higher [limits] file-size' }));
  }
  const told = new Set(large.map(({ path }) => path));
  return {
    needsBefore: () => false,
    see({ change: { path, oldOid, newOid }, after }) {
      if (after.kind !== 'large' || oldOid === newOid || told.has(path) || moved.has(path) || touched(path)) return;
      const message = `${inUnits(after.bytes)}, and guards read no file over ${inUnits(readLimit)}; leave it out`;
      findings.push(guardFinding(work, { rule: 'size', file: path, message, allow: inIssue('touches', path) }));
    },
    findings: () => findings,
  };
}

function linesOf({ path, insertions, deletions }: GuardChange, moved: ReadonlySet<string>): number {
  return moved.has(path) || lockFiles.has(posix.basename(path)) ? 0 : insertions + deletions;
}

/** Files over the limit, but for those that were over it already and have not grown. */
async function largeFiles(
  changes: readonly GuardChange[],
  limit: number,
  sizeOf: (oid: NonNullable<GuardChange['newOid']>) => Promise<number>,
): Promise<readonly { readonly path: string; readonly bytes: number }[]> {
  const found = await Promise.all(
    changes.map(async ({ path, newOid, oldOid, newMode, oldMode }) => {
      if (newOid === null || newMode === '160000') return [];
      const bytes = await sizeOf(newOid);
      if (bytes <= limit) return [];
      const was = oldOid === null || oldMode === '160000' ? 0 : await sizeOf(oldOid);
      return bytes <= was ? [] : [{ path, bytes }];
    }),
  );
  return found.flat();
}

function inUnits(bytes: number): string {
  if (bytes >= 1024 * 1024) return `${(bytes / 1024 / 1024).toFixed(1)} MB`;
  return bytes >= 1024 ? `${(bytes / 1024).toFixed(1)} KB` : `${String(bytes)} bytes`;
}

/** Finds files outside `touches`, when `[protect] scope` is strict and the Issue has some. */
export function scopeRule({ work, testsAllow, moved }: RuleContext): GuardRule {
  const { touches } = work.issue;
  const isStrict = work.policy.protect.scope === 'strict' && touches.length > 0;
  const inScope = matcher(touches);
  const findings: Finding[] = [];
  return {
    needsBefore: () => false,
    see({ change: { path, status } }) {
      if (!isStrict || inScope(path) || testsAllow(path)) return;
      if (status === 'deleted' && moved.has(path)) return;
      const message = 'outside what the Issue touches; put it back as it was';
      const allow = `touches: [${JSON.stringify(path)}] in the Issue`;
      findings.push(guardFinding(work, { rule: 'scope', file: path, message, allow }));
    },
    findings: () => findings,
  };
}

/** Builds the files of a Spec folder for tests, and shows what parsing them says. */
import { parseSpecFolder, type FileBytes, type ParsedSpec } from '../../src/config/issue-file.js';
import type { Diagnostic } from '../../src/failure.js';
import { parseSpecSlug, type IssueId, type SpecSlug } from '../../src/issue.js';

export function slug(text: string): SpecSlug {
  const parsed = parseSpecSlug(text);
  if (parsed === undefined) throw new Error(`not a slug: ${text}`);
  return parsed;
}

/** Files by path below the Spec's folder; names without a slash that start with a digit go to `issues/`. */
export function files(contents: Readonly<Record<string, string | Uint8Array>>, spec = 'auth'): readonly FileBytes[] {
  return Object.entries({ 'SPEC.md': '# Auth\n\nPeople can log in.\n', ...contents }).map(([name, content]) => ({
    path: `docs/specs/${spec}/${/^[0-9][^/]*$/.test(name) ? `issues/${name}` : name}`,
    bytes: typeof content === 'string' ? Buffer.from(content) : content,
  }));
}

export function issueText(frontmatter = '', body = '# Login\n\nPeople can log in.\n'): string {
  return `---\nstate: ready\n${frontmatter}---\n${body}`;
}

export function parse(contents: Readonly<Record<string, string | Uint8Array>>): ParsedSpec {
  const result = parseSpecFolder({ slug: slug('auth'), files: files(contents) });
  if (!result.ok) throw new Error(JSON.stringify(result.failure.diagnostics, null, 2));
  return result.value;
}

export function mistakes(contents: Readonly<Record<string, string | Uint8Array>>): readonly Diagnostic[] {
  const result = parseSpecFolder({ slug: slug('auth'), files: files(contents) });
  return result.ok ? [] : result.failure.diagnostics;
}

/** The part of the line that a Diagnostic underlines. */
export function underlined(diagnostic: Diagnostic | undefined): string | undefined {
  const { source, column, length } = diagnostic ?? {};
  if (source === undefined || column === undefined) return undefined;
  return source.slice(column - 1, column - 1 + (length ?? 1));
}

export function dependencies(spec: ParsedSpec, id: string): readonly IssueId[] | undefined {
  return spec.spec.issues.find((issue) => issue.id === id)?.dependsOn;
}

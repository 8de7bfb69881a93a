/** The file of an Issue that a planner described. What a model wrote stays text: it becomes no key, fence or History (L11). */
import { historyHeading } from './markdown.js';

/** What the file of a planned Issue says. */
export interface PlannedFile {
  readonly title: string;
  readonly body: string;
  readonly dependsOn: readonly string[];
  readonly touches: readonly string[];
  readonly resources: readonly string[];
  readonly gap: number | null;
}

/** Writes the file: only the keys that giro may write, each value quoted where YAML could read another one. */
export function plannedIssueText(issue: PlannedFile): string {
  const frontmatter = [
    'state: ready',
    // Ids as typed: quoted, since a number with a zero in front is another one for many YAML readers.
    ...list('depends-on', issue.dependsOn),
    ...list('touches', issue.touches),
    ...list('resources', issue.resources),
    ...(issue.gap === null ? [] : [`gap: ${String(issue.gap)}`]),
  ];
  return ['---', ...frontmatter, '---', `# ${issue.title}`, '', ...issue.body.split('\n').map(withoutHistory), ''].join(
    '\n',
  );
}

function list(key: string, values: readonly string[]): readonly string[] {
  return values.length === 0 ? [] : [`${key}: [${values.map(scalar).join(', ')}]`];
}

/** A name with a letter in it and nothing special is the same text with and without quotes. */
function scalar(value: string): string {
  return /^[0-9]+-[a-z][a-z0-9-]*$/.test(value) ? value : JSON.stringify(value);
}

/** The heading is giro's own: everything below it would be read as what giro recorded. */
function withoutHistory(line: string): string {
  return line === historyHeading ? `#${line}` : line;
}

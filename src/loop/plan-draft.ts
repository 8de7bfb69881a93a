/**
 * A planner's answer turned into Issues that can be written, or into every reason why it cannot be one. Pure: ids are
 * given here, and nothing of a model's text becomes a path, a number or an edge before it was understood (L1, L11).
 */
import type { PlannedText } from '../drivers/planner.js';
import { issueNumber, parseIssueId, parseSpecSlug, type Finding, type IssueId } from '../issue.js';

/** An Issue that was planned: its id is given, its dependencies are resolved. */
export interface PlannedIssue {
  readonly id: IssueId;
  readonly title: string;
  readonly body: string;
  readonly dependsOn: readonly IssueId[];
  readonly touches: readonly string[];
  readonly resources: readonly string[];
  /** The round whose validation it answers; `null`: it is of the first plan. */
  readonly gap: number | null;
}

/** What a plan joins. */
export interface PlanGround {
  /** The Issues that the Spec has. */
  readonly issues: readonly IssueId[];
  /** Further numbers that must not be used again, such as those of old branches. */
  readonly taken: readonly number[];
  readonly gap: number | null;
}

/** A plan, or why it is none. */
export type Draft =
  | { readonly kind: 'plan'; readonly issues: readonly PlannedIssue[] }
  | { readonly kind: 'rejected'; readonly findings: readonly Finding[] };

/** More Issues than this are no plan that anybody has read. */
export const mostPlanned = 200;

const longestTitle = 200;
const longestBody = 64 * 1024;

/** Gives ids, resolves dependencies, and finds what is missing or double. Whether the graph has cycles is asked later. */
export function draftPlan(texts: readonly PlannedText[], ground: PlanGround): Draft {
  if (texts.length === 0) return rejected('the plan has no Issue');
  if (texts.length > mostPlanned)
    return rejected(`the plan has ${String(texts.length)} Issues, at most ${String(mostPlanned)} are allowed`);
  const slugs = texts.map((text) => slugOf(text.slug));
  const named = nameAll(slugs, ground);
  const index = new PlanIndex(texts, { ids: named, slugs, existing: ground.issues });
  const issues: PlannedIssue[] = [];
  const findings: Finding[] = sameSlugs(texts, slugs);
  for (const [place, text] of texts.entries()) {
    const id = named[place];
    const own = [...textFindings(text, slugs[place]), ...index.unknown(place)];
    findings.push(...own);
    if (id === undefined || own.length > 0) continue;
    issues.push({
      id,
      title: oneLine(text.title),
      body: bodyOf(text),
      dependsOn: index.resolved(place),
      touches: linesOf(text.touches),
      resources: linesOf(text.resources),
      gap: ground.gap,
    });
  }
  return findings.length > 0 ? { kind: 'rejected', findings } : { kind: 'plan', issues };
}

function rejected(message: string): Draft {
  return { kind: 'rejected', findings: [{ message }] };
}

/** A number in front is the engine's to give; what is left must be a name as it is. */
function slugOf(typed: string): string | undefined {
  return parseSpecSlug(typed.trim().replace(/^[0-9]+-(?=.)/, ''));
}

/** Numbers go on behind the highest that was ever used; all of a plan have the same width. */
function nameAll(slugs: readonly (string | undefined)[], ground: PlanGround): readonly (IssueId | undefined)[] {
  const first = Math.max(0, ...ground.issues.map(issueNumber), ...ground.taken) + 1;
  const width = Math.max(2, String(first + slugs.length - 1).length);
  return slugs.map((slug, place) =>
    slug === undefined ? undefined : parseIssueId(`${String(first + place).padStart(width, '0')}-${slug}`),
  );
}

function sameSlugs(texts: readonly PlannedText[], slugs: readonly (string | undefined)[]): Finding[] {
  const seen = new Set<string>();
  const twice = new Set<string>();
  for (const slug of slugs) {
    if (slug === undefined) continue;
    if (seen.has(slug)) twice.add(slug);
    seen.add(slug);
  }
  return [...twice].map((slug) => {
    const titles = texts.filter((_text, place) => slugs[place] === slug).map((text) => quoted(text.title));
    return {
      message: `${String(titles.length)} Issues of the plan have the slug ${quoted(slug)}: ${titles.join(', ')}`,
    };
  });
}

function textFindings(text: PlannedText, slug: string | undefined): readonly Finding[] {
  const name = quoted(text.slug);
  const messages = [
    ...(slug === undefined ? [`${name} is no slug: a-z, 0-9 and dashes between them, at most 100`] : []),
    ...(oneLine(text.title) === '' ? [`the Issue ${name} has no title`] : []),
    ...(text.title.length > longestTitle
      ? [`the title of ${name} is longer than ${String(longestTitle)} characters`]
      : []),
    ...(bodyOf(text).trim() === ''
      ? [`the Issue ${name} has an empty body: say what is wanted and how to see that it is done`]
      : []),
    ...(text.body.length > longestBody ? [`the body of ${name} is longer than ${String(longestBody)} characters`] : []),
  ];
  return messages.map((message) => ({ message }));
}

/** Finds what the dependencies of a plan mean. */
class PlanIndex {
  readonly #texts: readonly PlannedText[];
  readonly #ids: readonly (IssueId | undefined)[];
  readonly #bySlug = new Map<string, IssueId>();
  readonly #byNumber = new Map<number, IssueId>();
  readonly #all: ReadonlySet<string>;

  constructor(
    texts: readonly PlannedText[],
    named: {
      readonly ids: readonly (IssueId | undefined)[];
      readonly slugs: readonly (string | undefined)[];
      readonly existing: readonly IssueId[];
    },
  ) {
    this.#texts = texts;
    this.#ids = named.ids;
    const known = [...named.existing, ...named.ids.filter((id) => id !== undefined)];
    this.#all = new Set(known);
    for (const id of known) this.#byNumber.set(issueNumber(id), id);
    // What the plan itself calls something comes before an older Issue of that name.
    const older = named.existing.map((id): [string, IssueId] => [id.replace(/^[0-9]+-/, ''), id]);
    const own = named.ids.flatMap((id, place): [string, IssueId][] => {
      const slug = named.slugs[place];
      return id === undefined || slug === undefined
        ? []
        : [
            [slug, id],
            [(texts[place]?.slug ?? slug).trim(), id],
          ];
    });
    for (const [slug, id] of [...older, ...own]) this.#bySlug.set(slug, id);
  }

  resolved(place: number): readonly IssueId[] {
    return distinct(this.#typed(place).flatMap((typed) => this.#find(typed) ?? []));
  }

  unknown(place: number): readonly Finding[] {
    const [name, self] = [quoted(this.#texts[place]?.slug ?? ''), this.#ids[place]];
    return this.#typed(place).flatMap((typed) => {
      const id = this.#find(typed);
      if (id === undefined) return [{ message: `${name} depends on ${quoted(typed)}, which does not exist` }];
      return id === self ? [{ message: `${name} depends on itself` }] : [];
    });
  }

  #typed(place: number): readonly string[] {
    return (this.#texts[place]?.dependsOn ?? []).map((typed) => typed.trim());
  }

  #find(typed: string): IssueId | undefined {
    const bySlug = this.#bySlug.get(typed);
    if (bySlug !== undefined) return bySlug;
    const [, number, slug] = /^([0-9]{1,9})(?:-(.+))?$/.exec(typed) ?? [];
    if (number === undefined) return undefined;
    const id = this.#byNumber.get(Number(number));
    if (id === undefined || slug === undefined) return id;
    return id.replace(/^[0-9]+-/, '') === slug && this.#all.has(id) ? id : undefined;
  }
}

/** Line ends as everywhere, no control characters, and no second heading with the title. */
function bodyOf(text: PlannedText): string {
  const lines = text.body
    .replace(/\r\n?/g, '\n')
    .replace(/\p{Surrogate}/gu, '\uFFFD')
    .replace(/[^\P{Cc}\n\t]/gu, '')
    .trim()
    .split('\n');
  const repeats = lines[0]?.replace(/^#[ \t]+/, '') === oneLine(text.title) && lines[0].startsWith('#');
  return (repeats ? lines.slice(1) : lines).join('\n').trim();
}

function oneLine(text: string): string {
  return text
    .replace(/\p{Surrogate}/gu, '\uFFFD')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
}

function linesOf(values: readonly string[]): readonly string[] {
  return distinct(values.map(oneLine).filter((value) => value !== ''));
}

function quoted(text: string): string {
  const line = oneLine(text);
  return JSON.stringify(line.length > 60 ? `${line.slice(0, 60)}…` : line);
}

function distinct<T>(values: readonly T[]): readonly T[] {
  return [...new Set(values)];
}

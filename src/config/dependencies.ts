/** What `depends-on` may say, and which Issue each entry means. */
import type { Diagnostic } from '../failure.js';
import { issueNumber, type IssueId } from '../issue.js';
import { quote, type Place } from './diagnostic.js';
import { describe, type FieldReader, type Reference } from './fields.js';
import type { Value } from './value.js';
import { nearest } from './nearest.js';

const shapes = 'write one id or a list of ids: depends-on: [01, 02-store]';

/** Reads the entries as typed: never numbers, never octal, never dates. */
export function readDependencies(reader: FieldReader): readonly Reference[] {
  const value = reader.field('depends-on')?.value;
  if (value === undefined || value.kind === 'null') return [];
  return (value.kind === 'list' ? value.items : [value]).flatMap((entry) => readEntry(reader, entry));
}

function readEntry(reader: FieldReader, entry: Value): readonly Reference[] {
  if (entry.kind !== 'text') {
    const what =
      entry.kind === 'list' ? 'a list inside the list' : entry.kind === 'null' ? 'an empty entry' : describe(entry);
    const shown = entry.end > entry.start ? `: ${quote(reader.source.text.slice(entry.start, entry.end))}` : '';
    reader.reportValue(entry, `\`depends-on\` holds ${what}, not an id${shown}`, shapes);
    return [];
  }
  if (entry.text.trim() === '') {
    reader.reportValue(entry, '`depends-on` holds an empty text, not an id', shapes);
    return [];
  }
  if (/[,;\s]/.test(entry.text.trim())) {
    const ids = entry.text.split(/[,;\s]+/).filter((id) => id !== '');
    const hint = `write a list: depends-on: [${ids.join(', ')}]`;
    reader.reportValue(entry, `\`depends-on\` holds several ids in one text: ${quote(entry.text)}`, hint);
    return [];
  }
  return [{ text: entry.text.trim(), place: reader.placeOf(entry) }];
}

/** Resolved ids with the place of the entry that names each. */
export interface Resolved {
  readonly dependsOn: ReadonlyMap<IssueId, Place>;
  readonly problems: readonly Diagnostic[];
}

/** The Issues of a Spec, found by number or by name. */
export class IssueIndex {
  readonly #byNumber = new Map<number, IssueId>();
  readonly #ids: readonly IssueId[];

  constructor(ids: readonly IssueId[]) {
    this.#ids = ids;
    for (const id of ids) this.#byNumber.set(issueNumber(id), id);
  }

  /** Finds what an entry means: `1`, `01`, `01-login` and `1-login` are the same Issue, `01-Login` is none. */
  find(text: string): IssueId | undefined {
    const [, number, slug] = /^([0-9]+)(?:-(.+))?$/s.exec(text) ?? [];
    if (number === undefined) return undefined;
    const id = this.#byNumber.get(Number(number));
    if (id === undefined || slug === undefined) return id;
    return this.#ids.find((other) => issueNumber(other) === Number(number) && slugOf(other) === slug);
  }

  /** Resolves all entries of one Issue. */
  resolve(self: IssueId, entries: readonly Reference[]): Resolved {
    const dependsOn = new Map<IssueId, Place>();
    const problems: Diagnostic[] = [];
    for (const { text, place } of entries) {
      const id = this.find(text);
      if (id === undefined) problems.push({ ...place, ...this.#unknown(text) });
      else if (id === self)
        problems.push({ ...place, message: `the Issue depends on itself: ${quote(text)}`, hint: 'remove it' });
      else if (!dependsOn.has(id)) dependsOn.set(id, place);
    }
    return { dependsOn, problems };
  }

  #unknown(text: string): { readonly message: string; readonly hint: string } {
    const close = this.#close(text);
    const all =
      this.#ids.length <= 12
        ? `the Issues are: ${this.#ids.join(', ')}`
        : `write a number or NN-slug of ${this.#ids.length} Issues`;
    const hint = close.length === 0 ? all : `did you mean ${close.map((id) => `\`${id}\``).join(' or ')}?`;
    const date = /^\d{4}-\d\d?-\d\d?(?:[T ].*)?$/.test(text) ? ', which looks like a date' : '';
    return { message: `\`depends-on\` names an unknown Issue: ${quote(text)}${date}`, hint };
  }

  /** Ids that a file name, a path, other case or a typo may have meant. */
  #close(text: string): readonly IssueId[] {
    const bare = text
      .replace(/^.*[/\\]/, '')
      .replace(/\.md$/i, '')
      .toLowerCase();
    const exact = this.find(bare) ?? this.#ids.find((id) => slugOf(id) === bare);
    if (exact !== undefined) return [exact];
    const slugs = nearest(bare, this.#ids.map(slugOf));
    const bySlug = this.#ids.filter((id) => slugs.includes(slugOf(id)));
    return [...new Set([...nearest(bare, this.#ids), ...bySlug])].slice(0, 3);
  }
}

function slugOf(id: IssueId): string {
  return id.replace(/^[0-9]+-/, '');
}

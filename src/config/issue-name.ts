/** Which file names are Issues, which are mistakes, and which are none of giro's business. */
import { parseIssueId, parseSpecSlug, type IssueId } from '../issue.js';

/** What a file of a Spec's folder is; the path is relative to that folder. */
export type FileRole =
  | { readonly kind: 'spec' }
  | { readonly kind: 'issue'; readonly id: IssueId }
  | { readonly kind: 'illegal'; readonly message: string; readonly suggestion: string }
  | { readonly kind: 'ignored'; readonly reason: string };

/** Says what a file is by its path. */
export function roleOf(path: string): FileRole {
  if (path === 'SPEC.md') return { kind: 'spec' };
  if (!path.startsWith('issues/')) {
    const isIssue = parseIssueId(path.replace(/\.md$/, '')) !== undefined && path.endsWith('.md');
    return {
      kind: 'ignored',
      reason: isIssue ? `not in issues/: move it to issues/${path} to make it an Issue` : 'not in issues/',
    };
  }
  const name = path.slice('issues/'.length);
  if (name.includes('/')) return { kind: 'ignored', reason: 'in a sub folder of issues/' };
  // Whoever numbers a markdown file here means an Issue: left out without a word, it would be missing from the proof.
  if (!/^[0-9][^]*\.md$/i.test(name)) return { kind: 'ignored', reason: 'not named NN-slug.md' };
  const stem = name.slice(0, -'.md'.length);
  const id = name.endsWith('.md') ? parseIssueId(stem) : undefined;
  if (id !== undefined) return { kind: 'issue', id };
  return { kind: 'illegal', message: illegalReason(stem, name), suggestion: suggestIssueName(stem) };
}

function illegalReason(stem: string, name: string): string {
  const [, number = '', dash = '', slug = ''] = /^([0-9]+)(-?)([^]*)$/.exec(stem) ?? [];
  if (dash === '' && slug !== '') return 'a dash comes between its number and its name';
  if (slug !== '' && !name.endsWith('.md') && parseIssueId(stem) !== undefined) return 'its name ends in .md';
  if (number.length > 9) return 'its number has more than nine digits';
  if (slug.length > 100) return `its name is ${slug.length} characters long, at most 100 are allowed`;
  if (slug === '') return 'it has no name behind its number';
  return 'its name may hold only a-z, 0-9 and dashes between them';
}

function suggestIssueName(stem: string): string {
  const [, number = '', slug = ''] = /^([0-9]+)([^]*)$/.exec(stem) ?? [];
  const digits = number.replace(/^0+(?=[0-9]{2})/, '').slice(0, 9);
  return `${digits}-${suggestSlug(slug) ?? 'issue'}.md`;
}

/** Makes a legal name out of any text; `undefined` when nothing of it can be used. */
export function suggestSlug(text: string): string | undefined {
  const slug = text
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, 60)
    .replace(/-+$/, '');
  return parseSpecSlug(slug);
}

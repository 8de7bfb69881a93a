import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';

/** Root of the repository. */
export const root = join(import.meta.dirname, '../..');

/** Every document that a person is meant to read, by its path from the root. */
export const documents: readonly string[] = [
  'README.md',
  'AGENTS.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => `docs/${path}`)
    .sort(),
];

/** Reads a file of the repository. */
export function readText(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** A code block, with the word behind its fence. */
export interface Block {
  readonly language: string;
  readonly text: string;
}

/** The code blocks of a document, in order. */
export function blocksOf(markdown: string): readonly Block[] {
  return [...markdown.matchAll(/^```(\w*)\n([^]*?)^```$/gm)].map(([, language = '', text = '']) => ({
    language,
    text,
  }));
}

/** A document without its code blocks. */
export function proseOf(markdown: string): string {
  return markdown.replace(/^```[^]*?^```$/gm, '');
}

/** The cells of the rows of the first table below a heading, without its header. */
export function tableBelow(markdown: string, heading: string): readonly (readonly string[])[] {
  const [, below] = `\n${markdown}`.split(`\n${heading}\n`);
  if (below === undefined) throw new Error(`no heading ${heading}`);
  const lines = below.slice(below.search(/^\|/m)).split('\n');
  const rows = lines.slice(
    2,
    lines.findIndex((line) => !line.startsWith('|')),
  );
  return rows.map((row) =>
    row
      .slice(1, -1)
      .split(' | ')
      .map((cell) => cell.trim()),
  );
}

/** The anchors of a document as GitHub makes them from its headings. */
export function anchorsOf(markdown: string): ReadonlySet<string> {
  const counts = new Map<string, number>();
  return new Set(
    [...proseOf(markdown).matchAll(/^#{1,6} +(.*)$/gm)].map(([, heading = '']) => {
      const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
      const slug = text.replace(/[^\p{L}\p{N}\p{M} _-]/gu, '').replaceAll(' ', '-');
      const count = counts.get(slug) ?? 0;
      counts.set(slug, count + 1);
      return count === 0 ? slug : `${slug}-${String(count)}`;
    }),
  );
}

/** The sources as one text, with the vocabulary and everything below it. */
export function allSources(): string {
  return readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .map((path) => join(root, 'src', path))
    .filter((path) => statSync(path).isFile())
    .map((path) => readText(relative(root, path)))
    .join('\n');
}

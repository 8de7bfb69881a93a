/** Third-party notices: the licence of every package whose code is really in the bundle. */
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

/** One package whose code is in the bundle. */
export interface BundledPackage {
  readonly name: string;
  readonly version: string;
  /** SPDX expression as the package declares it. */
  readonly license: string;
  readonly homepage: string;
  /** Full text, from its own file where it ships one. */
  readonly text: string;
}

/** Licences whose only duty is to keep the notice; anything else stops the build until somebody has looked. */
const accepted = new Set(['MIT', 'ISC', '0BSD', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', 'BlueOak-1.0.0']);

/** Reads the packages that these module ids come from, sorted by name; throws on a licence that is not accepted. */
export async function packagesOf(moduleIds: readonly string[]): Promise<readonly BundledPackage[]> {
  const folders = new Set(moduleIds.flatMap((id) => packageFolder(id) ?? []));
  const packages = await Promise.all([...folders].map(readPackage));
  for (const { name, version, license } of packages) {
    if (!accepted.has(license)) throw new Error(`${name}@${version} is bundled, but its licence is ${license}`);
  }
  return packages.sort((left, right) => `${left.name}@${left.version}`.localeCompare(`${right.name}@${right.version}`));
}

/** Writes the notices as markdown. */
export function renderNotices(packages: readonly BundledPackage[]): string {
  const list = packages.map(({ name, version, license }) => `- ${name} ${version} (${license})`);
  const sections = packages.map(
    ({ name, version, license, homepage, text }) =>
      `## ${name} ${version}\n\n${license} · ${homepage}\n\n\`\`\`\`text\n${text.trim()}\n\`\`\`\`\n`,
  );
  return [
    '# Third-party notices\n',
    'The published giro contains code of these packages. Thank you.\n',
    `${list.join('\n')}\n`,
    ...sections,
  ].join('\n');
}

/** `/x/node_modules/@a/b/lib/c.js` is of `/x/node_modules/@a/b`; own files and virtual modules are of none. */
function packageFolder(moduleId: string): string | undefined {
  const match = /^\0?(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/.exec(moduleId);
  return match?.[1];
}

async function readPackage(folder: string): Promise<BundledPackage> {
  const manifest = parseManifest(await readFile(path.join(folder, 'package.json'), 'utf8'));
  const file = (await readdir(folder)).find((name) => /^licen[sc]e(?:[.-]|$)/i.test(name));
  const text =
    file === undefined
      ? standardText(manifest.license, manifest.author)
      : await readFile(path.join(folder, file), 'utf8');
  return { ...manifest, text };
}

function parseManifest(json: string): Omit<BundledPackage, 'text'> & { readonly author: string } {
  const manifest = JSON.parse(json) as Record<string, unknown>;
  const name = String(manifest['name']);
  return {
    name,
    version: String(manifest['version']),
    license: String(manifest['license']),
    homepage: typeof manifest['homepage'] === 'string' ? manifest['homepage'] : `https://www.npmjs.com/package/${name}`,
    author: authorOf(manifest['author']) ?? `the authors of ${name}`,
  };
}

function authorOf(author: unknown): string | undefined {
  if (typeof author === 'string') return author;
  if (typeof author !== 'object' || author === null || !('name' in author)) return undefined;
  return String(author.name);
}

/** For the few packages that declare MIT and ship no text. */
function standardText(license: string, author: string): string {
  if (license !== 'MIT') throw new Error(`a bundled package under ${license} ships no licence text`);
  return `MIT License

Copyright (c) ${author}

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`;
}

/** What a clean checkout lacks although the person's has it: for the hint beside a gate that cannot run. */
import { join } from 'node:path';
import type { Lacking } from '../gates/gate.js';
import { listFolder } from '../platform/folders.js';
import { installOf } from './detect.js';

const ignoredAnyway = new Set(['.git', 'dist', 'build', 'out', 'coverage', '.DS_Store']);

/** Folders and files at the top of the person's checkout that a gate checkout has not. */
export async function lackingIn(checkout: string, top: string): Promise<Lacking> {
  const there = new Set((await listFolder(checkout)).map((entry) => entry.name));
  const here = await listFolder(top);
  const names = here
    .map((entry) => (entry.kind === 'folder' ? `${entry.name}/` : entry.name))
    .filter((name) => !there.has(name.replace(/\/$/, '')) && !ignoredAnyway.has(name.replace(/\/$/, '')))
    .filter((name) =>
      /^(?:node_modules|vendor|target|venv|\.venv|\.env.*|\.tox|bower_components|jspm_packages|Pods|\.?direnv)/.test(
        name,
      ),
    )
    .map((name) => join(name));
  return { names, install: names.includes('node_modules/') ? installOf(there) : null };
}

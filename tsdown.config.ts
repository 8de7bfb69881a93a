/** Builds the published program: one bundle in `dist/`, split so that each command loads only what it uses. */
import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { defineConfig } from 'tsdown';
import { packagesOf, renderNotices } from './scripts/notices.js';

const leftOut = /[\\/]ink[\\/]build[\\/]devtools\.js$/;
const ownYaml = /[\\/]js-yaml[\\/]index\.js$/;
const noYaml =
  'const none = () => { throw new Error("not this YAML"); }; module.exports = { safeLoad: none, safeDump: none };';

/** Each file costs Node a millisecond to find and load: what a command needs before it can say anything is in few. */
const groups = [
  { name: whenReached('start', 'src/cli/main.ts'), priority: 2 },
  { name: whenReached('reading', 'src/cli/status.ts'), priority: 1 },
];

interface Modules {
  getModuleInfo(id: string): { readonly importedIds: readonly string[] } | null;
}

/** Gives the name for every module that another one imports, itself or by way of others. */
function whenReached(name: string, from: string): (id: string, modules: Modules) => string | null {
  const reached = new Set<string>();
  const visit = (id: string, modules: Modules): void => {
    for (const next of modules.getModuleInfo(id)?.importedIds ?? []) {
      if (reached.has(next)) continue;
      reached.add(next);
      visit(next, modules);
    }
  };
  return (id, modules) => {
    if (reached.size === 0) visit(resolve(from), modules);
    return reached.has(id) ? name : null;
  };
}

export default defineConfig({
  entry: { main: 'src/cli/main.ts' },
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  outDir: 'dist',
  fixedExtension: false,
  dts: false,
  define: { 'process.env.NODE_ENV': '"production"' },
  // Names stay, so that a stack trace in a bug report can be read.
  minify: { compress: { keepNames: { function: true, class: true } }, mangle: false, codegen: true },
  outputOptions: (options) => ({ ...options, codeSplitting: { groups } }),
  deps: { onlyBundle: false },
  // gray-matter holds an `eval` for JavaScript frontmatter; config/ refuses every engine but YAML before it is reached.
  checks: { eval: false },
  plugins: [
    {
      // Never reached, and so not shipped: React's developer tools, which ink looks for with DEV=true, and the YAML parser
      // of gray-matter, which only splits: values are read by the yaml package, and a status waits for what is loaded.
      name: 'left-out',
      load: (id) => (leftOut.test(id) ? 'module.exports = {};' : ownYaml.test(id) ? noYaml : undefined),
    },
    {
      // One character beyond Latin-1, and V8 keeps a whole file with two bytes for each.
      name: 'narrow',
      generateBundle(_options, bundle) {
        for (const chunk of Object.values(bundle)) {
          if (chunk.type !== 'chunk') continue;
          chunk.code = chunk.code.replace(
            /[^\u0000-\u00ff]/g,
            (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
          );
        }
      },
    },
    {
      name: 'third-party-notices',
      async writeBundle(_options, bundle) {
        const modules = Object.values(bundle).flatMap((chunk) =>
          chunk.type === 'chunk'
            ? Object.entries(chunk.modules)
                .filter(([id, module]) => module.renderedLength > 0 && !leftOut.test(id) && !ownYaml.test(id))
                .map(([id]) => id)
            : [],
        );
        await writeFile('THIRD-PARTY-NOTICES.md', renderNotices(await packagesOf(modules)));
      },
    },
  ],
});

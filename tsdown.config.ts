/** Builds the published program: one bundle in `dist/`, split so that each command loads only what it uses. */
import { writeFile } from 'node:fs/promises';
import { defineConfig } from 'tsdown';
import { packagesOf, renderNotices } from './scripts/notices.js';

const leftOut = /[\\/](?:ink[\\/]build[\\/]devtools\.js|esprima[\\/]dist[\\/]esprima\.js)$/;

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
  deps: { onlyBundle: false },
  // gray-matter holds an `eval` for JavaScript frontmatter; config/ refuses every engine but YAML before it is reached.
  checks: { eval: false },
  plugins: [
    {
      // Never reached, and so not shipped: React's developer tools, which ink looks for with DEV=true, and the JavaScript
      // parser with which js-yaml, inside gray-matter, would read functions out of YAML.
      name: 'left-out',
      load: (id) => (leftOut.test(id) ? 'module.exports = {};' : undefined),
    },
    {
      name: 'third-party-notices',
      async writeBundle(_options, bundle) {
        const modules = Object.values(bundle).flatMap((chunk) =>
          chunk.type === 'chunk'
            ? Object.entries(chunk.modules)
                .filter(([, module]) => module.renderedLength > 0)
                .map(([id]) => id)
            : [],
        );
        await writeFile('THIRD-PARTY-NOTICES.md', renderNotices(await packagesOf(modules)));
      },
    },
  ],
});

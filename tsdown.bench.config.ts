/** Builds the benchmarks into `dist-bench/`; libraries stay outside, since nothing of it is published. */
import { defineConfig } from 'tsdown';

export default defineConfig({
  entry: { run: 'bench/run.ts', sim: 'test/sim/main.ts' },
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  outDir: 'dist-bench',
  fixedExtension: false,
  dts: false,
  deps: { skipNodeModulesBundle: true },
});

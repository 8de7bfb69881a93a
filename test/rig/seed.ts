/** Property tests repeat: the same cases in every run, others with `GIRO_SEED=<number>`. */
import fc from 'fast-check';

fc.configureGlobal({ seed: Number(process.env['GIRO_SEED'] ?? 1) });

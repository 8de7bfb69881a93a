/** Sizes and times of the cases: scaled down in `npm test`, as written with `npm run cases -- --full`. */

/** True with `--full`. */
export const full = process.env['GIRO_CASES_FULL'] === '1';

/** Picks the small value, or the one the case names. */
export function scaled<T>(small: T, asWritten: T): T {
  return full ? asWritten : small;
}

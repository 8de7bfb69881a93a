/** The exit codes: the contract of giro, in one table. */

/** What an exit code means. */
export const exitCodes = {
  /** Proof: everything asked for is integrated and verified at the tip. */
  proof: 0,
  /** An error: usage, config, environment, or a bug of giro. */
  error: 1,
  /** A person is needed; everything that could go on went on, and running again goes on from here. */
  needsHuman: 2,
} as const;

/** One of the exit codes. An interrupt is none of them: the process then ends by its signal. */
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** The table as `giro --help` shows it. */
export const exitHelp = `Exit codes:
  0  proof: every Issue is integrated and verified at the tip of giro/<spec>
  2  a person is needed; the last lines say what is asked
  1  error: usage, config, environment
  130, 143, 129  interrupted; the same command goes on from where it stood`;

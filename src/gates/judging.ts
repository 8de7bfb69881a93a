/** The contract between the judges and what is around them: what is under judgement, and where they look at it. */
import type { Driver, EnvelopeContract } from '../drivers/driver.js';
import type { JudgeEnvelope } from '../drivers/judge.js';
import type { Result } from '../failure.js';
import type { Oid, SpecSlug } from '../issue.js';
import type { Environment } from '../platform/environment.js';
import type { JudgedGate } from '../policy.js';
import type { GateSlot, SetupFailure, VerifyRequest } from './gate.js';
import type { TitledText } from './judge-prompt.js';

/** Everything a judge is shown of one commit. */
export interface Brief {
  readonly spec: TitledText;
  readonly issue: TitledText | null;
  readonly diff: string;
  /** The code, with the commit's own files of the Spec, without History and checkpoints. */
  readonly tree: Oid;
  /** The code that the diff is against. */
  readonly baseCode: Oid;
  /** Counts the lines of a file of the tree; `null`: there is no such file. */
  linesOf(file: string): Promise<number | null>;
}

/** A folder to read in: clean, read-only, without a repository. */
export interface ReadingCheckout {
  readonly folder: string;
  readonly slot: GateSlot;
  /** What differs from the tree, new files too. */
  changes(): Promise<readonly string[]>;
}

/** What judges are made with. */
export interface JudgePorts {
  readonly driver: Driver;
  /** What counts as a word of a judge. */
  readonly contract: EnvelopeContract<JudgeEnvelope>;
  /** Stands for program, arguments and model of the driver: a pass holds only under the same. */
  readonly driverHash: string;
  readonly spec: SpecSlug;
  readonly brief: (request: VerifyRequest) => Promise<Brief>;
  readonly withReading: <T>(
    tree: Oid,
    use: (checkout: ReadingCheckout) => Promise<T>,
  ) => Promise<Result<T, SetupFailure>>;
  /** How often in a row a call may break for want of what is around it. */
  readonly failures: number;
  /** How long to wait after such a call; `until`: when it says that it can be had again. */
  readonly pauseMs: (failures: number, until: string | undefined) => number;
  /** The pause that all take who call this driver. */
  readonly parking: CallPause;
  /** The allow-list, the names of driver and gate, and `GIRO_SPEC`. What depends on the call is added to it. */
  readonly environment: (gate: JudgedGate) => Environment;
}

/** Whether a driver may be called now, for everybody who calls it. */
export interface CallPause {
  readonly isClosed: boolean;
  /** True when that is the first to be heard of it. */
  park(ms: number): boolean;
  over(signal: AbortSignal): Promise<void>;
}

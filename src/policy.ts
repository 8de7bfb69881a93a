/** What the user's giro.toml says, as values: read from the user's side, valid by type (L9). */

/** What a driver of `giro.toml` is configured to run. */
export type DriverDefinition =
  | {
      readonly kind: 'command';
      readonly name: string;
      /** Program and arguments; a relative program with a slash is looked up from the repository root. */
      readonly run: readonly [string, ...string[]];
      readonly reports: Reports;
      /** Names of further variables passed on from giro's own environment. */
      readonly env: readonly string[];
    }
  | {
      readonly kind: 'scripted';
      readonly name: string;
      /** Path of the script file, relative to the repository root. */
      readonly script: string;
      readonly reports: Reports;
      readonly env: readonly string[];
    };

/** What a driver says of each of its calls. */
export interface Reports {
  readonly cost: boolean;
  readonly tokens: boolean;
}

/** Where a gate is due. */
export type GateScope = 'issue' | 'integration' | 'spec';

/** Where a gate is run: where it is due, or on code as it was before the work, to compare with. */
export type RunScope = GateScope | 'base';

/** What a command gate must show beside its exit code. */
export interface GateRules {
  /** Tests that must have run. */
  readonly minTests: number | null;
  /** A regular expression that some line of the output must match. */
  readonly mustMatch: string | null;
  /** One that no line may match. */
  readonly mustNotMatch: string | null;
  /** Where the gate writes its JUnit report, relative to the checkout. */
  readonly junit: string | null;
}

/** What every gate of `[verify]` has. */
interface GateCommon {
  readonly name: string;
  /** Empty: runs only when an Issue names it. */
  readonly on: readonly GateScope[];
  readonly timeoutMs: number;
  /** Names of further variables passed on from giro's own environment. */
  readonly env: readonly string[];
  /** True: runs only when every gate before it has passed; else it is `not run`, which is no pass. */
  readonly afterGreen: boolean;
}

/** A gate that is a command: exit 0 is a pass. */
export interface CommandGate extends GateCommon {
  readonly kind: 'command';
  /** Shell command line, run with `pipefail`. */
  readonly run: string;
  readonly rules: GateRules;
}

/** A gate that is a rubric, applied by a judge. */
export interface PromptGate extends GateCommon {
  readonly kind: 'prompt';
  readonly rubric: {
    readonly text: string;
    /** Path of its file, relative to the repository root; `null`: it stands in giro.toml. */
    readonly source: string | null;
  };
}

/** A gate that is a procedure, carried out by a judge. */
export interface SkillGate extends GateCommon {
  readonly kind: 'skill';
  readonly skill: {
    /** Path of its SKILL.md, relative to the repository root. */
    readonly path: string;
    readonly name: string;
    readonly description: string;
    /** The whole file. */
    readonly text: string;
  };
}

/** A gate that a judge decides. */
export type JudgedGate = PromptGate | SkillGate;

/** One gate of `[verify]`. */
export type GateDefinition = CommandGate | JudgedGate;

/** How often and how long the loops may try. */
export interface Budget {
  readonly attempts: number;
  readonly attemptTimeoutMs: number;
  readonly rounds: number;
  /** Operation failures in a row before an Issue escalates. */
  readonly failures: number;
  /** Judged attempts with the same findings, counting the first, before an Issue escalates. */
  readonly noProgress: number;
  /** Red attempts in a row that said `blocked` before an Issue escalates. */
  readonly blocked: number;
  readonly issue: Allowance;
  readonly spec: Allowance;
  /** Of one run, whatever it runs. */
  readonly run: Omit<Allowance, 'timeMs'>;
  /** `allow`: calls whose cost or tokens nobody knows are made all the same, and are not counted. */
  readonly unknownCost: 'refuse' | 'allow';
}

/** What may be spent; `null`: there is no limit. */
export interface Allowance {
  readonly timeMs: number | null;
  readonly tokens: number | null;
  readonly costUsd: number | null;
}

/** What a fresh worktree or gate checkout gets beyond the files of its commit. */
export interface WorktreePolicy {
  /** Absolute folder for worktrees; absent: the user's cache folder. */
  readonly root?: string;
  readonly git: 'linked';
  /** Shell command run in a fresh checkout, such as `npm ci`. */
  readonly setup?: string;
  readonly setupTimeoutMs: number;
  /** Globs of tracked files whose content decides whether `setup` runs again. */
  readonly inputs: readonly string[];
  /** Globs of ignored paths that survive re-use. */
  readonly keep: readonly string[];
  /** Globs of files in the user's checkout to copy (giro.toml and `.worktreeinclude`). */
  readonly copy: readonly string[];
  /** Paths in the user's checkout to link (shared with it). */
  readonly link: readonly string[];
}

/** What guards know of the project beyond their own rules; it only tightens them. */
export interface ProtectPolicy {
  /** Globs of files that no agent may change. */
  readonly paths: readonly string[];
  /** Globs of further files that hold tests. */
  readonly tests: readonly string[];
  /** Regular expressions that each find one assertion, beyond the known ones. */
  readonly assertions: readonly string[];
  /** `strict`: an Issue with `touches` changes nothing else. */
  readonly scope: 'open' | 'strict';
}

/** What counts as evidence. */
export interface EvidencePolicy {
  /** A gate that is red before any work: it stops the Spec, or only failures that are new count. */
  readonly baseline: 'fail' | 'allow';
  /** A gate that is red and then green on the same code: it is red, or it is said and passes. */
  readonly flaky: 'fail' | 'warn';
  /** What the tests of an Issue must show beside being green; `null`: nothing. */
  readonly proof: 'red-green' | null;
}

/** When the lane moves for something else than an Issue. */
export interface IntegratePolicy {
  /** When what moved on the person's branch since is merged and verified: not at all, before anything starts, or before validation. */
  readonly base: 'never' | 'on-start' | 'on-validate';
}

/** The whole of giro.toml. */
export interface Policy {
  readonly drivers: { readonly default: string; readonly byName: ReadonlyMap<string, DriverDefinition> };
  /** Names of drivers. */
  readonly roles: { readonly worker: string; readonly judge: string; readonly planner: string };
  readonly budget: Budget;
  readonly limits: {
    /** Agents at once, when `--concurrency` does not say. */
    readonly agents: number;
    /** Gates and re-verifies at once. */
    readonly gates: number;
    /** Between SIGTERM and SIGKILL. */
    readonly graceMs: number;
    /** Processes and threads of one agent, gate or set-up, with all that it starts. */
    readonly processes: number;
    /** Bytes of memory of the same; `null`: only the limit on all of a run together. */
    readonly memoryBytes: number | null;
    /** Files that one Issue may change. */
    readonly files: number;
    /** Lines that one Issue may add and remove. */
    readonly lines: number;
    /** Bytes of one file that is new or has grown. */
    readonly fileBytes: number;
  };
  readonly gates: readonly GateDefinition[];
  readonly evidence: EvidencePolicy;
  readonly integrate: IntegratePolicy;
  readonly worktree: WorktreePolicy;
  readonly protect: ProtectPolicy;
  /** SHA-256 of everything the policy was made from, for caches and records. */
  readonly digest: string;
}

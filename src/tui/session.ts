/** The board without ink: what is known, what is looked at, and the screen that shows it. */
import { unreachable } from '../failure.js';
import type { RunState } from '../state.js';
import { listingOf } from './listing.js';
import { paint } from './paint.js';
import { enterScreen } from './screen.js';
import type { Screen } from './screen.js';
import { createTail } from './tail.js';
import type { Tail } from './tail.js';
import { initialUi, press } from './ui.js';
import type { Effect, UiState } from './ui.js';
import { selectedIssue, viewOf } from './view.js';
import type { ViewInput } from './view.js';

/** What the board is connected to. */
export interface BoardOptions {
  readonly stdout: NodeJS.WriteStream;
  readonly stdin: NodeJS.ReadStream;
  /** Gets what was printed to the console meanwhile, once the board is gone. */
  readonly stderr?: { write(text: string): unknown };
  /** Calls back with every new state; what it returns ends that. */
  readonly subscribe: (listener: (state: RunState) => void) => () => void;
  readonly initial: RunState;
  readonly readTail: (logPath: string, maxBytes: number) => Promise<string>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Calls back about once a second, for elapsed times and logs; what it returns ends that. */
  readonly tick?: (listener: () => void) => () => void;
  readonly unicode: boolean;
  readonly color: boolean;
  /** Ctrl+C, each time. */
  readonly onInterrupt: () => void;
  /** The person wants to leave: at once when the run has finished, else after a confirmed question. */
  readonly onQuit: () => void;
}

/** One board, from taking over the terminal to giving it back. */
export class Session {
  /** Resolves with the reason when it cannot go on. */
  readonly broken: Promise<unknown>;
  readonly #options: BoardOptions;
  readonly #screen: Screen;
  readonly #tail: Tail;
  readonly #ends: readonly (() => void)[];
  #fail: (reason: unknown) => void = () => undefined;
  #changed: () => void = () => undefined;
  #state: RunState;
  #ui: UiState = initialUi;
  /** How many Issues needed a human in the last frame: the bell rings when there are more. */
  #asked: number;
  #closed = false;

  /** Takes over the terminal and follows the run. */
  constructor(options: BoardOptions) {
    this.#options = options;
    this.#state = options.initial;
    this.#asked = listingOf(options.initial.issues).needsHuman.size;
    this.broken = new Promise((resolve) => {
      this.#fail = resolve;
    });
    this.#tail = createTail({ read: options.readTail, changed: () => this.#changed() });
    this.#ends = [
      options.subscribe((state) => this.#follow(state)),
      options.tick?.(() => this.#tick()) ?? (() => undefined),
      listening(options.stdout, 'resize', () => this.#resized()),
      listening(options.stdout, 'error', (error) => this.#gone(error)),
    ];
    // Last, so that nothing is taken when what came before throws.
    this.#screen = enterScreen(options.stdout);
    this.#guarded(() => this.#update());
  }

  /** Calls back whenever there may be something to draw. */
  listen(listener: () => void): void {
    this.#changed = listener;
  }

  /** Shows what is new since the last time; writes nothing when nothing is. */
  draw(): void {
    this.#guarded(() => {
      const { lines, top, extent } = viewOf(this.#input());
      this.#ui = { ...this.#ui, top };
      this.#screen.draw(lines.map((line) => paint(line, this.#options.color)));
      if (extent.needsHuman.size > this.#asked) this.#screen.ring();
      this.#asked = extent.needsHuman.size;
    });
  }

  /** Does what the keys say. */
  press(names: readonly string[]): void {
    this.#guarded(() => {
      // Not of the last frame: keys come faster than frames.
      const step = press(this.#ui, names, viewOf(this.#input()).extent);
      this.#ui = step.ui;
      for (const effect of step.effects) this.#carryOut(effect);
      this.#update();
    });
  }

  /** Gives the terminal back; may be called more than once. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const end of this.#ends) end();
    this.#screen.leave();
  }

  /** Whatever goes wrong must neither reach the engine, which calls with its events, nor leave the terminal taken. */
  #guarded(act: () => void): void {
    if (this.#closed) return;
    try {
      act();
    } catch (error) {
      this.#fail(error);
    }
  }

  #input(): ViewInput {
    const { stdout, now, unicode } = this.#options;
    return {
      state: this.#state,
      ui: this.#ui,
      columns: stdout.columns > 0 ? stdout.columns : 80,
      rows: stdout.rows > 0 ? stdout.rows : 24,
      now: now(),
      log: this.#tail.lines,
      unicode,
    };
  }

  #follow(state: RunState): void {
    this.#guarded(() => {
      this.#state = state;
      this.#update();
    });
  }

  #tick(): void {
    this.#guarded(() => {
      // Who has scrolled up is reading: new lines would move the text away.
      if (this.#ui.offset === 0) this.#tail.refresh();
      this.#changed();
    });
  }

  #resized(): void {
    this.#guarded(() => {
      this.#screen.clear();
      this.#changed();
    });
  }

  #gone(error: unknown): void {
    this.#screen.abandon();
    this.#fail(error);
  }

  #update(): void {
    this.#tail.want(selectedIssue(this.#state, this.#ui), this.#state);
    this.#changed();
  }

  #carryOut(effect: Effect): void {
    switch (effect) {
      case 'redraw':
        this.#screen.clear();
        break;
      case 'interrupt':
        this.#options.onInterrupt();
        break;
      case 'quit':
        this.#options.onQuit();
        break;
      default:
        unreachable(effect);
    }
  }
}

function listening(
  output: NodeJS.WriteStream,
  event: 'resize' | 'error',
  listener: (what: unknown) => void,
): () => void {
  output.on(event, listener);
  return () => output.off(event, listener);
}

/** The running state of a backlog: one state for each Spec, folded by the one reducer. */
import type { BacklogItem, BacklogResult, Event } from './event.js';
import type { SpecSlug } from './issue.js';
import { emptyState, reduce, type RunState } from './state.js';

/** What the events of a run come to, whether it runs one Spec or several. */
export interface BacklogState {
  /** By Spec; what is about no Spec is folded into each of them. */
  readonly specs: ReadonlyMap<SpecSlug, RunState>;
  /** What is about no Spec, before one has begun. */
  readonly common: RunState;
  /** The Specs in order; empty when one Spec was named. */
  readonly items: readonly BacklogItem[];
  /** How they ended; empty while they run. */
  readonly results: readonly BacklogResult[];
}

/** The state before any event. */
export const emptyBacklog: BacklogState = { specs: new Map(), common: emptyState, items: [], results: [] };

/** Folds one event into the state of its Spec, or of all of them. */
export function reduceBacklog(state: BacklogState, event: Event): BacklogState {
  if (event.type === 'backlog.started') return { ...state, items: event.specs };
  if (event.type === 'backlog.finished') return { ...state, results: event.specs };
  const spec = event.spec ?? null;
  if (spec === null) {
    const specs = new Map([...state.specs].map(([slug, one]) => [slug, reduce(one, event)]));
    return { ...state, specs, common: reduce(state.common, event) };
  }
  return { ...state, specs: new Map(state.specs).set(spec, reduce(stateOf(state, spec), event)) };
}

/** The state of one Spec. */
export function stateOf(state: BacklogState, spec: SpecSlug): RunState {
  return state.specs.get(spec) ?? state.common;
}

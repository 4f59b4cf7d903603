import type { EnqueueRequest } from '../../enqueue-request.js';
import type { Watcher } from '../../links.js';
import type { EdgeTarget, WaitRecord } from './place.js';

/** A task that links create. */
export interface NewTask {
  readonly request: EnqueueRequest;
  readonly watchers: readonly Watcher[];
  readonly after?: WaitRecord;
}

/** What places send each other: the body of a parcel by its kind. A room of links adds its own kinds. */
export interface Bodies {
  /** A prerequisite of a waiting task has ended. `from` and `of` say which: an edge of another one is ignored. */
  edge: {
    readonly id: string;
    readonly n: number;
    /** The deadline of the wait that is meant. */
    readonly d: number;
    readonly ok: boolean;
    readonly why: string;
    readonly from: string;
    readonly of: string;
  };
  /** Registers a watcher with a task, and answers at once when that has ended. */
  watch: { readonly id: string; readonly w: Watcher };
  /** Remembers the end of a task by its key, for `ttl` seconds. */
  mark: { readonly key: string; readonly ok: boolean; readonly why: string; readonly ttl: number };
  /** Registers a waiting task with a key. */
  watchmark: { readonly key: string; readonly w: EdgeTarget };
  /** A step of a run has ended; its result is the data. */
  step: {
    readonly run: string;
    readonly step: string;
    readonly ok: boolean;
    readonly why: string;
    /** Milliseconds since the epoch. */
    readonly at: number;
  };
  /**
   * Creates the task of a step; its watchers are notified when there cannot be one. `again`: the step has failed, and its task
   * runs again if it is there.
   */
  release: { readonly task: NewTask; readonly again: boolean };
  /** Makes sure that the run is notified of the end of a step's task: at once, when it has ended. */
  probe: { readonly id: string; readonly w: Watcher };
  /**
   * A run needs the task of a step no more: it is deleted if nobody has claimed it (`unclaimed`), or if it
   * is archived (`archived`). After the latter the run is not notified.
   */
  drop: { readonly id: string; readonly w: Watcher; readonly what: 'unclaimed' | 'archived' };
  /** Creates a task that a step calls, once. */
  call: { readonly task: NewTask; readonly w: CallWatcher };
  /** Says what has become of a called task. */
  recall: { readonly id: string; readonly w: CallWatcher };
  /** A called task has ended; its result is the data. */
  answer: { readonly id: string; readonly answer: string; readonly ok: boolean; readonly why: string };
}

type CallWatcher = Extract<Watcher, { k: 's' }>;

export type Kind = keyof Bodies;

/** A body with its kind. */
export type Body = { [K in Kind]: { readonly kind: K } & Bodies[K] }[Kind];

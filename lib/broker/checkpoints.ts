import type { Lease } from './consumer.js';
import type { Caused, LinkedRequest } from './links.js';

/** What the hash of a task has of the steps of its handler, besides what asynq stores there. */
export interface StoredSteps {
  /** What was stored of each step, by its name. */
  readonly checkpoints: ReadonlyMap<string, Buffer>;
  /** Signals by name, in the order in which they came. */
  readonly signals: ReadonlyMap<string, readonly Buffer[]>;
  /** How called tasks have ended, by the name of the answer: JSON of `{ ok, why }`, a line feed, and the result. */
  readonly answers: ReadonlyMap<string, Buffer>;
}

/** Makes tasks that steps call. The client does it. */
export interface StepCallPreparer {
  /** @param name the step. @throws InvalidTaskError */
  calledBy(parentId: string, name: string, task: unknown, payload: unknown, options: unknown): LinkedRequest;
}

/** A task that a step calls. */
export interface StepCall {
  readonly step: string;
  /** What is stored of the step. */
  readonly checkpoint: Buffer;
  /** The name of its answer. */
  readonly answer: string;
  /** The queue and the id of the task. */
  readonly queue: string;
  readonly id: string;
  /** To create it; without one it was created before, and is asked for: one that is gone has failed. */
  readonly request?: LinkedRequest | undefined;
}

/** What there is of the steps of a task, without the values. */
export interface StepNames {
  readonly steps: readonly string[];
  /** Those of tasks that steps have called. */
  readonly answers: readonly string[];
  /** How many signals of each name have come. */
  readonly signals: ReadonlyMap<string, number>;
}

/** What was stored of a step, the nth signal of a name, from 1 on, or the answer of a called task. */
export type StepField =
  | { readonly step: string }
  | { readonly signal: string; readonly n: number }
  | { readonly answer: string };

export interface StepValue {
  /** All of it; of a value that is too large the first line, with its end. */
  readonly bytes: Buffer;
  /** Bytes of all of it. */
  readonly size: number;
}

/** Names that begin with it are records of the server, and no steps. */
export const RECORD = '!';

/** The name of the record that says why steps are undone. */
export const UNDO_RECORD = '!undo';

/** What the names of records begin with that keep the position of a step of which nothing else is stored; the rest is its name. */
export const PLACE_PREFIX = '!place:';

/** What the names of compensations begin with; the rest is the name of the step. */
export const UNDO_PREFIX = 'undo:';

/** Under which name the task that a step calls answers: another one each time the steps were undone. No occurrence of a step has such a name. */
export const answerNameOf = (step: string, life: number): string => (life > 0 ? `${step}##${life}` : step);

/** The step of such a name. */
export const stepOfAnswer = (name: string): string => name.replace(/##\d+$/, '');

/** How many signals of one name a task keeps. */
export const MAX_SIGNALS = 1_000;

/**
 * `stored`: kept for the handler, which is woken if it waits for this one. `missing`: there is no such task. `over`: it has succeeded,
 * or is archived. `full`: it has MAX_SIGNALS of this name.
 */
export type SignalStatus = 'stored' | 'missing' | 'over' | 'full';

/** The steps of handlers. What is stored of them is in the hash of the task: it goes with the task, whoever deletes it. */
export interface CheckpointsRole {
  read(queue: string, id: string): Promise<StoredSteps>;
  /** Lists what there is, for somebody who looks on. Its cost does not depend on the size of the values. */
  list(queue: string, id: string): Promise<StepNames>;
  /**
   * Reads these values in small calls; one that is gone is `undefined`.
   *
   * @param most of values with more bytes only the first line is read
   */
  view(queue: string, id: string, fields: readonly StepField[], most: number): Promise<(StepValue | undefined)[]>;
  /** Stores what came of a step. Returns `false`, without a write, when the lease is not ours any more. */
  write(lease: Lease, name: string, checkpoint: Buffer): Promise<boolean>;
  signal(queue: string, id: string, name: string, payload: Buffer): Promise<SignalStatus>;
  /**
   * Stores the checkpoints of steps that call tasks, and creates these, in one step: their answers come to the task. Returns `undefined`, without
   * a write, when the lease is not ours any more.
   */
  call(lease: Lease, calls: readonly StepCall[]): Promise<Caused | undefined>;
}

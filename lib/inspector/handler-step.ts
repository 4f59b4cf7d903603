/** `undo`: undoes another step, whose name it has behind `undo:`. */
export type HandlerStepKind = 'run' | 'sleep' | 'wait' | 'call' | 'each' | 'undo';

/**
 * As far as it is stored. `done`: it is answered from what is stored. `failed`: for good, or its signal did not come in time. `retrying`:
 * it is tried again at `wakeAt`. `asleep`, `waiting`: until `wakeAt` at the latest. `running`: it has begun, and has not ended. `undone`:
 * done, and undone since. Of a step without retries of its own, nothing is stored before it is done.
 */
export type HandlerStepState = 'done' | 'failed' | 'running' | 'retrying' | 'asleep' | 'waiting' | 'undone';

/** A step of a handler, as it is stored with its task. */
export interface HandlerStepInfo {
  /** The second of one name is `name#2`. */
  readonly name: string;
  readonly kind: HandlerStepKind;
  readonly state: HandlerStepState;
  readonly startedAt: Date;
  /** `undefined` while it has not ended, and of a wait whose signal has come: nobody stores when. */
  readonly endedAt: Date | undefined;
  readonly wakeAt: Date | undefined;
  /** The signal of a wait. */
  readonly signal: string | undefined;
  /** The task that a call has made. */
  readonly child: { readonly queue: string; readonly id: string } | undefined;
  /** Its tries so far that have failed. */
  readonly tries: number | undefined;
  /** How much of its list is done. */
  readonly done: number | undefined;
  /** The error of its last try, or why it has failed. */
  readonly error: string | undefined;
  /** What it has brought; what its signal has, for a wait. `undefined` when that is nothing, or larger than `maxResultSize`. */
  readonly result: unknown;
  /** Bytes of the result as JSON; 0 when there is none. */
  readonly resultSize: number;
}

/** The signals of one name that a task has got. */
export interface SignalInfo {
  readonly name: string;
  readonly count: number;
  /** How many of them waits have taken. */
  readonly taken: number;
}

export interface HandlerStepList {
  /** In the order in which the handler asks for them; then those that undo. Of a task that was run again after all was undone, those since. */
  readonly steps: HandlerStepInfo[];
  /** Of all pages. */
  readonly total: number;
  /** By name. */
  readonly signals: SignalInfo[];
  /** Given when the task has failed for good, and its steps are undone: why, and whether all are undone. */
  readonly undoing: { readonly error: string | undefined; readonly over: boolean } | undefined;
}

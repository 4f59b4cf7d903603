import type { Duration } from '../duration.js';
import type { Jsonify } from './jsonify.js';
import type { TaskOptions } from './options.js';
import type { PayloadArguments } from './payload-arguments.js';
import type { SignalDefinition } from './signal.js';

export interface WaitForOptions {
  /** After this time the wait fails with SignalTimeoutError. Counted from its first begin. Default `'7d'`. */
  timeout?: Duration;
}

export interface StepRetry {
  /** How often the step is tried again. 0: never. */
  max: number;
  /** The time until the next try, also as a function of the number of failed tries (from 1 on) and of the error. Default `'1s'`. */
  delay?: Duration | ((tries: number, error: unknown) => Duration);
}

export interface StepRunOptions<R = unknown> {
  /**
   * Retries of this step alone. The handler ends in between, as in a sleep, and nothing counts as a failure of the task. When they are used
   * up the step has failed for good: it throws StepFailedError, in this call and in every later one. Default: the task is retried.
   */
  retry?: StepRetry;
  /**
   * Takes back what the step has done, once the task fails for good: the compensations of all steps that have succeeded run backwards, each
   * as a step of its own. It gets what the step has brought. Default: nothing is taken back.
   */
  undo?: (result: R) => unknown;
}

/** What `steps.each` stores of where it is. */
export interface EachOptions<T = unknown, C = unknown> {
  /** Where to begin, for rows that a function gives: what it gets at first. Default: `undefined`. */
  from?: C;
  /** What says where a row is, for rows that a function gives. As JSON keeps it. Default: how many rows are done. */
  cursor?: (row: T) => C;
  /** How often the cursor is stored at most. It is also stored when a row fails, and when the server shuts down. Default `'1s'`. */
  every?: Duration;
}

type Rows<T> = Iterable<T> | AsyncIterable<T>;

/** Options of the task, but those that would make it another one, or none. */
export type StepCallOptions = Omit<TaskOptions, 'taskId' | 'group'>;

/** The types of a definition: see TaskDefinition. */
interface CalledTask<P, R> {
  readonly type: string;
  readonly options: Readonly<TaskOptions>;
  readonly __types?: { readonly payload: P; readonly result: R };
}

type ResultOfItem<Item> = Item extends readonly [infer Task, ...unknown[]]
  ? Task extends { readonly __types?: { readonly result: infer R } }
    ? Jsonify<R>
    : unknown
  : never;

type PayloadOfItem<Item> = Item extends readonly [infer Task, ...unknown[]]
  ? Task extends { readonly __types?: { readonly payload: infer P } }
    ? P
    : unknown
  : never;

/** Each item has the payload that its definition asks for. */
type CheckedItems<Items> = {
  readonly [Name in keyof Items]: Items[Name] extends readonly [infer Task, ...unknown[]]
    ? readonly [task: Task, ...rest: PayloadArguments<PayloadOfItem<Items[Name]>, StepCallOptions>]
    : never;
};

/**
 * The steps of a handler: what a step has brought is stored, and answers in its place when the handler is called again, after a failure,
 * a crash, a deploy, a sleep or a wait. So the code between steps runs again each time, and a step that has succeeded never does.
 *
 * Each step has a name; the second of one name is `name#2`, and so on. They must come in the same order each time the handler is called:
 * else it fails with StepsChangedError (see `onChange` of StepsOptions).
 */
export interface TaskSteps {
  /**
   * Runs `work` once: when it has succeeded before, returns what it has brought then. A server that dies after `work` and before its
   * result is stored is the one case in which `work` runs twice.
   *
   * @returns the result as JSON leaves it, also the first time
   * @throws what `work` throws; StepFailedError when the step has retries of its own, and they are used up
   * @throws InvalidStepError when the result is nothing that JSON keeps, or too large, or a step is in a step
   * @throws LeaseExpiredError when the task is another server's by now; nothing is stored
   */
  run<R>(name: string, work: () => R, options?: StepRunOptions<Jsonify<Awaited<R>>>): Promise<Jsonify<Awaited<R>>>;
  /**
   * Enqueues a task, once, and goes on when it has ended. The handler ends here, as in a sleep. The id of the task is that of this one, `~` and the
   * name of the step.
   *
   * @returns the result of the task, as JSON leaves it
   * @throws StepFailedError when it was archived, revoked or deleted, or could not be enqueued
   * @throws InvalidTaskError for a wrong payload or option
   */
  call<P, R>(name: string, task: CalledTask<P, R>, ...rest: PayloadArguments<P, StepCallOptions>): Promise<Jsonify<R>>;
  call(name: string, type: string, payload?: unknown, options?: StepCallOptions): Promise<unknown>;
  /**
   * Calls several tasks side by side, each a step by the name that it has here, and goes on when all have ended.
   *
   * @example const { receipt } = await steps.all({ receipt: [SendReceipt, { orderId }], parcel: [PackParcel, { orderId }] });
   *
   * @returns their results, by name
   * @throws StepFailedError about the first of them that has failed, once all have ended
   */
  all<const Items extends Readonly<Record<string, readonly [unknown, ...unknown[]]>>>(
    items: Items & CheckedItems<Items>,
  ): Promise<{ readonly [Name in keyof Items]: ResultOfItem<Items[Name]> }>;
  /**
   * Does `work` for each row, in order, and stores how far it has come: a later call goes on behind the last stored row. So after a crash the
   * rows of the last `every` come again; after a failure or a shutdown none that was done. A shutdown, and the abort of the task, end it
   * before the next row.
   *
   * @param rows an iterable, whose first rows are skipped then; or a function that gives the rows behind a cursor
   * @returns how many rows were done, in all calls
   * @throws what `work` and `rows` throw
   */
  each<T, C = number>(
    name: string,
    rows: Rows<T> | ((from: C | undefined) => Rows<T> | Promise<Rows<T>>),
    work: (row: T, index: number) => unknown,
    options?: EachOptions<T, C>,
  ): Promise<number>;
  /**
   * Goes on after this time, counted from the first call. The handler ends here, and gives its slot back; it is called again when the
   * time is over. Do not catch what it throws for that.
   */
  sleep(name: string, duration: Duration): Promise<void>;
  /**
   * Goes on when the signal has come: `asynq.signal(task, signal, payload)`. One that came before the wait counts, each for one wait.
   * Meanwhile the handler has ended, as in a sleep.
   *
   * @returns the payload of the signal, as JSON leaves it
   * @throws SignalTimeoutError
   */
  waitFor<P>(name: string, signal: SignalDefinition<P>, options?: WaitForOptions): Promise<Jsonify<P>>;
  /** The `version` of the steps with which this task has begun: that of this handler, when it begins now. See StepsOptions. */
  version(): Promise<number>;
}

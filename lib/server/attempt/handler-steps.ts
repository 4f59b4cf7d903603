import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AwaitedEvent, Sleep } from '../../broker/broker.js';
import { UNDO_PREFIX, UNDO_RECORD } from '../../broker/checkpoints.js';
import { ceilSeconds } from '../../clock.js';
import { type Duration, parseDuration } from '../../duration.js';
import { hasCode } from '../../error-code.js';
import {
  InvalidStepError,
  LeaseExpiredError,
  ShutdownError,
  SignalTimeoutError,
  StepFailedError,
  StepsChangedError,
  TaskSuspended,
} from '../../errors.js';
import { decodeJson } from '../../task/codec.js';
import type { Jsonify } from '../../task/jsonify.js';
import type { SignalDefinition } from '../../task/signal.js';
import type { EachOptions, StepRunOptions, StepRetry, TaskSteps, WaitForOptions } from '../../task/steps.js';
import type { StepsOptions } from '../../task/steps-options.js';
import { requireFunction, requireObject } from '../../validation.js';
import { isUndoing } from '../../wire/undoing.js';
import { type Checkpoint, encodeUndoRecord, type UndoRecord } from './checkpoint.js';
import { errorText } from './error-text.js';
import { type EachRow, eachRow } from './rows.js';
import { type CalledItem, StepCalls } from './step-calls.js';
import { observed } from './step-observer.js';
import { readEach, readRun, readWait, requireName, retryDelay } from './step-options.js';
import { quoted, type Step, StepRecords } from './step-records.js';
import { encodeStepResult } from './step-result.js';
import type { StepsAttempt, StepsDeps } from './steps-deps.js';

/** How long a step beside the others may take to give its compensation, once the handler has ended. */
const GIVEN_MS = 1_000;

/** Steps of one task. */
const MAX_STEPS = 10_000;

/** Errors of a step that say what becomes of the task, or that the attempt is over: no retries of the step. */
const DECISIONS = [
  'ASYNQ_SKIP_RETRY',
  'ASYNQ_REVOKE_TASK',
  'ASYNQ_POSTPONE_TASK',
  'ASYNQ_INVALID_STEP',
  'ASYNQ_TASK_SUSPENDED',
  'ASYNQ_LEASE_EXPIRED',
];

/** The step around a call, in which there may be no other. */
const surrounding = new AsyncLocalStorage<string>();

/** What suspends a handler. */
export type Suspension = Pick<Sleep, 'wakeAt' | 'checkpoint' | 'awaits'> & { readonly step: string };

interface Compensation {
  readonly step: Step;
  readonly undo: (result: unknown) => unknown;
  readonly result: string;
}

/** See TaskSteps. One per call of a handler; what is stored is read with the first step. */
export class HandlerSteps implements TaskSteps {
  suspension: Suspension | undefined;
  /** All steps are undone: what the task has failed with. */
  undone: (UndoRecord & { readonly steps: readonly string[] }) | undefined;
  private readonly records: StepRecords;
  private readonly calls: StepCalls;
  private readonly label: string;
  private count = 0;
  private readonly occurrences = new Map<string, number>();
  private readonly waits = new Map<string, number>();
  /** Work under way. */
  private readonly running = new Set<Promise<unknown>>();
  /** The handler has ended, or nothing goes on beside what suspends it: no step begins any more. */
  private isSealed = false;
  /** A step has thrown what suspends the handler. */
  private hasThrown = false;
  private hasEnded = false;
  private readonly compensations: Compensation[] = [];

  constructor(
    private readonly deps: StepsDeps,
    private readonly attempt: StepsAttempt,
    options: StepsOptions = {},
  ) {
    const { lease, message } = attempt;
    this.label = `task "${message.type}" (id ${message.id})`;
    const { isBare } = attempt;
    const about = { lease, label: this.label, options, isUndoing: isUndoing(message), isBare };
    this.records = new StepRecords({ ...about, checkpoints: deps.checkpoints });
    this.calls = new StepCalls(deps, lease, this.records, this.label);
  }

  async run<R>(
    name: string,
    work: () => R,
    options: StepRunOptions<Jsonify<Awaited<R>>> = {},
  ): Promise<Jsonify<Awaited<R>>> {
    requireFunction(work, `work of step "${name}"`, InvalidStepError);
    const { retry, undo } = readRun(name, options);
    const step = this.begin(name);
    const bound = undo && (AsyncResource.bind(undo) as Compensation['undo']);
    return (await this.runOnce(step, work, retry, bound)) as Jsonify<Awaited<R>>;
  }

  async call(name: string, ...item: unknown[]): Promise<never> {
    const step = this.begin(name);
    const [result] = await this.callAll([[step, item]]);
    return result as never;
  }

  async all(items: Readonly<Record<string, unknown>>): Promise<never> {
    const given = Object.entries(requireObject(items, 'the tasks of steps.all', InvalidStepError));
    const wrong = given.find(([, item]) => !Array.isArray(item));
    if (wrong) {
      throw new InvalidStepError(`"${wrong[0]}" of steps.all must be an array: [definition, payload, options]`);
    }
    const steps = given.map(([name, item]) => [this.begin(name), item as unknown[]] as const);
    const results = await this.callAll(steps);
    return Object.fromEntries(given.map(([name], at) => [name, results[at]])) as never;
  }

  async each<T, C>(
    name: string,
    rows: Iterable<T> | AsyncIterable<T> | ((from: C | undefined) => unknown),
    work: (row: T, index: number) => unknown,
    options: EachOptions<T, C> = {},
  ): Promise<number> {
    requireFunction(work, `work of step "${name}"`, InvalidStepError);
    const settings = readEach(name, options, typeof rows === 'function');
    const step = this.begin(name);
    const before = await this.find(step, 'each', ({ ended }) => ended !== undefined);
    if (before?.ended !== undefined) return before.done!;
    const { now } = this;
    const at = before?.at ?? now;
    const store = (done: number, cursor: unknown, isLast: boolean): Promise<void> => {
      const ended = isLast ? this.now : undefined;
      return this.records.write(step, { n: step.n, kind: 'each', at, ended, done, cursor });
    };
    const row: EachRow = {
      ...settings,
      step: step.name,
      rows: rows as never,
      work: (row, index) => surrounding.run(step.name, async () => work(row as T, index)),
      before: before && { done: before.done ?? 0, cursor: before.cursor },
      attempt: this.attempt,
      isStopping: this.deps.isStopping,
      clock: this.deps.clock,
      store,
    };
    const observedStep = { name: step.name, kind: 'each' } as const;
    return this.beside(observed(this.deps.observer, observedStep, () => eachRow(row)));
  }

  async sleep(name: string, duration: Duration): Promise<void> {
    const milliseconds = parseDuration(duration, `duration of step "${name}"`, InvalidStepError);
    const step = this.begin(name);
    const before = await this.find(step, 'sleep', ({ until }) => until! <= this.now);
    const { now } = this;
    const until = before?.until ?? now + milliseconds;
    const checkpoint = { n: step.n, kind: 'sleep', at: now, until } as const;
    if (until <= this.now) return before ? undefined : this.records.write(step, checkpoint);
    return this.suspend(step, until, before ? undefined : checkpoint);
  }

  async waitFor<P>(name: string, signal: SignalDefinition<P>, options: WaitForOptions = {}): Promise<Jsonify<P>> {
    const { milliseconds, signalName } = readWait(name, signal, options);
    const step = this.begin(name);
    const nth = (this.waits.get(signalName) ?? 0) + 1;
    this.waits.set(signalName, nth);
    const payload = await this.records.signal(signalName, nth);
    const before = await this.find(step, 'wait', ({ timedOut }) => timedOut !== undefined || payload !== undefined);
    const { now } = this;
    const until = before?.until ?? now + milliseconds;
    if (before?.timedOut) throw new SignalTimeoutError(step.name, signalName);
    const checkpoint = { n: step.n, kind: 'wait', at: before?.at ?? now, until, signal: signalName } as const;
    if (payload) {
      if (!before) await this.records.write(step, checkpoint);
      return decodeJson(payload) as Jsonify<P>;
    }
    if (until > this.now) {
      const awaited = { signal: signalName, n: await this.records.signalNumber(signalName, nth) };
      return this.suspend(step, until, before ? undefined : checkpoint, awaited);
    }
    await this.records.write(step, { ...checkpoint, timedOut: true });
    throw new SignalTimeoutError(step.name, signalName);
  }

  version(): Promise<number> {
    return this.records.begunBy();
  }

  /** After the handler has returned: what was stored and not asked for. */
  get leftOver(): StepsChangedError | undefined {
    return this.records.leftOver;
  }

  /** Whether a step that has succeeded has a compensation. `undefined`: nothing was read yet. */
  get hasCompensations(): boolean | undefined {
    const { loaded } = this.records;
    if (!loaded) return undefined;
    return this.compensations.length > 0 || [...loaded.checkpoints].some(([, one]) => isCompensable(one));
  }

  /** Whether anything is stored of a step, readable or not. @throws when the store does not reply */
  async hasBegun(): Promise<boolean> {
    try {
      await this.records.load();
    } catch (error) {
      if (!this.records.loaded && !hasCode(error, 'ASYNQ_INVALID_STEP')) throw error;
    }
    const { loaded } = this.records;
    return !loaded || loaded.checkpoints.size > 0 || loaded.isUndoing;
  }

  /** Whether steps were being undone when the task was archived by hand, or in vain: the call goes on with that. */
  get mustGoOnUndoing(): UndoRecord | undefined {
    const { loaded } = this.records;
    return loaded?.isUndoing && !loaded.undo!.over ? loaded.undo : undefined;
  }

  /** The handler has returned or thrown. Steps that it has begun side by side may still run: see `quiet`. */
  ended(): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.isSealed = true;
    this.swallows = this.hasThrown;
  }

  /** Whether the handler has gone on after a step had thrown what suspends it; known once it has ended. */
  swallows = false;

  get isBusy(): boolean {
    return this.running.size > 0;
  }

  /** Resolves when no step runs. */
  async quiet(): Promise<void> {
    while (this.running.size > 0) await Promise.allSettled(this.running);
  }

  /** How often the steps were undone before. `undefined`: nothing was read yet. */
  get life(): number | undefined {
    return this.records.loaded?.life;
  }

  /** How many signals of each name were of the lives before. */
  get signalsBefore(): UndoRecord['signals'] {
    return this.records.loaded?.undo?.signals;
  }

  /** Reads what is stored; without an error when that fails, as another one is on its way. */
  async tryToLoad(): Promise<void> {
    await this.records.load().catch(() => undefined);
  }

  /** While the task is undone: resolves when each step has given its compensation, or nothing goes on, after a second at most. */
  async given(): Promise<void> {
    const { checkpoints } = await this.records.load();
    for (const end = performance.now() + GIVEN_MS; performance.now() < end; await nextTurn()) {
      await this.quiet();
      if (this.notGiven(checkpoints).length === 0) break;
    }
    this.ended();
  }

  /**
   * Runs the compensations, the last step first. The handler was called before, so that each step has given its own.
   *
   * @throws what a compensation throws; StepsChangedError when a step has not given its own
   */
  async undoAll(): Promise<void> {
    const { checkpoints, undo } = await this.records.load();
    await this.quiet();
    const backwards = this.compensations.toSorted((one, other) => other.step.n - one.step.n);
    const record = undo ?? { error: this.attempt.message.errorMsg, outcome: 'archive', at: this.now };
    if (!record.over) {
      const lost = this.notGiven(checkpoints);
      if (lost.length > 0) {
        throw new StepsChangedError(
          `${this.label} cannot be undone: its handler does not ask for ${quoted(lost)} any more`,
        );
      }
      for (const { step, undo: compensate, result } of backwards) {
        const name = UNDO_PREFIX + step.name;
        if (checkpoints.has(name)) continue;
        this.requireAttempt();
        const at = this.now;
        await observed(this.deps.observer, { name, kind: 'undo' }, async () => {
          await surrounding.run(name, async () => compensate(decodeJson(result)));
          await this.records.write({ name }, { n: step.n, kind: 'undo', at, ended: this.now });
        });
      }
      await this.records.endLife(record);
    }
    this.undone = { ...record, steps: backwards.map(({ step }) => step.name) };
  }

  /** The steps that are to be undone, and have not given their compensations. */
  private notGiven(checkpoints: ReadonlyMap<string, Checkpoint>): string[] {
    const given = new Set(this.compensations.map(({ step }) => step.name));
    const isOpen = ([name, one]: readonly [string, Checkpoint]): boolean =>
      isCompensable(one) && !given.has(name) && !checkpoints.has(UNDO_PREFIX + name);
    return [...checkpoints].filter(isOpen).map(([name]) => name);
  }

  private get now(): number {
    return this.deps.clock.now();
  }

  /** Synchronous, so that steps that run side by side have the order of their calls. */
  private begin(given: string): Step {
    const outer = surrounding.getStore();
    if (outer !== undefined)
      throw new InvalidStepError(`step "${given}" is in step "${outer}"; call it after that one`);
    if (this.isSealed) throw new TaskSuspended(this.suspension?.step ?? given);
    const base = requireName(given);
    const occurrence = (this.occurrences.get(base) ?? 0) + 1;
    this.occurrences.set(base, occurrence);
    if (this.count >= MAX_STEPS) {
      throw new InvalidStepError(`${this.label} has ${MAX_STEPS} steps; the most. Enqueue further tasks instead`);
    }
    return { name: occurrence === 1 ? base : `${base}#${occurrence}`, n: this.count++ };
  }

  /** While the task is undone, only steps that are over answer. */
  private async find(
    step: Step,
    kind: Checkpoint['kind'],
    isOver: (checkpoint: Checkpoint) => boolean,
  ): Promise<Checkpoint | undefined> {
    const found = await this.records.find(step, kind);
    if (this.records.loaded!.isUndoing && !(found && isOver(found))) throw new TaskSuspended(step.name, UNDOING);
    return found;
  }

  /** What a step does after its attempt is over, another attempt does, too. */
  private requireAttempt(): void {
    const { aborted, isOver } = this.attempt;
    if (isOver) throw aborted ?? new LeaseExpiredError();
    if (aborted && !(aborted instanceof ShutdownError)) throw aborted;
  }

  /** Work that a suspension waits for. */
  private async beside<T>(running: Promise<T>): Promise<T> {
    this.running.add(running);
    try {
      return await running;
    } finally {
      this.running.delete(running);
    }
  }

  private async runOnce(
    step: Step,
    work: () => unknown,
    retry: StepRetry | undefined,
    undo: Compensation['undo'] | undefined,
  ): Promise<unknown> {
    const before = await this.find(step, 'run', ({ ended }) => ended !== undefined);
    if (before?.ended !== undefined && !before.failed) return this.succeeded(step, before.result ?? '', undo);
    const failed = before?.failed && this.failureOf(step, before);
    // Who runs an archived task by hand wants the step that it failed with to be tried once more; to undo the others it is not.
    const { errorMsg, lastFailedAt } = this.attempt.message;
    const isAnew =
      failed && !this.records.loaded!.isUndoing && before.tried !== lastFailedAt && errorMsg.startsWith(failed.message);
    if (failed && !isAnew) throw failed;
    const { now } = this;
    if (!failed && before?.until !== undefined && before.until > now) return this.suspend(step, before.until);
    this.requireAttempt();
    const at = (isAnew ? undefined : before?.at) ?? now;
    const did = await this.beside(this.tryOnce(step, work, at, undo));
    if ('result' in did) return this.succeeded(step, did.result, undo);
    const { error } = did;
    if (!retry || this.attempt.aborted || DECISIONS.some((code) => hasCode(error, code))) throw error;
    const tries = (isAnew ? 0 : (before?.tries ?? 0)) + 1;
    const tried = isAnew ? lastFailedAt : before?.tried;
    return this.failOnce(step, { n: step.n, kind: 'run', at, tries, tried, error: errorText(error) }, retry, error);
  }

  /** Returns what the work has brought, once that is stored, or what it has thrown. */
  private async tryOnce(
    step: Step,
    work: () => unknown,
    at: number,
    undo: Compensation['undo'] | undefined,
  ): Promise<{ readonly result: string } | { readonly error: unknown }> {
    let failure: { readonly error: unknown } | undefined;
    const doIt = async (): Promise<string> => {
      let value: unknown;
      try {
        value = await surrounding.run(step.name, async () => work());
      } catch (error) {
        failure = { error };
        throw error;
      }
      const result = encodeStepResult(value, step.name, this.deps.maxBytes);
      const checkpoint = { n: step.n, kind: 'run', at, ended: this.now, result } as const;
      await this.records.write(step, undo ? { ...checkpoint, undo: true } : checkpoint);
      return result;
    };
    try {
      return { result: await observed(this.deps.observer, { name: step.name, kind: 'run' }, doIt) };
    } catch (error) {
      if (failure) return failure;
      throw error;
    }
  }

  private succeeded(step: Step, result: string, undo: Compensation['undo'] | undefined): unknown {
    if (undo) this.compensations.push({ step, undo, result });
    return decodeJson(result);
  }

  /** The work of a step with retries of its own has failed. */
  private async failOnce(step: Step, checkpoint: Checkpoint, retry: StepRetry, error: unknown): Promise<never> {
    const tries = checkpoint.tries!;
    if (tries <= retry.max) {
      const until = this.now + retryDelay(step.name, retry, tries, error);
      return this.suspend(step, until, { ...checkpoint, until });
    }
    await this.records.write(step, { ...checkpoint, ended: this.now, failed: true });
    throw this.failureOf(step, checkpoint, error);
  }

  private failureOf({ name }: Step, { tries = 1, error = '' }: Checkpoint, cause?: unknown): StepFailedError {
    const times = tries === 1 ? 'once' : `${tries} times`;
    return new StepFailedError(name, `step "${name}" has failed ${times}, and is not tried again: ${error}`, { cause });
  }

  /** Calls those that were not called yet; returns the results when all have ended. */
  private async callAll(items: readonly (readonly [Step, readonly unknown[]])[]): Promise<unknown[]> {
    const called: CalledItem[] = [];
    for (const [step, item] of items) {
      const answer = await this.records.answer(step.name);
      const before = await this.find(step, 'call', ({ ended }) => ended !== undefined || answer !== undefined);
      called.push({ step, item, before, answer });
    }
    const waiting = called.filter(({ before, answer }) => !answer && !before?.ended);
    if (waiting.length === 0) return this.resultsOf(called);
    this.requireAttempt();
    const until = await this.beside(this.calls.call(waiting, this.now));
    // The last of them is mostly the last to end: to be called again for each of the others would bring nothing.
    const { step } = waiting.at(-1)!;
    return this.suspend(step, until, undefined, { answer: await this.records.answerName(step.name) });
  }

  private async resultsOf(called: readonly CalledItem[]): Promise<unknown[]> {
    const results: unknown[] = [];
    let failure: StepFailedError | undefined;
    for (const one of called) {
      const end = await this.calls.endOf(one, this.attempt.message.errorMsg, this.now);
      if (end instanceof StepFailedError) failure ??= end;
      else results.push(end.result);
    }
    if (failure) throw failure;
    return results;
  }

  /** Steps beside this one end first: what they do would not be stored. */
  private async suspend(step: Step, until: number, checkpoint?: Checkpoint, awaited?: AwaitedEvent): Promise<never> {
    const { name } = step;
    const beside = this.suspension;
    this.suspension = {
      step: beside?.step ?? name,
      wakeAt: Math.min(beside?.wakeAt ?? Infinity, ceilSeconds(until)),
      checkpoint: beside ? beside.checkpoint : checkpoint && { name, bytes: this.records.encode(checkpoint) },
      awaits: [...(beside?.awaits ?? []), ...(awaited ? [awaited] : [])],
    };
    let isStored = checkpoint === undefined;
    do {
      // Another step may end the attempt before this one is stored with its settlement.
      if (!isStored && (beside || this.running.size > 0)) {
        isStored = true;
        await this.records.write(step, checkpoint!);
      }
      await this.quiet();
      await nextTurn(); // what these have brought may begin the next step
    } while (this.running.size > 0);
    this.isSealed = true;
    this.hasThrown = true;
    throw new TaskSuspended(name);
  }
}

const UNDOING = 'as its task has failed for good and its steps are undone';

const isCompensable = ({ undo, ended, failed }: Checkpoint): boolean =>
  undo !== undefined && ended !== undefined && !failed;

/** What is stored with the settlement that begins to undo. @param steps `undefined`: the handler has not asked for them */
export const undoCheckpoint = (
  record: Pick<UndoRecord, 'error' | 'outcome' | 'at'>,
  steps: HandlerSteps | undefined,
): NonNullable<Sleep['checkpoint']> => ({
  name: UNDO_RECORD,
  bytes: encodeUndoRecord({ ...record, signals: steps?.signalsBefore, life: steps?.life }),
});

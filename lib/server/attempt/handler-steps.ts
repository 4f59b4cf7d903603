import { AsyncResource } from 'node:async_hooks';
import { type Duration, parseDuration } from '../../duration.js';
import { InvalidStepError, SignalTimeoutError, TaskSuspended } from '../../errors.js';
import { decodeJson } from '../../task/codec.js';
import type { Jsonify } from '../../task/jsonify.js';
import type { SignalDefinition } from '../../task/signal.js';
import type { EachOptions, StepRunOptions, TaskSteps, WaitForOptions } from '../../task/steps.js';
import type { StepsOptions } from '../../task/steps-options.js';
import { requireFunction, requireObject } from '../../validation.js';
import { isUndoing } from '../../wire/undoing.js';
import { Compensations, type Undo } from './compensations.js';
import type { HandlerCall } from './handler-call.js';
import { type EachRow, eachRow } from './rows.js';
import { StepCalls } from './step-calls.js';
import { observed } from './step-observer.js';
import { readEach, readRun, readWait, requireName } from './step-options.js';
import { type Step, StepRecords } from './step-records.js';
import { StepRuns } from './step-runs.js';
import { StepWork, surroundingStep, withinStep } from './step-work.js';
import type { StepsAttempt, StepsDeps } from './steps-deps.js';

/** Steps of one task. */
const MAX_STEPS = 10_000;

/** See TaskSteps. One per call of a handler; what is stored is read with the first step. */
export class HandlerSteps implements TaskSteps, HandlerCall {
  readonly records: StepRecords;
  readonly work: StepWork;
  readonly compensations: Compensations;
  readonly label: string;
  private readonly runs: StepRuns;
  private readonly calls: StepCalls;
  private count = 0;
  private readonly occurrences = new Map<string, number>();
  /** How many signals of each name the waits of this call take: one that has timed out takes none. */
  private readonly taken = new Map<string, number>();

  constructor(
    readonly deps: StepsDeps,
    readonly attempt: StepsAttempt,
    options: StepsOptions = {},
  ) {
    const { lease, message } = attempt;
    this.label = `task "${message.type}" (id ${message.id})`;
    const { isBare } = attempt;
    const about = { lease, label: this.label, options, isUndoing: isUndoing(message), isBare };
    this.records = new StepRecords({ ...about, checkpoints: deps.checkpoints });
    this.work = new StepWork(attempt, this.records);
    this.compensations = new Compensations(this);
    this.runs = new StepRuns(this, this.compensations);
    this.calls = new StepCalls(this);
  }

  async run<R>(
    name: string,
    work: () => R,
    options: StepRunOptions<Jsonify<Awaited<R>>> = {},
  ): Promise<Jsonify<Awaited<R>>> {
    requireFunction(work, `work of step "${name}"`, InvalidStepError);
    const { retry, undo } = readRun(name, options);
    const step = this.begin(name);
    const bound = undo && (AsyncResource.bind(undo) as Undo);
    return (await this.runs.runOnce(step, { work, retry, undo: bound })) as Jsonify<Awaited<R>>;
  }

  async call(name: string, ...item: unknown[]): Promise<never> {
    const step = this.begin(name);
    const [result] = await this.calls.resultsOf([[step, item]]);
    return result as never;
  }

  async all(items: Readonly<Record<string, unknown>>): Promise<never> {
    const given = Object.entries(requireObject(items, 'the tasks of steps.all', InvalidStepError));
    const wrong = given.find(([, item]) => !Array.isArray(item));
    if (wrong) {
      throw new InvalidStepError(`"${wrong[0]}" of steps.all must be an array: [definition, payload, options]`);
    }
    const steps = given.map(([name, item]) => [this.begin(name), item as unknown[]] as const);
    const results = await this.calls.resultsOf(steps);
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
    await this.work.inTurn(step);
    const before = this.records.find(step, 'each', ({ ended }) => ended !== undefined);
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
      work: (row, index) => withinStep(step.name, async () => work(row as T, index)),
      before: before && { done: before.done ?? 0, cursor: before.cursor },
      attempt: this.attempt,
      isStopping: this.deps.isStopping,
      clock: this.deps.clock,
      store,
    };
    const observedStep = { name: step.name, kind: 'each' } as const;
    try {
      return await this.work.beside(observed(this.deps.observer, observedStep, () => eachRow(row)));
    } catch (error) {
      this.records.keepPlace(step);
      throw error;
    }
  }

  async sleep(name: string, duration: Duration): Promise<void> {
    const milliseconds = parseDuration(duration, `duration of step "${name}"`, InvalidStepError);
    const step = this.begin(name);
    await this.work.inTurn(step);
    const before = this.records.find(step, 'sleep', ({ until }) => until! <= this.now);
    const { now } = this;
    const until = before?.until ?? now + milliseconds;
    const checkpoint = { n: step.n, kind: 'sleep', at: now, until } as const;
    if (until <= this.now) return before ? undefined : this.records.write(step, checkpoint);
    return this.work.suspend(step, until, before ? undefined : checkpoint);
  }

  async waitFor<P>(name: string, signal: SignalDefinition<P>, options: WaitForOptions = {}): Promise<Jsonify<P>> {
    const { milliseconds, signalName } = readWait(name, signal, options);
    const step = this.begin(name);
    await this.work.inTurn(step);
    // No pause from here until it is known whether this wait takes a signal: those side by side take them in the order of their calls.
    const nth = (this.taken.get(signalName) ?? 0) + 1;
    const payload = this.records.signal(signalName, nth);
    const before = this.records.find(step, 'wait', ({ timedOut }) => timedOut !== undefined || payload !== undefined);
    if (before?.timedOut) throw new SignalTimeoutError(step.name, signalName);
    const { now } = this;
    const until = before?.until ?? now + milliseconds;
    const checkpoint = { n: step.n, kind: 'wait', at: before?.at ?? now, until, signal: signalName } as const;
    const isOver = payload === undefined && until <= now;
    if (!isOver) this.taken.set(signalName, nth);
    if (payload) {
      if (!before) await this.records.write(step, checkpoint);
      return decodeJson(payload) as Jsonify<P>;
    }
    if (!isOver) {
      const awaited = { signal: signalName, n: this.records.signalNumber(signalName, nth) };
      return this.work.suspend(step, until, before ? undefined : checkpoint, awaited);
    }
    await this.records.write(step, { ...checkpoint, timedOut: true });
    throw new SignalTimeoutError(step.name, signalName);
  }

  version(): Promise<number> {
    return this.records.begunBy();
  }

  private get now(): number {
    return this.deps.clock.now();
  }

  /** Synchronous, so that steps that run side by side have the order of their calls. */
  private begin(given: string): Step {
    const outer = surroundingStep();
    if (outer !== undefined)
      throw new InvalidStepError(`step "${given}" is in step "${outer}"; call it after that one`);
    const { current } = this.compensations;
    if (current !== undefined)
      throw new InvalidStepError(
        `step "${given}" is in the compensation of step "${current}", which can have no steps`,
      );
    if (this.work.isSealed) throw new TaskSuspended(this.work.suspension?.step ?? given);
    const base = requireName(given);
    const occurrence = (this.occurrences.get(base) ?? 0) + 1;
    this.occurrences.set(base, occurrence);
    if (this.count >= MAX_STEPS) {
      throw new InvalidStepError(`${this.label} has ${MAX_STEPS} steps; the most. Enqueue further tasks instead`);
    }
    return { name: occurrence === 1 ? base : `${base}#${occurrence}`, n: this.count++ };
  }
}

import { inspect, type InspectOptions } from 'node:util';
import { floorSeconds } from '../../clock.js';
import type { Lease, LeasedTask, Settlement } from '../../broker/broker.js';
import type { Watcher } from '../../broker/links.js';
import { AsynqError, InvalidStepError, LeaseExpiredError, NotAMemberError, NotAStepError } from '../../errors.js';
import type { TaskOutcomeKind } from '../../events/events.js';
import type { TaskBatch } from '../../task/batch.js';
import type { TaskContext } from '../../task/context.js';
import type { TaskSteps } from '../../task/steps.js';
import type { WorkflowContext } from '../../task/workflow-context.js';
import type { ProcessSpan } from '../../tracing/tracing.js';
import { batchOfCallback } from '../../wire/batch-callback.js';
import { decodeTaskMessage } from '../../wire/codec.js';
import type { TaskMessage } from '../../wire/message.js';
import { type Charge, noCosts, requireSpent } from './charge.js';
import type { TaskHandlerEntry } from './handler.js';
import type { AttemptServices } from './attempt-services.js';
import { HandlerSteps } from './handler-steps.js';
import { StepReports } from './step-observer.js';
import { TaskNotes } from './task-notes.js';

/** asynq's fallback for a message with neither timeout nor deadline (wire-protocol 5.4). */
const DEFAULT_TIMEOUT_SECONDS = 30 * 60;

/** The latest time a Date can hold. */
const LATEST_DATE_MS = 8.64e15;

const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze(Object.create(null));

/** How an attempt ended: what is stored and what is reported. */
export interface Verdict {
  readonly outcome: TaskOutcomeKind;
  readonly settlement: Settlement;
  readonly result?: unknown;
  readonly error?: unknown;
}

/**
 * One attempt of one task, from its claim to its settlement. It is also the TaskContext the handler
 * sees, so that a task costs one object. The abort signal is made only when somebody asks for it.
 */
export class ActiveTask implements TaskContext {
  /** Milliseconds since the epoch. */
  readonly deadlineAt: number;
  /** The end of the handler, in milliseconds since the epoch. */
  endedAt = 0;
  /** Set once, by what ends the attempt first. */
  verdict: Verdict | undefined;
  /** The handler has returned or thrown: the slot is free. */
  handlerSettled = false;
  /** The lease is another server's: nothing is written about this attempt any more. */
  lost = false;
  /** Found when it is admitted. */
  handler: TaskHandlerEntry | undefined;
  /** When it is too late to start, by `Clock.elapsed`, where a rate has counted its start. */
  startBy = Infinity;
  /** The time at which its handler's rate counts its start. */
  countedAt = 0;
  /** Its part in a trace, while somebody makes one. */
  span: ProcessSpan | undefined;
  /** What it costs of the rate of its handler, where that has costs. */
  charge: Charge | undefined;
  /** Its position in the HeldTasks of its queue; -1 when it is not held. */
  heldAt = -1;
  /** How many tasks of its queue this server has held before. */
  heldNumber = 0;
  /** Made when the handler asks for its steps. */
  handlerSteps: HandlerSteps | undefined;
  /** Made when the handler says something. */
  private notes: TaskNotes | undefined;
  private controller: AbortController | undefined;
  private abortReason: AsynqError | undefined;

  readonly lease: Lease;
  readonly message: TaskMessage;
  readonly waited: number | undefined;
  /** Nothing was stored of it but its message when it was claimed; `undefined`: not known. */
  readonly isBare: boolean | undefined;
  /** Who is notified of its end; `undefined` when nobody is. */
  readonly links: readonly Watcher[] | undefined;

  /** @param startedAt milliseconds since the epoch */
  constructor(
    private readonly services: AttemptServices,
    leased: LeasedTask,
    readonly startedAt: number,
  ) {
    const { lease, message, pendingSince, bare, links } = leased;
    this.lease = lease;
    this.message = message;
    this.links = links;
    this.isBare = bare;
    // The clock of whoever made it pending may be ahead of ours.
    this.waited = pendingSince === undefined ? undefined : Math.max(0, startedAt - pendingSince);
    this.deadlineAt = Math.min(deadlineOf(message, startedAt), LATEST_DATE_MS);
  }

  get id(): string {
    return this.message.id;
  }
  get type(): string {
    return this.message.type;
  }
  get queue(): string {
    return this.lease.queue;
  }
  get headers(): Readonly<Record<string, string>> {
    return this.message.headers ?? NO_HEADERS;
  }
  get payload(): Buffer {
    return this.message.payload;
  }
  get retried(): number {
    return this.message.retried;
  }
  get maxRetry(): number {
    return this.message.maxRetry;
  }
  get deadline(): Date {
    return new Date(this.deadlineAt);
  }

  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.abortReason) this.controller.abort(this.abortReason);
    }
    return this.controller.signal;
  }

  /** Whether the handler asked for its signal, and so may wait for it. */
  get signalTaken(): boolean {
    return this.controller !== undefined;
  }

  /** Why the handler was asked to stop, if it was. */
  get aborted(): AsynqError | undefined {
    return this.abortReason;
  }

  get isOver(): boolean {
    return this.verdict !== undefined || this.lost;
  }

  /** Asks the handler to stop; the first reason stands. */
  abort(reason: AsynqError): void {
    if (this.abortReason) return;
    this.abortReason = reason;
    this.controller?.abort(reason);
  }

  async writeResult(result: unknown): Promise<void> {
    this.requireRunning();
    if (!(await this.services.results.write(this.lease, result))) throw failedToWrite(new LeaseExpiredError());
  }

  progress(fraction: number, text?: string): void {
    this.openNotes?.progress(fraction, text);
  }

  log(text: string): void {
    this.openNotes?.log(text);
  }

  emit(chunk: unknown): void {
    this.openNotes?.emit(chunk);
  }

  /** Takes nothing more that the handler says. Resolves when that is stored; `undefined`: it is. */
  closeNotes(): Promise<unknown> | undefined {
    return this.notes?.close();
  }

  spent(amount: number): void {
    if (!this.handler?.cost) throw noCosts(this.type);
    const whole = requireSpent(amount, this.type);
    if (this.charge) this.charge.spent = whole;
  }

  get steps(): TaskSteps {
    return this.stepsOfHandler;
  }

  /** Made when it is first asked for. @throws InvalidStepError in a batch handler */
  get stepsOfHandler(): HandlerSteps {
    if (this.handler?.batch) throw new InvalidStepError(`task "${this.type}" has a batch handler, which has no steps`);
    return (this.handlerSteps ??= this.makeSteps());
  }

  private makeSteps(): HandlerSteps {
    const { steps, events } = this.services;
    const observer = new StepReports(this, { events, clock: steps.clock });
    return new HandlerSteps({ ...steps, observer }, this, this.handler?.steps);
  }

  get isMember(): boolean {
    return this.linkOf('b') !== undefined;
  }

  get batch(): TaskBatch {
    const link = this.linkOf('b');
    const { contexts } = this.services;
    const batch = link ? { queue: link.to, id: link.batch } : batchOfCallback(this.message.headers);
    if (!batch || !contexts) throw new NotAMemberError(this);
    return contexts.batchOf(batch, link !== undefined);
  }

  get isStep(): boolean {
    return this.linkOf('r') !== undefined;
  }

  get workflow(): WorkflowContext {
    const link = this.linkOf('r');
    const { contexts } = this.services;
    if (!link || !contexts) throw new NotAStepError(this);
    return contexts.workflowOf(this.id, link);
  }

  /** What logs and JSON show of the context; the payload may be secret. */
  toJSON(): object {
    const { id, type, queue, retried, maxRetry } = this;
    return { id, type, queue, retried, maxRetry };
  }

  /** As `console.log(task)` shows it. */
  [inspect.custom](_depth: number, options: InspectOptions): string {
    return `TaskContext ${inspect(this.toJSON(), options)}`;
  }

  linkOf<K extends Watcher['k']>(kind: K): Extract<Watcher, { k: K }> | undefined {
    return this.links?.find(({ k }) => k === kind) as Extract<Watcher, { k: K }> | undefined;
  }

  /** `undefined`: the attempt is over, and what its handler says still is for nobody. */
  private get openNotes(): TaskNotes | undefined {
    if (this.verdict || this.lost) return undefined;
    return (this.notes ??= new TaskNotes(this.services.notes, this.lease));
  }

  private requireRunning(): void {
    if (this.abortReason) throw failedToWrite(this.abortReason);
    if (this.handlerSettled) throw failedToWrite(new Error('the handler has returned'));
  }
}

const failedToWrite = (cause: Error): Error => new Error(`failed to write task result: ${cause.message}`, { cause });

function deadlineOf(message: TaskMessage, startedAt: number): number {
  const { timeout, deadline } = message;
  if (timeout > 0 && deadline > 0) return Math.min(floorSeconds(startedAt) + timeout, deadline) * 1000;
  if (deadline > 0) return deadline * 1000;
  return startedAt + (timeout > 0 ? timeout : DEFAULT_TIMEOUT_SECONDS) * 1000;
}

/**
 * What is known of a task that cannot be decoded: no bytes are asynq's message with every field at
 * its zero.
 */
export const unreadableMessage = ({ id, queue }: Lease): TaskMessage => ({
  ...decodeTaskMessage(Buffer.alloc(0)),
  id,
  queue,
});

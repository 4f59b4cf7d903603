import { createHash, randomUUID } from 'node:crypto';
import type { Broker, EnqueueStatus } from '../broker/broker.js';
import { resultOf } from '../enqueue/enqueue-result.js';
import { injected, type PreparedTask } from '../enqueue/prepared-task.js';
import type { Preparer, TaskKind } from '../enqueue/preparer.js';
import { ceilSeconds, floorSeconds } from '../clock.js';
import type { Schedule } from '../cron/schedule.js';
import type { AsynqEvents, PeriodicRef } from '../events/events.js';
import { Loop, type NextDelay } from '../loop.js';
import type { SchedulerEntry } from '../wire/message.js';
import type { EnqueueSpan, Tracing } from '../tracing/tracing.js';
import { dueTimes } from './due.js';
import type { Plan } from './options.js';

/** Seconds the mark of an entry outlives its next planned time: how long everything may be down and still be made up for. */
const REMEMBERED = 90 * 86_400;

/** What every entry of a scheduler needs. */
export interface EntryContext {
  readonly broker: Broker;
  readonly preparer: Preparer;
  readonly events: AsynqEvents;
  readonly tracing: Tracing | undefined;
  /** Next and previous time of an entry have changed. */
  readonly onChange: () => void;
}

/** An entry after all checks. */
export interface EntryDefinition {
  readonly id: string;
  readonly spec: string;
  readonly schedule: Schedule;
  readonly plan: Plan;
  readonly kind: TaskKind;
  readonly payload: unknown;
  readonly payloadBytes: Buffer;
  readonly optionTexts: readonly string[];
}

/** The same for the same entry in every process; shaped like asynq's ids. Parts are length-prefixed by JSON, so that none runs into the next. */
export function deriveId(
  spec: string,
  tz: string,
  type: string,
  payload: Buffer,
  optionTexts: readonly string[],
): string {
  const parts = [spec, tz, type, payload.toString('base64'), [...optionTexts].sort()];
  const hash = createHash('sha256').update(JSON.stringify(parts)).digest('hex');
  return [hash.slice(0, 8), hash.slice(8, 12), hash.slice(12, 16), hash.slice(16, 20), hash.slice(20, 32)].join('-');
}

/** One periodic task: fires its planned times, as far as no other process has. */
export class Entry {
  readonly loop: Loop;
  /** Planned times up to here need no thought any more, in milliseconds. `undefined` until the entry was opened. */
  private mark: number | undefined;
  private prev: number | undefined;
  private removed = false;

  constructor(
    readonly definition: EntryDefinition,
    private readonly context: EntryContext,
  ) {
    this.loop = new Loop({
      name: 'scheduler',
      clock: context.broker.clock,
      byTimeOfDay: true,
      runOnce: () => this.runOnce(),
      onError: (_, error) => this.onError(error),
    });
  }

  get queue(): string {
    return this.definition.kind.settings.queue;
  }

  /** The next planned time, in milliseconds since the epoch. */
  get next(): number | undefined {
    return this.definition.schedule.next(this.mark ?? this.now());
  }

  /** The last planned time any process has dealt with, in milliseconds since the epoch. */
  get previous(): number | undefined {
    return this.prev;
  }

  /** As asynq's tools read it. */
  published(): SchedulerEntry {
    const { id, spec, plan, kind, payloadBytes, optionTexts } = this.definition;
    const zoned = plan.tz === 'UTC' || /^(?:CRON_)?TZ=/.test(spec) ? spec : `TZ=${plan.tz} ${spec}`;
    return {
      id,
      spec: zoned,
      taskType: kind.type,
      taskPayload: payloadBytes,
      enqueueOptions: optionTexts,
      nextEnqueueTime: this.next,
      prevEnqueueTime: this.prev,
    };
  }

  /** Nothing is fired after this. Resolves when the pass under way is over, or takes long to end. */
  remove(): Promise<void> {
    this.removed = true;
    return this.loop.stop();
  }

  private now(): number {
    return this.context.broker.clock.now();
  }

  private onError(error: unknown): void {
    this.context.events.emit('loopFailed', { loop: 'scheduler', error });
  }

  private async runOnce(): Promise<NextDelay> {
    if (this.mark === undefined) await this.open();
    for (let due = await this.due(); due.length > 0 && !this.removed; due = await this.due()) {
      for (const planned of due) if (!this.removed && !(await this.fire(planned))) break;
    }
    this.context.onChange();
    return (this.next ?? Infinity) - this.now();
  }

  /** Reads how far the processes have got together. */
  private async open(): Promise<void> {
    const { id, spec, plan } = this.definition;
    const keepFor = this.keepFor(this.now());
    const found = await this.context.broker.openSchedule(this.queue, id, `${plan.tz} ${spec}`, keepFor);
    this.mark = Math.max(found.mark * 1000, this.mark ?? -Infinity);
    if (found.fired !== undefined) this.prev = found.fired * 1000;
  }

  /** The planned times to fire. When one would be passed over, others may have fired it meanwhile: that is looked up first. */
  private async due(): Promise<number[]> {
    const first = this.next;
    if (first === undefined || first > this.now()) return [];
    let due = this.wanted();
    if (due[0] === first) return due;
    await this.open();
    due = this.wanted();
    const missed = this.next;
    if (missed !== undefined && missed <= this.now() && missed !== due[0]) {
      this.context.events.emit('periodicTaskSkipped', { entry: this.ref(missed), reason: 'missed' });
      this.mark = due.length > 0 ? this.mark : this.now();
    }
    return due;
  }

  private wanted(): number[] {
    const { schedule, plan } = this.definition;
    return dueTimes(schedule, this.mark!, this.now(), plan.missed);
  }

  /** Answers whether the planned time was still to be dealt with. */
  private async fire(planned: number): Promise<boolean> {
    const { broker, preparer } = this.context;
    const { id, plan, kind, payload } = this.definition;
    const prepared = preparer.prepare(kind, payload, this.now());
    const span = this.context.tracing?.startScheduledEnqueue(prepared.request.message);
    const task = injected(prepared, span);
    const reply = await broker.fire(this.queue, {
      entry: id,
      planned: floorSeconds(planned),
      attempt: randomUUID(),
      request: task.request,
      skipUnfinished: plan.overlap === 'skip',
      keepFor: this.keepFor(planned),
    });
    this.mark = Math.max(this.mark!, reply.mark * 1000);
    this.prev = Math.max(this.prev ?? -Infinity, reply.mark * 1000);
    if (reply.status === 'past') return false;
    await this.report(planned, task, reply.status, span);
    return true;
  }

  private async report(
    planned: number,
    task: PreparedTask,
    status: EnqueueStatus | 'unfinished',
    span: EnqueueSpan | undefined,
  ): Promise<void> {
    const { events, broker } = this.context;
    const entry = this.ref(planned);
    if (status === 'unfinished') {
      events.emit('periodicTaskSkipped', { entry, reason: 'unfinished' });
      return;
    }
    const { ok, info, error } = resultOf(task, status, events, span);
    if (!ok) {
      events.emit('periodicTaskFailed', { entry, error });
      return;
    }
    events.emit('periodicTaskEnqueued', { entry, taskId: info.id });
    await broker
      .recordEnqueueEvent(this.definition.id, { taskId: info.id, enqueueTime: this.now() })
      .catch((error: unknown) => this.onError(error));
  }

  private ref(planned: number): PeriodicRef {
    const { id, spec, kind } = this.definition;
    return { id, spec, type: kind.type, queue: this.queue, planned: new Date(planned) };
  }

  /** @param planned milliseconds since the epoch */
  private keepFor(planned: number): number {
    const next = this.definition.schedule.next(planned) ?? planned;
    return Math.max(ceilSeconds(next - this.now()), 0) + REMEMBERED;
  }
}

import { randomUUID } from 'node:crypto';
import type { Broker, EnqueueStatus } from '../broker/broker.js';
import { resultOf } from '../enqueue/enqueue-result.js';
import { injected, type PreparedTask } from '../enqueue/prepared-task.js';
import type { Preparer } from '../enqueue/preparer.js';
import type { TaskKind } from '../enqueue/task-kinds.js';
import { ceilSeconds, type Clock, floorSeconds } from '../clock.js';
import type { Schedule } from '../cron/schedule.js';
import type { AsynqEvents, PeriodicRef } from '../events/events.js';
import type { Relay } from '../links/relay.js';
import { Loop, type NextDelay } from '../loop.js';
import { Keyspace } from '../wire/keys.js';
import type { SchedulerEntry } from '../wire/message.js';
import { formatOption } from '../wire/options.js';
import type { EnqueueSpan, Tracing } from '../tracing/tracing.js';
import { dueTimes } from './due.js';
import type { Plan } from './options.js';

/**
 * How long the progress of an entry outlives its next planned time: everything may be down for that
 * long.
 */
const REMEMBERED_SECONDS = 90 * 86_400;

/**
 * Progress that is further in the future comes from a process whose clock is ahead; correct clocks
 * differ by less. Until it is over, the progress is read again at this interval, as it may be
 * deleted.
 */
const MAX_AHEAD_MS = 60_000;

/** What every entry of a scheduler needs. */
export interface EntryContext {
  readonly broker: Broker;
  readonly preparer: Preparer;
  readonly events: AsynqEvents;
  readonly relay: Pick<Relay, 'carry'>;
  readonly tracing: Tracing | undefined;
  /** That of the broker, with the timers of all entries together. */
  readonly clock: Clock;
  /** The next and previous time of an entry have changed. */
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

/** One periodic task: fires its planned times, unless another process has. */
export class Entry {
  readonly loop: Loop;
  /**
   * Planned times up to here are dealt with, in milliseconds. `undefined` until the entry is
   * opened.
   */
  private handledUntil: number | undefined;
  /** What a search for the next planned time has found. */
  private found: { readonly after: number; readonly next: number | undefined } | undefined;
  private lastFiredAt: number | undefined;
  private reportedAhead = false;
  private removed = false;

  constructor(
    readonly definition: EntryDefinition,
    private readonly context: EntryContext,
  ) {
    this.loop = new Loop({
      name: 'scheduler',
      clock: context.clock,
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
    const { handledUntil, found } = this;
    if (handledUntil === undefined) return this.definition.schedule.next(this.now());
    if (found?.after !== handledUntil) {
      this.found = { after: handledUntil, next: this.definition.schedule.next(handledUntil) };
    }
    return this.found!.next;
  }

  /** The last planned time that any process has fired, in milliseconds since the epoch. */
  get previous(): number | undefined {
    return this.lastFiredAt;
  }

  /** The entry as asynq's tools read it. */
  published(): SchedulerEntry {
    const { id, spec, plan, kind, payloadBytes, optionTexts } = this.definition;
    // A queue of the module's defaults, too: readers of the entry do not know these.
    const queue = formatOption({ name: 'Queue', value: this.queue });
    const zoned = plan.tz === 'UTC' || /^(?:CRON_)?TZ=/.test(spec) ? spec : `TZ=${plan.tz} ${spec}`;
    return {
      id,
      spec: zoned,
      taskType: kind.type,
      taskPayload: payloadBytes,
      enqueueOptions: this.queue === 'default' || optionTexts.includes(queue) ? optionTexts : [queue, ...optionTexts],
      nextEnqueueTime: this.next,
      prevEnqueueTime: this.lastFiredAt,
    };
  }

  /**
   * Nothing is fired after this. Resolves when the pass under way is over, or takes long to end.
   */
  remove(): Promise<void> {
    this.removed = true;
    return this.loop.stop();
  }

  private now(): number {
    return this.context.clock.now();
  }

  private onError(error: unknown): void {
    this.context.events.emit('loopFailed', { loop: 'scheduler', error });
  }

  private async runOnce(): Promise<NextDelay> {
    if (this.handledUntil === undefined || this.ahead > MAX_AHEAD_MS) await this.open();
    for (let due = await this.due(); due.length > 0 && !this.removed; due = await this.due()) {
      for (const time of due) if (!this.removed && !(await this.fire(time))) break;
    }
    this.reportAhead();
    this.context.onChange();
    const delay = (this.next ?? Infinity) - this.now();
    return this.reportedAhead ? Math.min(delay, MAX_AHEAD_MS) : delay;
  }

  /** How far the progress of the entry lies in the future, in milliseconds. */
  private get ahead(): number {
    return (this.handledUntil ?? -Infinity) - this.now();
  }

  /** Until then no process fires the entry: it is unknown which of the clocks is right. */
  private reportAhead(): void {
    const { ahead, reportedAhead } = this;
    this.reportedAhead = ahead > MAX_AHEAD_MS;
    if (!this.reportedAhead || reportedAhead) return;
    const { broker, events } = this.context;
    const key = new Keyspace(broker.keyPrefix).queue(this.queue).schedule(this.definition.id);
    events.emit('periodicTaskAhead', { entry: this.ref(this.handledUntil!), ahead, key });
  }

  /** Reads how far all processes together have got. */
  private async open(): Promise<void> {
    const { id, spec, plan } = this.definition;
    const keepFor = this.keepFor(this.now());
    const found = await this.context.broker.scheduling.openSchedule(this.queue, id, `${plan.tz} ${spec}`, keepFor);
    const known = Math.min(this.handledUntil ?? -Infinity, this.now());
    this.handledUntil = Math.max(found.handledUntil * 1000, known);
    this.lastFiredAt = found.lastFiredAt === undefined ? undefined : found.lastFiredAt * 1000;
  }

  /**
   * The planned times to fire. Before one is skipped, this checks whether other processes have
   * fired it.
   */
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
      this.handledUntil = due.length > 0 ? this.handledUntil : this.now();
    }
    return due;
  }

  private wanted(): number[] {
    const { schedule, plan } = this.definition;
    return dueTimes(schedule, this.handledUntil!, this.now(), plan.missed);
  }

  /** Returns whether the planned time had not been dealt with. */
  private async fire(time: number): Promise<boolean> {
    const { broker, preparer } = this.context;
    const { id, plan, kind, payload } = this.definition;
    const prepared = preparer.prepare(kind, payload, this.now());
    const span = this.context.tracing?.startScheduledEnqueue(prepared.request.message);
    const task = injected(prepared, span);
    const reply = await broker.scheduling.fire(this.queue, {
      entry: id,
      scheduledFor: floorSeconds(time),
      attempt: randomUUID(),
      request: task.request,
      skipUnfinished: plan.overlap === 'skip',
      keepFor: this.keepFor(time),
    });
    if (reply.parcels) this.context.relay.carry(reply);
    const handledUntil = reply.handledUntil * 1000;
    this.handledUntil = Math.max(this.handledUntil!, handledUntil);
    this.lastFiredAt = reply.lastFiredAt === undefined ? undefined : reply.lastFiredAt * 1000;
    if (reply.status === 'past') return false;
    await this.report(time, task, reply.status, span);
    return true;
  }

  private async report(
    time: number,
    task: PreparedTask,
    status: EnqueueStatus | 'unfinished' | 'paused',
    span: EnqueueSpan | undefined,
  ): Promise<void> {
    const { events, broker } = this.context;
    const entry = this.ref(time);
    if (status === 'unfinished' || status === 'paused') {
      events.emit('periodicTaskSkipped', { entry, reason: status });
      return;
    }
    const { ok, info, error } = resultOf(task, status, events, span);
    if (!ok) {
      events.emit('periodicTaskFailed', { entry, error });
      return;
    }
    events.emit('periodicTaskEnqueued', { entry, taskId: info.id });
    await broker.scheduling
      .recordEnqueueEvent(this.definition.id, { taskId: info.id, enqueueTime: this.now() })
      .catch((error: unknown) => this.onError(error));
  }

  private ref(time: number): PeriodicRef {
    const { id, spec, kind } = this.definition;
    return { id, spec, type: kind.type, queue: this.queue, planned: new Date(time) };
  }

  /** Seconds. @param time the planned time, in milliseconds since the epoch */
  private keepFor(time: number): number {
    const next = this.definition.schedule.next(time) ?? time;
    return Math.max(ceilSeconds(next - this.now()), 0) + REMEMBERED_SECONDS;
  }
}

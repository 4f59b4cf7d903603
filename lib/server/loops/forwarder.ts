import type { Broker, WakeSource } from '../../broker/broker.js';
import type { Clock } from '../../clock.js';
import type { AsynqEvents } from '../../events/events.js';
import type { QueueRegistry } from '../fetching/queue-registry.js';
import { QueuePasses } from './queue-passes.js';
import { Turns } from './turns.js';
import { withTimeout } from '../../async.js';
import { QUEUE_REPLY_TIMEOUT_MS } from '../fetching/queue-state.js';

/** The shortest time between two passes, however often queues report changes. */
const MIN_INTERVAL_MS = 50;

export interface ForwarderOptions {
  readonly broker: Pick<Broker, 'maintenance'>;
  readonly source: WakeSource;
  readonly clock: Clock;
  readonly queues: QueueRegistry;
  readonly events: AsynqEvents;
  /** The longest time between two passes, in milliseconds. */
  readonly interval: number;
}

/**
 * Moves scheduled and retried tasks to pending when they are due. It sleeps until the next one is
 * due; a notice reports earlier ones, and the interval is the safety net. A queue that fails does
 * not hold up the others.
 */
export class Forwarder {
  private lastRun = 0;
  private readonly turns: Turns;
  /** By queue: when its next task is due (Unix seconds), where queues are looked at in turns. */
  private readonly due = new Map<string, number>();
  private nextTurn = 0;
  private readonly passes: QueuePasses<{ readonly nextDue: number | undefined }>;

  constructor(private readonly options: ForwarderOptions) {
    const { broker, clock, events } = options;
    this.turns = new Turns(options.interval);
    const onError = (error: unknown): void => events.emit('loopFailed', { loop: 'forwarder', error });
    this.passes = new QueuePasses(clock, (queue) => broker.maintenance.forward(queue), onError);
  }

  async runOnce(): Promise<number> {
    this.lastRun = this.options.clock.now();
    if (!this.turns.areAll(this.options.queues.names())) return this.runTurn();
    const { results, retryIn } = await this.passes.run(this.options.queues.names());
    let next: number | undefined;
    for (const { nextDue } of results.values()) next = earlier(next, nextDue);
    next = earlier(next, await this.arm([...results.keys()]));
    return Math.min(retryIn, this.delayUntil(next));
  }

  /** A queue has changed: with many queues, only those and the ones that are due are looked at beside those whose turn it is. */
  changed(queue: string): void {
    this.due.set(queue, 0);
  }

  private async runTurn(): Promise<number> {
    const { clock, queues } = this.options;
    const served = queues.names();
    const names = new Set<string>();
    const now = clock.now();
    for (const [queue, due] of this.due) if (due * 1000 <= now && queues.get(queue)) names.add(queue);
    if (clock.elapsed() >= this.nextTurn) {
      const turn = this.turns.take(served);
      this.nextTurn = clock.elapsed() + turn.delay;
      for (const queue of turn.queues) names.add(queue);
    }
    const again = now / 1000 + 1; // where a queue fails
    for (const queue of names) this.due.set(queue, again);
    const { results } = await this.passes.run([...names]);
    for (const [queue, { nextDue }] of results) {
      if (this.due.get(queue) === again) this.due.delete(queue); // else it has changed meanwhile
      this.plan(queue, nextDue);
    }
    // Of what came since, only the first is known, and not where.
    const next = await this.arm([...results.keys()]);
    for (const queue of results.keys()) this.plan(queue, next);
    return Math.max(1, Math.min(this.nextTurn - clock.elapsed(), this.delayUntil(this.firstDue())));
  }

  private plan(queue: string, seconds: number | undefined): void {
    const next = earlier(this.due.get(queue), seconds);
    if (next !== undefined) this.due.set(queue, next);
  }

  private firstDue(): number | undefined {
    let first: number | undefined;
    for (const due of this.due.values()) first = earlier(first, due);
    return first;
  }

  /** Milliseconds that a pass must wait when a notice asks for it. */
  get cooldown(): number {
    const left = this.lastRun + MIN_INTERVAL_MS - this.options.clock.now();
    // When the clock was set back, notices must not wait for hours.
    return Math.min(Math.max(0, left), MIN_INTERVAL_MS);
  }

  private async arm(queues: readonly string[]): Promise<number | undefined> {
    if (queues.length === 0) return undefined;
    try {
      return await withTimeout(this.options.source.armDelayed(queues), QUEUE_REPLY_TIMEOUT_MS, this.options.clock);
    } catch {
      return undefined; // the waker reports it; here the interval does
    }
  }

  private delayUntil(next: number | undefined): number {
    const { interval, clock } = this.options;
    if (next === undefined) return interval;
    return Math.min(interval, Math.max(1, next * 1000 - clock.now()));
  }
}

const earlier = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || (b !== undefined && b < a) ? b : a;

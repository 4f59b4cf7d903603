import type { Broker } from '../../broker/broker.js';
import type { Clock } from '../../clock.js';
import type { AsynqEvents } from '../../events/events.js';
import { newerWaitlist, payloadVersion } from '../../wire/payload-version.js';
import type { ActiveTask } from './active-task.js';
import type { TaskHandlerEntry } from './handler.js';
import type { LimiterListener } from './waitlist.js';

/** Between two searches for tasks that servers of older deploys have left: at least, and at most, when searches find none. */
const MIN_SEARCH_INTERVAL_MS = 2_000;
const MAX_SEARCH_INTERVAL_MS = 30_000;
/** A server that has left tasks of a type itself does not wake them again for this long. */
const OWN_WAIT_MS = 60_000;
/** How many tasks one call wakes, and one pass of a queue. */
const WOKEN_PER_CALL = 200;
const CALLS_PER_PASS = 20;

export interface NewerPayloadsDeps {
  readonly broker: Pick<Broker, 'limiting'>;
  readonly clock: Clock;
  readonly events: AsynqEvents;
  readonly queues: { names(): readonly string[] };
  readonly listener: LimiterListener;
}

/**
 * Tasks whose payload has a newer version than their handler here: each goes to a waitlist of its type and queue. A server that knows
 * a version above 1 of that type wakes those that wait. If none comes, a task runs again after a minute or more, as from any waitlist,
 * and whichever server claims it decides again.
 */
export class NewerPayloads {
  /** Types with versions above 1 here. */
  private readonly types: readonly string[];
  /** When this server last left a task in a waitlist, by queue and waitlist; milliseconds since the epoch. */
  private readonly left = new Map<string, number>();
  private interval = MIN_SEARCH_INTERVAL_MS;

  constructor(
    entries: Iterable<TaskHandlerEntry>,
    private readonly deps: NewerPayloadsDeps,
  ) {
    this.types = [...entries].filter(({ version = 1 }) => version > 1).map(({ pattern }) => pattern);
  }

  /** Whether this server may know tasks that others have left. */
  get searches(): boolean {
    return this.types.length > 0;
  }

  /** The waitlist of a task that this handler must not run; `undefined`: it may. */
  waitlistOf(task: ActiveTask, { version: known = 1 }: TaskHandlerEntry): string | undefined {
    const version = payloadVersion(task.message.headers);
    if (!(version > known)) return undefined;
    const waitlist = newerWaitlist(task.type);
    this.left.set(`${task.queue}\n${waitlist}`, this.deps.clock.now());
    const { id, type, queue } = task;
    this.deps.events.emit('payloadTooNew', { task: { id, type, queue }, version, known });
    return waitlist;
  }

  /** One pass: wakes what older servers have left. */
  async runOnce(): Promise<number> {
    let found = false;
    for (const queue of this.deps.queues.names()) {
      const waitlists = await this.deps.broker.limiting.usedWaitlists(queue, this.types.map(newerWaitlist));
      for (const waitlist of waitlists) if (await this.wake(queue, waitlist)) found = true;
    }
    this.interval = found ? MIN_SEARCH_INTERVAL_MS : Math.min(2 * this.interval, MAX_SEARCH_INTERVAL_MS);
    return this.interval;
  }

  /** Whether it woke any. */
  private async wake(queue: string, waitlist: string): Promise<boolean> {
    const { broker, clock, listener } = this.deps;
    const key = `${queue}\n${waitlist}`;
    for (let calls = 0; calls < CALLS_PER_PASS; calls++) {
      const left = this.left.get(key) ?? -Infinity;
      if (Math.abs(clock.now() - left) < OWN_WAIT_MS) return calls > 0; // they are newer than this server, too
      const { woken, left: more } = await broker.limiting.wakeWaiting(queue, waitlist, WOKEN_PER_CALL);
      if (woken > 0) listener.tasksWoken(queue);
      if (woken === 0) return calls > 0;
      if (more === 0) return true;
    }
    return true;
  }
}

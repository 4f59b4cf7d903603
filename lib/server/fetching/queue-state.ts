import type { ClockTimer } from '../../clock.js';
import type { ActiveTask } from '../attempt/active-task.js';
import type { ResolvedQueueOptions } from './queue-options.js';

/** How long a round or a pass waits for the reply about one queue: one node of a cluster may hang. */
export const QUEUE_REPLY_TIMEOUT_MS = 1_000;

/** Everything the server keeps about one queue. */
export class QueueState {
  /** Tasks believed to be in `pending`: what the last reply said, `Infinity` when it may have changed. */
  backlog = Infinity;
  /** When Redis last told the backlog, in milliseconds since the epoch. */
  seenAt = 0;
  /** Slots promised to the exchanges under way. */
  reserved = 0;
  /** Exchanges under way. */
  exchanges = 0;
  /** The last exchange failed; the syncer, not the processor, speaks to Redis about this queue until it answers. */
  failed = false;
  /** Redis has let tasks be taken since it last answered after a failure; one that refuses writes answers, too. */
  proven = true;
  /** A wake-up notice is armed. */
  armed = false;
  /** Milliseconds this queue rests before it arms again, because others were faster at the last wake-ups. */
  rest = 0;
  restTimer: ClockTimer | undefined;
  /** A wake-up told of tasks; the next exchange shows whether there were any left for us. */
  woken = false;
  /** Runs while a limit of the queue holds its tasks back. */
  limitTimer: ClockTimer | undefined;
  /** Taken from the server; what runs is settled, nothing new is fetched. */
  removed = false;
  /** Tasks of this queue whose lease this server holds: running, or finished and not yet settled. */
  readonly held = new Set<ActiveTask>();
  /** Tasks no longer held whose handlers still run: they were given up. */
  readonly lingering = new Set<ActiveTask>();
  /** Finished, to be settled with the next exchange. */
  finished: ActiveTask[] = [];

  private lastBacklog = Infinity;

  constructor(
    readonly name: string,
    public options: ResolvedQueueOptions,
  ) {}

  get busy(): boolean {
    return this.exchanges > 0;
  }

  /** Tasks it is worth while to ask for beyond what has been asked for. A limit that was reached has room again when something of ours is settled, or later. */
  get wanted(): number {
    if (this.removed || (this.limitTimer && this.finished.length === 0)) return 0;
    return Math.max(0, Math.min(this.backlog, this.room) - this.reserved);
  }

  /** Handlers that may start; one that goes on though its task is settled still counts. */
  private get room(): number {
    const { concurrency } = this.options;
    if (concurrency === Infinity) return concurrency;
    const ended = this.finished.filter(({ handlerSettled }) => handlerSettled).length;
    return concurrency - (this.held.size - ended) - this.lingering.size;
  }

  /**
   * What a reply told. A take that came back with nothing has passed over ids without a task as long as the backlog shrinks; when it
   * does not, nothing there can be taken, and asking again would only spin.
   */
  learn(backlog: number, tookNothing: boolean): void {
    this.backlog = tookNothing && backlog >= this.lastBacklog ? 0 : backlog;
    this.lastBacklog = backlog;
  }
}

import type { EnqueueRequest } from '../broker/broker.js';
import type { RepeatRequest } from '../broker/uniqueness.js';
import type { Clock, ClockTimer } from '../clock.js';
import type { BoundedProducing, EnqueueReply } from '../enqueue/producing.js';
import { CALL_LIMITS, Requests } from '../enqueue/requests.js';
import { QueueFullError } from '../errors.js';
import type { ReadRoom } from '../task/queue-settings.js';

/** Between two tries: the first, and the most after tries that found no room. */
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 250;

/** Somebody who waits for room for a task. */
interface Waiting {
  readonly request: EnqueueRequest;
  /** By the clock's `elapsed`. */
  readonly since: number;
  resolve(reply: EnqueueReply): void;
}

/**
 * Tasks of one queue that wait for room, in order. However many they are, one loop tries for all: the first task alone, and as long as
 * there is room twice as many each time.
 */
export class RoomLine {
  private waiting: Waiting[] = [];
  /** How many wait of those that are the same task as another. */
  private readonly same = new Map<string, number>();
  private pause = FIRST_PAUSE_MS;
  private timer: ClockTimer | undefined;
  private trying: Promise<void> | undefined;
  private closed = false;

  constructor(
    private readonly queue: string,
    private readonly room: ReadRoom,
    private readonly producer: Pick<BoundedProducing, 'enqueueBounded'>,
    private readonly clock: Clock,
  ) {}

  get isEmpty(): boolean {
    return this.waiting.length === 0;
  }

  /** Resolves to what became of the task: a QueueFullError when the time is over, the error of a call that failed. */
  add(request: EnqueueRequest): Promise<EnqueueReply> {
    const name = lockOf(request);
    this.count(name, 1);
    return new Promise((resolve) => {
      const leave = (reply: EnqueueReply): void => {
        this.count(name, -1);
        resolve(reply);
      };
      this.waiting.push({ request, since: this.clock.elapsed(), resolve: leave });
      this.arm();
    });
  }

  /** Whether such a task may be there already, and none waits here that would have to come before it. */
  isFirst(request: EnqueueRequest): boolean {
    const name = lockOf(request);
    return name !== undefined && !this.same.has(name);
  }

  /** Tries a last time, and refuses those for whom there is no room. */
  async close(): Promise<void> {
    this.closed = true;
    this.timer?.cancel();
    await this.trying;
    while (!this.isEmpty) await this.tryAll();
  }

  private count(name: string | undefined, by: 1 | -1): void {
    if (name === undefined) return;
    const count = (this.same.get(name) ?? 0) + by;
    if (count === 0) this.same.delete(name);
    else this.same.set(name, count);
  }

  private arm(): void {
    if (this.timer || this.trying || this.isEmpty) return;
    const untilFirstEnds = this.waiting[0]!.since + this.room.waitForRoom - this.clock.elapsed();
    this.timer = this.clock.after(this.closed ? 0 : Math.min(this.pause, untilFirstEnds), () => {
      this.timer = undefined;
      this.trying = this.tryAll().finally(() => {
        this.trying = undefined;
        this.arm();
      });
    });
  }

  private async tryAll(): Promise<void> {
    this.pause = Math.min(2 * this.pause, LONGEST_PAUSE_MS);
    let pending: number | undefined;
    for (let most = 1; !this.isEmpty && pending === undefined; most *= 2) pending = await this.try(most);
    if (pending !== undefined) this.refuseLate(pending);
  }

  /** Sends the first ones. Returns how many tasks are pending when there is no room for all of them. */
  private async try(most: number): Promise<number | undefined> {
    const sent = this.first(most);
    try {
      const replies = await this.producer.enqueueBounded(this.queue, sent.requests, this.room.maxPending);
      const left: Waiting[] = [];
      let pending: number | undefined;
      replies.forEach((reply, index) => {
        const one = sent.owners[index]!;
        if (typeof reply === 'object' && 'pending' in reply) {
          left.push(one);
          ({ pending } = reply);
        } else one.resolve(reply);
      });
      if (left.length < sent.owners.length) this.pause = FIRST_PAUSE_MS;
      this.waiting = left.concat(this.waiting.slice(sent.owners.length));
      return pending;
    } catch (error) {
      this.waiting = this.waiting.slice(sent.owners.length);
      for (const one of sent.owners) one.resolve(error as Error);
      return undefined;
    }
  }

  private first(most: number): Requests<Waiting> {
    const chosen = new Requests<Waiting>({ ...CALL_LIMITS, tasks: Math.min(most, CALL_LIMITS.tasks) });
    for (const one of this.waiting) {
      if (chosen.requests.length > 0 && !chosen.hasRoomFor(one.request)) break;
      chosen.add(one.request, one);
    }
    return chosen;
  }

  private refuseLate(pending: number): void {
    const { waitForRoom, maxPending } = this.room;
    const now = this.clock.elapsed();
    const isLate = ({ since }: Waiting): boolean => this.closed || now - since >= waitForRoom;
    const late = this.waiting.filter(isLate);
    this.waiting = this.waiting.filter((one) => !isLate(one));
    for (const one of late) {
      one.resolve(new QueueFullError(this.queue, pending, maxPending, Math.round(now - one.since)));
    }
  }
}

/** What says whether there is such a task already: a lock, or with `once` the id; `undefined` for a task that is like no other. */
function lockOf({ message, repeat, uniqueTtl }: EnqueueRequest & Partial<RepeatRequest>): string | undefined {
  if (repeat) return repeat.lock || message.id;
  return uniqueTtl === undefined ? undefined : message.uniqueKey;
}

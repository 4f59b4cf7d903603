import type { FollowedTask, FollowingRole, FollowListener, FollowSource } from '../broker/following.js';
import type { TaskPlace } from '../broker/task-place.js';
import type { Clock, ClockTimer } from '../clock.js';
import { ClosedError } from '../errors.js';

/** A notice may be lost without a lost connection: everything that is followed is read again that often. */
const SAFETY_MS = 5_000;
/** Without notices a task is read again after these times, each longer than the one before. */
const SHORTEST_POLL_MS = 20;
const LONGEST_POLL_MS = 1_000;
const POLL_GROWTH = 1.5;
/** How long connections for notices stay when nobody follows a task. */
const IDLE_MS = 60_000;
/** How long a task that is likely to be known otherwise by then is not read: a server of this process takes one that nothing is in the way of in less. */
const HEAD_START_MS = 2;

export interface Follower {
  /** The task as it is now, at first and after each change; `undefined`: there is none. May be called without a change. */
  seen(task: FollowedTask | undefined): void;
  /** The last call: the client was closed. */
  closed(error: ClosedError): void;
}

/** A task that somebody follows. */
interface Followed {
  readonly task: TaskPlace;
  readonly followers: Set<Follower>;
  /** A read is under way. */
  asking: boolean;
  /** Another one is to follow it. */
  again: boolean;
  /** Milliseconds until the next read without a notice. */
  delay: number;
  /** The error of the last read. */
  error: unknown;
}

/**
 * Follows tasks until nobody wants to know more of them. Each is heard first and read then, in one step, so that no change
 * falls between; reads of one tick go together. Without notices (refused, or no connection) tasks are read again and again.
 */
export class Followers implements FollowListener {
  private readonly followed = new Map<string, Followed>();
  private readonly due = new Set<Followed>();
  private readonly late = new Set<Followed>();
  private readonly polled = new Set<Followed>();
  private source: FollowSource | undefined;
  private flushing = false;
  private headStart: ClockTimer | undefined;
  private poll: { readonly at: number; readonly timer: ClockTimer } | undefined;
  private safety: ClockTimer | undefined;
  private idle: ClockTimer | undefined;
  private isClosed = false;

  constructor(
    private readonly role: FollowingRole,
    private readonly clock: Clock,
  ) {}

  /**
   * @param late reads the task, and gets notice of its changes, only when it is still followed after a moment
   * @returns ends it
   * @throws ClosedError
   */
  follow(task: TaskPlace, follower: Follower, late = false): () => void {
    if (this.isClosed) throw closedError();
    const key = keyOf(task);
    let followed = this.followed.get(key);
    if (!followed) {
      const fresh = { followers: new Set<Follower>(), asking: false, again: false, delay: SHORTEST_POLL_MS };
      this.followed.set(key, (followed = { task, ...fresh, error: undefined }));
      if (late) this.late.add(followed);
    }
    followed.followers.add(follower);
    if (late && this.late.has(followed)) this.headStart ??= this.clock.after(HEAD_START_MS, () => this.readLate());
    else this.ask(followed);
    this.idle?.cancel();
    this.idle = undefined;
    this.safety ??= this.clock.after(SAFETY_MS, () => this.readAllAgain());
    return () => this.leave(key, followed, follower);
  }

  /** Why the task could not be read last, if it could not. */
  errorOf(task: TaskPlace): unknown {
    return this.followed.get(keyOf(task))?.error;
  }

  onChanged(task: TaskPlace): void {
    const followed = this.followed.get(keyOf(task));
    if (followed) this.ask(followed);
  }

  onLost(): void {
    for (const followed of this.followed.values()) this.ask(followed);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    for (const timer of [this.headStart, this.poll?.timer, this.safety, this.idle]) timer?.cancel();
    const left = [...this.followed.values()];
    this.followed.clear();
    for (const some of [this.due, this.late, this.polled]) some.clear();
    for (const { followers } of left) for (const follower of followers) follower.closed(closedError());
    await this.source?.close();
  }

  private leave(key: string, followed: Followed, follower: Follower): void {
    followed.followers.delete(follower);
    if (followed.followers.size > 0 || this.followed.get(key) !== followed) return;
    this.followed.delete(key);
    for (const some of [this.due, this.late, this.polled]) some.delete(followed);
    this.source?.forget(followed.task);
    if (this.followed.size > 0) return;
    this.safety?.cancel();
    this.safety = undefined;
    this.idle = this.source && this.clock.after(IDLE_MS, () => this.rest());
  }

  /** Nobody has followed a task for a while. */
  private rest(): void {
    const { source } = this;
    this.source = undefined;
    source?.close().catch(() => undefined);
  }

  private readLate(): void {
    this.headStart = undefined;
    for (const followed of this.late) this.ask(followed);
  }

  private readAllAgain(): void {
    for (const followed of this.followed.values()) this.ask(followed);
    this.safety = this.followed.size > 0 ? this.clock.after(SAFETY_MS, () => this.readAllAgain()) : undefined;
  }

  private ask(followed: Followed): void {
    if (followed.asking) {
      followed.again = true;
      return;
    }
    this.late.delete(followed);
    this.polled.delete(followed);
    this.due.add(followed);
    if (this.flushing) return;
    this.flushing = true;
    queueMicrotask(() => {
      this.flushing = false;
      void this.flush();
    });
  }

  private async flush(): Promise<void> {
    const batch = [...this.due];
    this.due.clear();
    if (batch.length === 0 || this.isClosed) return;
    // Who comes while the read is under way may know of later changes than it sees.
    const askedBy = batch.map(({ followers }) => Array.from(followers));
    for (const followed of batch) followed.asking = true;
    const { tasks, heard, error } = await this.read(batch);
    for (const [index, followed] of batch.entries()) {
      followed.asking = false;
      followed.error = error;
      if (heard) followed.delay = SHORTEST_POLL_MS;
      else this.polled.add(followed);
      if (!tasks) continue;
      for (const follower of askedBy[index]!) if (followed.followers.has(follower)) follower.seen(tasks[index]);
    }
    for (const followed of batch) this.continue(followed);
    this.schedulePoll();
  }

  /** Never rejects. */
  private async read(
    batch: readonly Followed[],
  ): Promise<{ tasks?: (FollowedTask | undefined)[]; heard: boolean; error?: unknown }> {
    const tasks = batch.map(({ task }) => task);
    try {
      this.source ??= this.role.follow(this);
      return { tasks: await this.source.arm(tasks), heard: true };
    } catch (unheard) {
      for (const followed of batch) followed.error = unheard; // the next read may take as long as somebody waits
      try {
        return { tasks: await this.role.read(tasks), heard: false };
      } catch (error) {
        return { heard: false, error };
      }
    }
  }

  private continue(followed: Followed): void {
    if (followed.followers.size === 0) {
      this.polled.delete(followed);
      // A read that began before the last one left has armed it again.
      if (!this.followed.has(keyOf(followed.task))) this.source?.forget(followed.task);
    } else if (followed.again) {
      followed.again = false;
      this.ask(followed);
    }
  }

  private schedulePoll(): void {
    let shortest = Infinity;
    for (const { delay } of this.polled) shortest = Math.min(shortest, delay);
    if (shortest === Infinity || this.isClosed) return;
    const at = this.clock.elapsed() + shortest;
    if (this.poll && this.poll.at <= at) return;
    this.poll?.timer.cancel();
    const timer = this.clock.after(shortest, () => {
      this.poll = undefined;
      for (const followed of this.polled) {
        followed.delay = Math.min(followed.delay * POLL_GROWTH, LONGEST_POLL_MS);
        this.ask(followed);
      }
    });
    this.poll = { at, timer };
  }
}

const keyOf = ({ queue, id }: TaskPlace): string => `${queue}\n${id}`;

const closedError = (): ClosedError => new ClosedError('the client was closed while a result was waited for');

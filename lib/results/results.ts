import type { Broker } from '../broker/broker.js';
import type { FollowedTask } from '../broker/following.js';
import type { TaskPlace } from '../broker/task-place.js';
import { type Clock, WaitingClock } from '../clock.js';
import type { AsynqEvents } from '../events/events.js';
import { ResultNotKeptError, ResultTimeoutError, TaskFailedError, TaskNotFoundError } from '../errors.js';
import { decodeResult } from '../task/codec.js';
import { Followers } from './followers.js';
import { LocalEnds } from './local-ends.js';
import type { ResultSettings } from './options.js';

export type ResultsBroker = Pick<Broker, 'following' | 'inspection' | 'clock' | 'manual'>;

/** A task whose result is waited for, and what is known of it. */
export interface AwaitedTask extends TaskPlace {
  /** Whether it is known to have been there: then it has ended when it is gone. */
  readonly known: boolean;
  /** Whether it is kept after a success: then somebody has deleted it when it is gone. */
  readonly kept: boolean;
}

/** Who waits. `resolve` or `reject` is the last call. */
export interface ResultSink {
  /** The task as it is now; also when that is its end. */
  seen?(task: FollowedTask): void;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/** Waits for the results of tasks, whoever runs them. */
export class Results {
  readonly clock: Clock;
  readonly followers: Followers;

  private readonly local: LocalEnds;

  /** @param events those of servers in this process, if there are any */
  constructor(
    private readonly broker: ResultsBroker,
    events?: AsynqEvents,
  ) {
    this.local = new LocalEnds(events);
    this.clock = broker.manual ? new WaitingClock(broker.clock) : broker.clock;
    this.followers = new Followers(broker.following, this.clock);
  }

  /**
   * Resolves to what the handler has returned or written.
   *
   * @param given the timeout for messages, of which a part may be over
   * @throws as the sink of {@link watch} gets
   */
  of(awaited: AwaitedTask, settings: ResultSettings, given = settings.timeout): Promise<unknown> {
    return new Promise((resolve, reject) => void this.watch(awaited, settings, { resolve, reject }, given));
  }

  /**
   * Watches the task until its end.
   *
   * @param sink gets a result, or TaskFailedError, ResultNotKeptError, TaskNotFoundError, ResultTimeoutError, ClosedError, or the reason of
   * the signal
   * @returns ends it, without a word
   */
  watch(
    { queue, id, kept, known: wasKnown }: AwaitedTask,
    { timeout, signal }: ResultSettings,
    sink: ResultSink,
    given = timeout,
  ): () => void {
    const place = { queue, id };
    let known = wasKnown;
    const end = (): void => {
      timer.cancel();
      signal?.removeEventListener('abort', abort);
      forget();
      stop();
    };
    const fail = (error: unknown): void => {
      end();
      sink.reject(error);
    };
    const succeed = (result: unknown): void => {
      end();
      sink.resolve(result);
    };
    const abort = (): void => fail(signal!.reason);
    const seen = (task: FollowedTask | undefined): void => {
      if (!task) return fail(known && !kept ? new ResultNotKeptError(place) : new TaskNotFoundError(queue, id));
      known = true;
      sink.seen?.(task);
      if (task.state === 'completed') {
        this.local.missed(queue);
        succeed(decodeResult(task.result));
      } else if (task.state === 'archived') {
        end();
        void this.failureOf(place).then((error) => sink.reject(error));
      }
    };
    const timeOut = (): void => fail(new ResultTimeoutError(place, given, { cause: this.followers.errorOf(place) }));
    // One that is to see all of the task reads it.
    const late = sink.seen === undefined && this.local.isNear(queue);
    const stop = this.followers.follow(place, { seen, closed: fail }, late);
    const forget = sink.seen ? () => undefined : this.local.wait(place, succeed);
    const timer = this.clock.after(timeout, timeOut);
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
    return end;
  }

  /** Never rejects. */
  private async failureOf(place: TaskPlace): Promise<Error> {
    try {
      const found = await this.broker.inspection.getTask(place.queue, place.id);
      return found ? new TaskFailedError(place, found.message.errorMsg) : new TaskNotFoundError(place.queue, place.id);
    } catch (error) {
      return new TaskFailedError(place, `why is not known: ${(error as Error).message}`, { cause: error });
    }
  }

  /** Rejects all who wait. */
  close(): Promise<void> {
    return this.followers.close();
  }
}

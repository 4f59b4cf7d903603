import type { Clock } from '../clock.js';
import { ThreadDiedError } from '../errors.js';
import type { AsynqEvents } from '../events/events.js';
import type { TaskContext } from '../task/context.js';
import type { ThreadSetting } from './messages.js';
import type { ResolvedThreadOptions } from './options.js';
import { Thread } from './thread.js';

export interface ThreadPoolDeps {
  readonly options: ResolvedThreadOptions;
  readonly handlers: Pick<ThreadSetting, 'invalidPayload' | 'globalEnhancers'>;
  readonly clock: Clock;
  readonly events: AsynqEvents;
}

/** A task that waits for a thread. */
interface Waiting {
  readonly start: (thread: Thread) => void;
  readonly fail: (error: unknown) => void;
}

/** Runs tasks in threads, which start when they are needed and stay. */
export class ThreadPool {
  private readonly threads = new Set<Thread>();
  private readonly idle: Thread[] = [];
  private readonly waiting = new Set<Waiting>();
  private starting = 0;
  private closed = false;

  constructor(private readonly deps: ThreadPoolDeps) {}

  get size(): number {
    return this.deps.options.count;
  }

  /** Resolves to the bytes of the result. Rejects, at the latest `grace` after the signal of the task has fired. */
  async run(pattern: string, task: TaskContext): Promise<Buffer | undefined> {
    const { signal } = task;
    const thread = await this.take(signal);
    const stop = this.stopWith(thread, signal);
    try {
      return await thread.run(pattern, task);
    } finally {
      stop();
    }
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const { fail } of this.waiting) fail(new ThreadDiedError('the application has ended'));
    await Promise.all([...this.threads].map((thread) => thread.close()));
  }

  private take(signal: AbortSignal): Promise<Thread> {
    const free = this.idle.pop();
    if (free) return Promise.resolve(free);
    return new Promise((resolve, reject) => {
      if (this.closed) throw new ThreadDiedError('the application has ended');
      const end = (): void => {
        this.waiting.delete(waiting);
        signal.removeEventListener('abort', onAbort);
      };
      const waiting: Waiting = {
        start: (thread) => (end(), resolve(thread)),
        fail: (error) => (end(), reject(error as Error)),
      };
      const onAbort = (): void => waiting.fail(signal.reason);
      this.waiting.add(waiting);
      signal.addEventListener('abort', onAbort);
      if (signal.aborted) onAbort();
      else this.grow();
    });
  }

  /** Starts a thread for a task that waits for none yet. */
  private grow(): void {
    if (this.closed || this.threads.size >= this.size || this.starting >= this.waiting.size) return;
    const { options, handlers, clock } = this.deps;
    const { module, export: name, resourceLimits } = options;
    let isReady = false;
    this.starting += 1;
    const thread = new Thread({
      clock,
      resourceLimits,
      setting: { module, export: name, ...handlers },
      onIdle: (ready) => {
        if (!isReady) this.starting -= 1;
        isReady = true;
        this.give(ready);
      },
      onEnd: (gone, error) => {
        if (!isReady) this.starting -= 1;
        this.ended(gone, error, isReady);
      },
    });
    this.threads.add(thread);
  }

  private give(thread: Thread): void {
    const [next] = this.waiting;
    if (next) next.start(thread);
    else this.idle.push(thread);
  }

  /** One that could not start takes the task with it that waits longest, so that it is not started again without end. */
  private ended(thread: Thread, error: ThreadDiedError | undefined, wasReady: boolean): void {
    this.threads.delete(thread);
    const at = this.idle.indexOf(thread);
    if (at >= 0) this.idle.splice(at, 1);
    if (this.closed) return;
    if (error) this.deps.events.emit('threadDied', { reason: error.message });
    const [first] = this.waiting;
    if (!wasReady && error) first?.fail(error);
    this.grow();
  }

  /** Forwards the signal, and ends a thread whose handler goes on. */
  private stopWith(thread: Thread, signal: AbortSignal): () => void {
    const { clock, options, events } = this.deps;
    let cancel = (): void => undefined;
    const onAbort = (): void => {
      thread.abort(signal.reason);
      const timer = clock.after(options.grace, () => {
        thread.terminate(signal.reason);
        events.emit('threadDied', {
          reason: `it was ended, as its handler went on after its signal (${options.grace} ms)`,
        });
      });
      cancel = () => timer.cancel();
    };
    if (signal.aborted) queueMicrotask(onAbort);
    else signal.addEventListener('abort', onAbort);
    return () => {
      signal.removeEventListener('abort', onAbort);
      cancel();
    };
  }
}

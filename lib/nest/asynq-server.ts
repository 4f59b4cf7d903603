import type { AsynqEvents } from '../events/events.js';
import { parseDuration, type Duration } from '../duration.js';
import type { QueueOptions } from '../server/fetching/queue-options.js';
import type { Server } from '../server/server.js';
import type { ServerStatus } from '../server/server-status.js';

/**
 * The handle on the server of a connection: starts it by hand (`autoStart: false`) and changes it at run time. With
 * `server: false` everything but `events` throws ServerStateError.
 */
export class AsynqServer {
  /**
   * @param server makes the server at the first call, when the handlers are known
   * @param manual the broker is driven by hand
   */
  constructor(
    private readonly server: () => Server,
    /** What happens to tasks and to the server, after it has happened. */
    readonly events: AsynqEvents,
    private readonly manual: boolean,
  ) {}

  get status(): ServerStatus {
    return this.server().status;
  }

  /** Handlers that have not settled. */
  get active(): number {
    return this.server().active;
  }

  /**
   * Needed only with `autoStart: false`. Does nothing on an InMemoryBroker, where tasks run when the test says so.
   *
   * @throws ServerStateError when it runs, has ended, or has no handlers
   */
  async start(): Promise<void> {
    const server = this.server();
    if (!this.manual) await server.start();
  }

  /**
   * For rolling deployments: takes no tasks any more, for good, and answers when nothing runs here; `false` when `timeout` passed before.
   * Nothing is interrupted, and the application goes on; its shutdown is quick after this. Idempotent.
   */
  async drain({ timeout }: { timeout?: Duration } = {}): Promise<boolean> {
    const milliseconds = timeout === undefined ? Infinity : parseDuration(timeout, 'timeout');
    return this.server().drain(milliseconds);
  }

  /** Takes no new tasks until `resumeFetching`; what runs goes on. */
  pauseFetching(): void {
    this.server().pauseFetching();
  }

  resumeFetching(): void {
    this.server().resumeFetching();
  }

  /** Serves one more queue, or changes the options of one; a number is a priority. @throws InvalidOptionError */
  addQueue(name: string, options?: number | QueueOptions): void {
    this.server().addQueue(name, options);
  }

  /** Stops serving a queue; its running tasks end normally. @throws InvalidOptionError when it is not served */
  removeQueue(name: string): void {
    this.server().removeQueue(name);
  }

  /** Changes how many handlers run at the same time; running ones are never interrupted. @throws InvalidOptionError */
  setConcurrency(concurrency: number): void {
    this.server().setConcurrency(concurrency);
  }
}

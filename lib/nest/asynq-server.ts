import type { AsynqEvents } from '../events/events.js';
import { parseDuration, type Duration } from '../duration.js';
import type { QueueOptions, Server, ServerStatus } from '../server/index.js';

/**
 * The server of a connection, as applications see it: starts it (`autoStart: false`) and changes it at run time. With
 * `server: false` everything but `events` throws ServerStateError.
 */
export class AsynqServer {
  /**
   * @param server creates the server at the first call, when the handlers are known
   * @param manual whether a test drives the broker
   */
  constructor(
    private readonly server: () => Server,
    /** The events of tasks and of the server, emitted after they happened. */
    readonly events: AsynqEvents,
    private readonly manual: boolean,
  ) {}

  get status(): ServerStatus {
    return this.server().status;
  }

  /** How many handlers have not settled. */
  get active(): number {
    return this.server().active;
  }

  /**
   * Needed only with `autoStart: false`. Does nothing on an InMemoryBroker, where the test decides when tasks run.
   *
   * @throws ServerStateError when it runs, has ended, or has no handlers
   */
  async start(): Promise<void> {
    const server = this.server();
    if (!this.manual) await server.start();
  }

  /**
   * For rolling deployments: stops claiming tasks for good, and resolves when no task runs here; with `false` if `timeout` passes
   * first. Nothing is interrupted, and the application goes on; its shutdown is quick afterwards. Idempotent.
   */
  async drain({ timeout }: { timeout?: Duration } = {}): Promise<boolean> {
    const milliseconds = timeout === undefined ? Infinity : parseDuration(timeout, 'timeout');
    return this.server().drain(milliseconds);
  }

  /** Claims no new tasks until `resumeFetching`; running ones go on. */
  pauseFetching(): void {
    this.server().pauseFetching();
  }

  resumeFetching(): void {
    this.server().resumeFetching();
  }

  /** Serves another queue, or changes the options of one; a number is its priority. @throws InvalidOptionError */
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

import { TestingError } from '../errors.js';
import type { Connection } from '../nest/connection/connection.registry.js';
import type { EventListeners } from '../nest/lifecycle/event.listeners.js';
import type { ByHand } from '../server/index.js';
import { HandlerWatch } from './handler-watch.js';
import { RunSummary } from './run-summary.js';
import { runsOn } from './testing.messages.js';

/**
 * One `drain` or `advance`: runs passes of a server that is not started, and collects the results.
 */
export class TestRun {
  readonly summary = new RunSummary();
  private readonly watch: HandlerWatch;
  private readonly ends: readonly (() => void)[];

  constructor(
    private readonly connection: Connection,
    private readonly server: ByHand,
    private readonly listeners: EventListeners,
    private readonly limit: number,
    patience: number,
  ) {
    const { events } = connection;
    this.watch = new HandlerWatch(server, patience);
    this.ends = [
      events.on('taskFinished', (outcome) => this.summary.add([outcome])),
      events.on('groupAggregated', (event) => this.summary.addAggregation(event)),
      events.on('aggregationFailed', (event) => this.summary.addAggregation(event)),
    ];
  }

  /**
   * Runs what can run now, until nothing is left or every running handler waits for its time-out.
   *
   * @throws TestingError
   */
  async now(): Promise<void> {
    for (let progress = true; ;) {
      const before = this.summary.total;
      if (progress) await this.server.findRoom();
      const claimed = await this.server.takeOnce();
      await this.watch.settle(() => this.server.takeOnce());
      // What listeners enqueue belongs to the run.
      const listened = await this.listeners.settle(this.connection);
      const { total, outcomes } = this.summary;
      if (total > this.limit) throw new TestingError(runsOn(this.limit, outcomes.at(-1)!.task.type));
      progress = total !== before || listened;
      // A pass may claim tasks, and only put them into waitlists.
      if (!progress && claimed === 0) return;
    }
  }

  /**
   * The same, and waits for every handler.
   *
   * @throws TestingError when one waits for a time-out that does not come
   */
  async toTheEnd(): Promise<void> {
    for (let before = -1; before !== this.summary.total;) {
      await this.now();
      before = this.summary.total;
      await this.watch.outlast(this.server.whenQuiet());
    }
  }

  /** The earliest time-out that a handler waits for, in milliseconds since the epoch. */
  nextDeadline(): number | undefined {
    return this.watch.nextDeadline();
  }

  /** Stops collecting. */
  end(): void {
    for (const end of this.ends) end();
  }
}

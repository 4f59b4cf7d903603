import { settleAll } from '../../async.js';
import type { Broker } from '../../broker/broker.js';
import type { Clock } from '../../clock.js';

/** Who serves a queue is read this often, in milliseconds. */
const LOOK_MS = 5_000;
/** Between two passes while others take tasks, and while there are none to take. */
const BUSY_MS = 100;
const IDLE_MS = 1_000;
/** How many tasks have their turn before they are taken: the least, and the most while they are taken faster than that. */
const LEAST = 32;
const MOST = 512;

export interface TurnFillerOptions {
  readonly broker: Pick<Broker, 'fairQueues' | 'maintenance' | 'obstacles'>;
  readonly clock: Clock;
}

/**
 * Servers that know no lines, such as Go's, take what is in `pending`. For them some tasks of each fair queue that they serve are put
 * there in fair order; in others this does nothing.
 */
export class TurnFiller {
  private lookedAt = -Infinity;
  /** How many tasks of each queue that others serve have their turn before they are taken. */
  private reserves = new Map<string, number>();

  constructor(private readonly options: TurnFillerOptions) {}

  async runOnce(): Promise<number> {
    const { fairQueues, maintenance } = this.options.broker;
    const queues = fairQueues.all();
    if (queues.length === 0) return LOOK_MS;
    await this.look(queues);
    if (this.reserves.size === 0) return LOOK_MS;
    let delay = IDLE_MS;
    await settleAll(
      [...this.reserves].map(async ([queue, reserve]) => {
        const { before, filled } = await maintenance.fillTurns(queue, reserve);
        if (filled > 0) delay = BUSY_MS;
        if (before === 0 && filled === reserve) this.reserves.set(queue, Math.min(MOST, 2 * reserve));
        else if (before > reserve / 2) this.reserves.set(queue, Math.max(LEAST, Math.floor(reserve / 2)));
      }),
    );
    return delay;
  }

  private async look(queues: readonly string[]): Promise<void> {
    const { broker, clock } = this.options;
    const now = clock.now();
    if (Math.abs(now - this.lookedAt) < LOOK_MS) return;
    const others = (await broker.obstacles.observeServers()).filter(({ profile }) => profile === undefined);
    this.lookedAt = now;
    const served = queues.filter((queue) => others.some(({ info }) => queue in info.queues));
    this.reserves = new Map(served.map((queue) => [queue, this.reserves.get(queue) ?? LEAST]));
  }
}

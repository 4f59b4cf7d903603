import type { Broker } from '../../broker/broker.js';
import type { ObservedServer } from '../../broker/obstacles.js';
import type { AsynqEvents } from '../../events/events.js';
import type { Mux } from '../attempt/mux.js';
import type { QueueRegistry } from '../fetching/queue-registry.js';

/** Servers that start together have published themselves by then. */
export const FLEET_CHECK_DELAY_MS = 5_000;

export interface FleetCheckOptions {
  readonly broker: Pick<Broker, 'obstacles'>;
  readonly events: AsynqEvents;
  readonly queues: QueueRegistry;
  readonly mux: Mux;
  readonly serverId: string;
}

/** Looks once whether a server of another application takes tasks of the same queues. */
export class FleetCheck {
  constructor(private readonly options: FleetCheckOptions) {}

  async runOnce(): Promise<number> {
    const { broker, events, mux, serverId } = this.options;
    const ours = Array.from(mux.entries(), ({ pattern }) => pattern);
    if (ours.length === 0) return Infinity;
    const servers = (await broker.obstacles.observeServers()).filter(({ info }) => info.serverId !== serverId);
    for (const { info, profile } of servers) {
      const queue = this.sharedQueue(info);
      const theirs = profile?.handlers.map(({ pattern }) => pattern) ?? [];
      if (queue === undefined || theirs.length === 0 || overlap(ours, theirs)) continue;
      events.emit('queueShared', { queue, host: info.host, pid: info.pid, theirs, ours });
      break;
    }
    return Infinity;
  }

  private sharedQueue({ queues, status }: ObservedServer['info']): string | undefined {
    return status === 'active' ? this.options.queues.names().find((name) => name in queues) : undefined;
  }
}

/** Whether a type may have a handler on both sides, as in two versions of one application. */
const overlap = (ours: readonly string[], theirs: readonly string[]): boolean =>
  ours.some((one) => theirs.some((other) => one.startsWith(other) || other.startsWith(one)));

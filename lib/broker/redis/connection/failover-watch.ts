import type { Redis } from 'ioredis';
import type { Clock } from '../../../clock.js';
import { disconnect } from './persistent-connection.js';

/** What sentinels publish: `<name> <old host> <old port> <new host> <new port>`. */
const CHANNEL = '+switch-master';

/** The new master, named by the sentinels. */
export interface MasterAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Subscribes to failovers at the sentinels. A healthy master that is replaced (SENTINEL FAILOVER,
 * or cut off from the sentinels only) becomes a replica up to ten seconds later. What it accepts
 * until then is lost, so we cannot wait until it closes its connections. Each sentinel reports at
 * its own time: a client that an outdated sentinel sent back to the old master is moved again by
 * the next report.
 *
 * ioredis' `failoverDetector` connects every client to every sentinel, leaves the master at a
 * failover of any group, and ignores the promise of its resubscription, which would be an unhandled
 * rejection when a sentinel goes away.
 */
export class FailoverWatch {
  private readonly sentinels: readonly Redis[];

  /** @param open makes a client per sentinel, not connected, that always reconnects */
  constructor(
    open: () => readonly Redis[],
    name: string,
    private readonly clock: Clock,
    onSwitch: (master: MasterAddress) => void,
  ) {
    this.sentinels = open();
    for (const sentinel of this.sentinels) {
      sentinel.on('error', () => undefined); // it reconnects, and the other sentinels report too
      sentinel.on('ready', () => void sentinel.subscribe(CHANNEL).catch(() => undefined));
      sentinel.on('message', (_channel: string, text: string) => {
        const [group, , , host, port] = text.split(' ');
        if (group === name && host !== undefined) onSwitch({ host, port: Number(port) });
      });
      sentinel.connect().catch(() => undefined);
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.sentinels.map((sentinel) => disconnect(sentinel, this.clock)));
  }
}

/** Whether the client is connected to this address. Behind address translation this is unknown. */
export function isConnectedTo(client: Redis, { host, port }: MasterAddress): boolean {
  const { stream } = client as { stream?: { remoteAddress?: string; remotePort?: number } };
  return stream?.remoteAddress === host && stream.remotePort === port;
}

import type { Redis } from 'ioredis';
import type { Clock } from '../../../clock.js';
import { disconnect } from './persistent-connection.js';

/** What sentinels publish: `<name> <old host> <old port> <new host> <new port>`. */
const CHANNEL = '+switch-master';

/** The new master, as the sentinels name it. */
export interface MasterAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Hears of failovers from the sentinels. A master that is well when another takes its place (SENTINEL FAILOVER, or one that was cut off
 * from the sentinels alone) is made a replica up to ten seconds later; what it accepts until then is lost, so nobody may wait for it
 * to close the connections. Each sentinel tells when it knows: who was sent back to the old master by one that did not is told again.
 *
 * ioredis has a `failoverDetector` for this. It connects every client to every sentinel, leaves the master at a failover of any group, and
 * subscribes anew without looking at the promise: a sentinel that goes away just then would be an unhandled rejection of the process.
 */
export class FailoverWatch {
  private readonly sentinels: readonly Redis[];

  /** @param open makes a client of each sentinel, not connected, that renews its connection for ever */
  constructor(
    open: () => readonly Redis[],
    name: string,
    private readonly clock: Clock,
    onSwitch: (master: MasterAddress) => void,
  ) {
    this.sentinels = open();
    for (const sentinel of this.sentinels) {
      sentinel.on('error', () => undefined); // it is tried again, and the others tell, too
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

/** Whether the client is connected to this very address; behind a translation of addresses that is never known. */
export function isConnectedTo(client: Redis, { host, port }: MasterAddress): boolean {
  const { stream } = client as { stream?: { remoteAddress?: string; remotePort?: number } };
  return stream?.remoteAddress === host && stream.remotePort === port;
}

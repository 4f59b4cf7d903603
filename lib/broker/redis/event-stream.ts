import type { Clock } from '../../clock.js';
import type { Keyspace } from '../../wire/keys.js';
import { EVENT_STREAM_SECONDS, type EventStreamBroker, type StreamedEntry } from '../event-stream.js';
import type { RedisConnections } from './connections.js';
import type { Scripts } from './scripts.js';

/** Entries that one run of the script appends: bounds the time it holds Redis. */
const BATCH = 500;

/** Over the connection `monitor`. */
export class RedisEventStream implements EventStreamBroker {
  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
  ) {}

  async appendEvents(entries: readonly Buffer[], most: number): Promise<void> {
    const { eventStream } = this.keyspace;
    for (let first = 0; first < entries.length; first += BATCH) {
      const now = String(Math.floor(this.clock.now()));
      const argv = [now, String(most), String(EVENT_STREAM_SECONDS), ...entries.slice(first, first + BATCH)];
      await this.scripts.run('monitor', 'appendEvents', [eventStream], argv);
    }
  }

  async readEvents(after: string, limit: number): Promise<StreamedEntry[]> {
    const { eventStream } = this.keyspace;
    const entries = await this.connections.run('monitor', 'XRANGE', (client) =>
      client.xrangeBuffer(eventStream, `(${after}`, '+', 'COUNT', limit),
    );
    return entries.map(([id, fields]) => ({ id: id.toString(), data: fields[1]! }));
  }

  async lastEventId(): Promise<string> {
    const { eventStream } = this.keyspace;
    const [newest] = await this.connections.run('monitor', 'XREVRANGE', (client) =>
      client.xrevrange(eventStream, '+', '-', 'COUNT', 1),
    );
    return newest?.[0] ?? '0-0';
  }
}

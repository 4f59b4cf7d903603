import type { Keyspace } from '../../wire/keys.js';
import type { Clock } from '../../clock.js';
import { type AppendOptions, type EventsRole, STREAM_SECONDS, type StreamedEntry, type StreamName } from '../events.js';
import type { RedisConnections } from './connection/connections.js';
import type { Scripts } from './scripts/scripts.js';

/** Entries per script: bounds the time it blocks Redis. */
const APPEND_BATCH_SIZE = 500;

type RawEntry = readonly [id: Buffer, fields: Buffer[]];

/** Over the connection `monitor`. */
export class RedisEvents implements EventsRole {
  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
  ) {}

  async appendEvents(
    stream: StreamName,
    entries: readonly Buffer[],
    { most, replaces = '' }: AppendOptions,
  ): Promise<string | undefined> {
    let last: unknown;
    for (let first = 0; first < entries.length; first += APPEND_BATCH_SIZE) {
      const now = String(Math.floor(this.clock.now()));
      const argv = [now, String(most), String(STREAM_SECONDS[stream]), replaces];
      const some = entries.slice(first, first + APPEND_BATCH_SIZE);
      last = await this.scripts.run('monitor', 'appendEvents', [this.keyOf(stream)], [...argv, ...some]);
    }
    return last === undefined ? undefined : String(last);
  }

  async readEvents(stream: StreamName, after: string, limit: number): Promise<StreamedEntry[]> {
    const entries = await this.connections.run('monitor', 'XRANGE', (client) =>
      client.xrangeBuffer(this.keyOf(stream), `(${after}`, '+', 'COUNT', limit),
    );
    return entries.map(toEntry);
  }

  async readEventsBack(stream: StreamName, before: string | undefined, limit: number): Promise<StreamedEntry[]> {
    const end = before === undefined ? '+' : `(${before}`;
    const entries = await this.connections.run('monitor', 'XREVRANGE', (client) =>
      client.xrevrangeBuffer(this.keyOf(stream), end, '-', 'COUNT', limit),
    );
    return entries.map(toEntry);
  }

  async lastEventId(stream: StreamName): Promise<string> {
    const [newest] = await this.readEventsBack(stream, undefined, 1);
    return newest?.id ?? '0-0';
  }

  private keyOf(stream: StreamName): string {
    return stream === 'audit' ? this.keyspace.auditStream : this.keyspace.eventStream;
  }
}

const toEntry = ([id, fields]: RawEntry): StreamedEntry => ({ id: id.toString(), data: fields[1]! });

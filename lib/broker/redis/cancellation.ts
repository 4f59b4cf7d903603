import type { Keyspace } from '../../wire/keys.js';
import type { Clock } from '../../clock.js';
import {
  type ActedCancellation,
  CANCELLATION_SECONDS,
  CANCEL_OUTCOMES,
  type Cancellation,
  type CancellationRole,
  MAX_CANCELLATIONS,
  type RecordedCancellation,
} from '../cancellation.js';
import type { RedisConnections } from './connection/connections.js';
import type { Scripts } from './scripts/scripts.js';
import { subscribe } from './connection/subscription.js';

/** Cancellations and asynq's channel for them, over the connection `monitor`. */
export class RedisCancellation implements CancellationRole {
  private readonly keys: readonly [at: string, details: string];

  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
  ) {
    this.keys = [keyspace.cancellations, keyspace.cancellationDetails];
  }

  async recordCancellation(cancellation: Cancellation): Promise<void> {
    const { id, at, outcome, reason } = cancellation;
    // A lone surrogate would become an escape that Lua's JSON cannot read.
    const details = { id: wellFormed(id), at, outcome, reason: reason === undefined ? undefined : wellFormed(reason) };
    const limits = [this.oldest(), String(MAX_CANCELLATIONS), String(CANCELLATION_SECONDS)];
    const argv = [id, String(at), JSON.stringify(details), ...limits];
    await this.scripts.run('monitor', 'recordCancellation', this.keys, argv);
  }

  async findCancellations(ids: readonly string[]): Promise<RecordedCancellation[]> {
    const [recorded] = this.keys;
    if ((await this.connections.run('monitor', 'EXISTS', (client) => client.exists(recorded))) === 0) return [];
    const found = await this.scripts.run('monitor', 'findCancellations', this.keys, [this.oldest(), ...ids]);
    return (found as Buffer[]).flatMap((details) => read(details.toString()) ?? []);
  }

  async noteCancelled(acted: readonly ActedCancellation[]): Promise<void> {
    const argv = acted.flatMap(({ id, at, queue }) => [id, String(at), queue]);
    await this.scripts.run('monitor', 'noteCancelled', this.keys, argv);
  }

  async publishCancellation(id: string): Promise<void> {
    await this.connections.run('monitor', 'PUBLISH', (client) => client.publish(this.keyspace.cancel, id));
  }

  subscribeCancellations(onCancel: (id: string) => void): Promise<() => Promise<void>> {
    return subscribe(this.connections, this.keyspace.cancel, onCancel);
  }

  /** Earlier records no longer count. */
  private oldest(): string {
    return String(this.clock.now() - CANCELLATION_SECONDS * 1000);
  }
}

const wellFormed = (text: string): string => Buffer.from(text).toString();

/** `undefined` for a record that is not ours. */
function read(text: string): RecordedCancellation | undefined {
  try {
    const { id, at, outcome, reason, acted = [] } = JSON.parse(text) as Record<string, unknown>;
    const known = CANCEL_OUTCOMES.find((name) => name === outcome);
    if (typeof id !== 'string' || typeof at !== 'number' || !known || !Array.isArray(acted)) return undefined;
    return {
      id,
      at,
      outcome: known,
      reason: typeof reason === 'string' ? reason : undefined,
      acted: acted.map(String),
    };
  } catch {
    return undefined;
  }
}

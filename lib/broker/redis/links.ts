import { type Clock, floorSeconds } from '../../clock.js';
import type { Keyspace } from '../../wire/keys.js';
import type { EnqueueStatus } from '../broker.js';
import type { Caused, LinkedRequest, LinksRole, Parcel } from '../links.js';
import { persist } from './producer.js';
import type { RedisConnections } from './connection/connections.js';
import { QueueRegistrar } from './queue-registrar.js';
import { nanoseconds } from './scripts/arguments.js';
import { encodeLinkedRequests } from './scripts/linked-requests.js';
import { readParcels } from './scripts/parcels.js';
import { queueKeys } from './scripts/queue-keys.js';
import type { Argument } from './scripts/script-command.js';
import type { Scripts } from './scripts/scripts.js';

const STATUS: readonly EnqueueStatus[] = ['enqueued', 'duplicate', 'conflict'];

/** Links between tasks: enqueues over `produce`, all else over `monitor`. */
export class RedisLinks implements LinksRole {
  private readonly registrar: QueueRegistrar;

  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
    /** Lists a queue, as RedisProducer.register. */
    private readonly list: (queue: string) => Promise<void> | undefined,
  ) {
    const add = (place: string) => connections.run('produce', 'SADD', (client) => client.sadd(keyspace.linked, place));
    this.registrar = new QueueRegistrar(clock, (place) => persist(() => add(place)));
  }

  /** Lists the place for the keepers, when that is due. Await a returned promise before the first write. */
  register(place: string): Promise<void> | undefined {
    return this.registrar.register(place);
  }

  async enqueue(
    queue: string,
    requests: readonly LinkedRequest[],
  ): Promise<Caused & { readonly statuses: readonly EnqueueStatus[] }> {
    if (requests.length === 0) return { statuses: [], parcels: [] };
    encodeLinkedRequests(requests, false); // throws before anything is written
    await Promise.all([this.list(queue), this.register(queue)]);
    const first = this.arguments(queue);
    const [statuses, parcels] = await persist(async (attempt) => {
      const argv = first.concat(encodeLinkedRequests(requests, attempt > 1));
      const keys = queueKeys('enqueueLinked', this.keyspace.queue(queue));
      return (await this.scripts.run('produce', 'enqueueLinked', keys, argv)) as [number[], Buffer];
    });
    return { statuses: statuses.map((status) => STATUS[status]!), parcels: readParcels(queue, parcels) };
  }

  watch(): never {
    throw new Error('not built yet');
  }

  async deliver(place: string, parcels: readonly Parcel[]): Promise<Caused> {
    const registered = this.register(place);
    if (registered) await registered;
    const argv = this.arguments(place).concat(parcels.flatMap(({ body, data }) => [body, data]));
    const keys = queueKeys('deliver', this.keyspace.queue(place));
    return { parcels: readParcels(place, (await this.scripts.run('monitor', 'deliver', keys, argv)) as Buffer) };
  }

  async acknowledge(place: string, parcels: readonly Parcel[]): Promise<void> {
    const argv = parcels.flatMap(({ key, body }) => [key, body]);
    await this.scripts.run('monitor', 'acknowledge', [this.keyspace.queue(place).outbox], argv);
  }

  check(): never {
    throw new Error('not built yet');
  }
  waitOf(): never {
    throw new Error('not built yet');
  }

  places(): Promise<string[]> {
    return this.connections.run('monitor', 'SMEMBERS', (client) => client.smembers(this.keyspace.linked));
  }

  lease(): never {
    throw new Error('not built yet');
  }
  keep(): never {
    throw new Error('not built yet');
  }

  /** The arguments that every script of links begins with. */
  private arguments(place: string): Argument[] {
    const now = this.clock.now();
    return [this.keyspace.queue(place).taskPrefix, String(floorSeconds(now)), nanoseconds(now)];
  }
}

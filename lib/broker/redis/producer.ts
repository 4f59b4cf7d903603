import { setTimeout as wait } from 'node:timers/promises';
import { type Clock, floorSeconds } from '../../clock.js';
import type { Keyspace } from '../../wire/keys.js';
import type { EnqueueRequest, EnqueueStatus, ProducerRole } from '../broker.js';
import type { Acknowledge } from '../../task/acknowledge.js';
import type { FairQueues } from '../fair-queues.js';
import type { BoundedStatus } from '../enqueue-request.js';
import type { AcknowledgedReply } from '../producer.js';
import { Acknowledgements, type Copies, isEnough } from './acknowledgement.js';
import { QueueRegistrar } from './queue-registrar.js';
import { nanoseconds } from './scripts/arguments.js';
import { wasSent } from './connection/broker-error.js';
import { reconnectDelay } from './connection/client-settings.js';
import type { RedisConnections } from './connection/connections.js';
import { type EncodedRequests, encodeRequests } from './scripts/requests.js';
import type { Argument } from './scripts/script-command.js';
import { type ScriptName, SCRIPTS } from './scripts/script-registry.js';
import type { Scripts } from './scripts/scripts.js';

/** How long a call without a reply is sent again, in milliseconds: a failover takes seconds. */
const PERSIST_FOR = 5_000;

const LONGEST_PAUSE = 500;

const RESENT = SCRIPTS.enqueue.argv.indexOf('resent');

/** The numbers that enqueue.lua returns. */
const STATUS: Readonly<Record<number, EnqueueStatus>> = { 1: 'duplicate', 2: 'conflict' };

/** @param refused index and status of each task that was not created, as enqueue.lua returns them */
export function statusesOf(count: number, refused: readonly number[]): EnqueueStatus[] {
  const statuses = new Array<EnqueueStatus>(count).fill('enqueued');
  for (let i = 1; i < refused.length; i += 2) statuses[refused[i - 1]! - 1] = STATUS[refused[i]!]!;
  return statuses;
}

/** @param reply as enqueue-bounded.lua returns it */
function boundedStatuses(count: number, reply: readonly number[]): BoundedStatus[] {
  const pending = reply.at(-1)!;
  return (statusesOf(count, reply) as (EnqueueStatus | undefined)[]).map((status) => status ?? { pending });
}

/** Enqueues over the connection `produce`, or `acknowledge`. */
export class RedisProducer implements ProducerRole {
  private readonly registrar: QueueRegistrar;
  readonly acknowledgements: Acknowledgements;

  constructor(
    connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
    private readonly fairQueues: FairQueues,
  ) {
    const list = (queue: string) => connections.run('produce', 'SADD', (client) => client.sadd(keyspace.queues, queue));
    this.acknowledgements = new Acknowledgements(connections);
    this.registrar = new QueueRegistrar(connections, clock, (queue) => persist(() => list(queue)));
  }

  async enqueue(queue: string, requests: readonly EnqueueRequest[]): Promise<EnqueueStatus[]> {
    if (requests.length === 0) return [];
    const isFair = this.fairQueues.has(queue);
    const encoded = encodeRequests(this.keyspace.queue(queue), requests, isFair);
    const registered = this.register(queue);
    if (registered) await registered;
    return statusesOf(requests.length, await this.create(encoded, requests));
  }

  async enqueueBounded(
    queue: string,
    requests: readonly EnqueueRequest[],
    maxPending: number,
  ): Promise<BoundedStatus[]> {
    if (requests.length === 0) return [];
    const encoded = encodeRequests(this.keyspace.queue(queue), requests);
    await this.register(queue);
    return boundedStatuses(requests.length, await this.create(encoded, requests, maxPending));
  }

  async enqueueAcknowledged(
    queue: string,
    requests: readonly EnqueueRequest[],
    acknowledge: Acknowledge,
    maxPending?: number,
  ): Promise<AcknowledgedReply> {
    const keys = this.keyspace.queue(queue);
    const encoded = encodeRequests(keys, requests);
    if (acknowledge.disk) await this.acknowledgements.requireDisk(queue, keys.pending);
    await this.register(queue);
    let copies: Copies = { replicas: 0, disk: false };
    const reply = await this.create(encoded, requests, maxPending, async (script, all) => {
      const [created, found] = await this.acknowledgements.run(script, encoded.keys, all, acknowledge);
      copies = found;
      return created;
    });
    const statuses =
      maxPending === undefined ? statusesOf(requests.length, reply) : boundedStatuses(requests.length, reply);
    return { statuses, ...copies, isEnough: isEnough(copies, acknowledge) };
  }

  /** Lists the queue when that is due. Await a returned promise before enqueuing. */
  register(queue: string): Promise<void> | undefined {
    return this.registrar.register(queue);
  }

  /** The queue was deleted: the next enqueue lists it again. */
  forget(queue: string): void {
    this.registrar.forget(queue);
  }

  /** @param run default: over `produce`, without waiting for replicas */
  private create(
    { keys, taskPrefix, routes, rest, script: own }: EncodedRequests,
    requests: readonly EnqueueRequest[],
    maxPending?: number,
    run: (script: ScriptName, argv: readonly Argument[]) => Promise<unknown> = (script, argv) =>
      this.scripts.run('produce', script, keys, argv),
  ): Promise<readonly number[]> {
    const now = this.clock.now();
    const argv: Argument[] = [taskPrefix, String(floorSeconds(now)), nanoseconds(now), '0', routes];
    const all = argv.concat(rest);
    const script = maxPending === undefined ? (own ?? 'enqueue') : 'enqueueBounded';
    if (maxPending !== undefined) all.push(String(maxPending));
    return persist((attempt) => {
      if (attempt > 1) all[RESENT] = requests.map(({ madeId }) => (madeId ? 'i' : 'm')).join('');
      return run(script, all) as Promise<readonly number[]>;
    });
  }
}

/**
 * Sends a call again, once the connection is back, that may or may not have happened. If it does
 * not come back in time, the first error is thrown, as the first call may have happened.
 */
export function persist<T>(send: (attempt: number) => Promise<T>): Promise<T> {
  const until = performance.now() + PERSIST_FOR;
  return send(1).catch((error: unknown) => sendAgain(send, until, error));
}

async function sendAgain<T>(send: (attempt: number) => Promise<T>, until: number, first: unknown): Promise<T> {
  let last = first;
  for (let attempt = 1; wasSent(last) && performance.now() < until; attempt++) {
    await wait(reconnectDelay(attempt, LONGEST_PAUSE));
    try {
      return await send(attempt + 1);
    } catch (error) {
      last = error;
    }
  }
  throw first;
}

import { type Clock, SystemClock } from '../../clock.js';
import type { Keyspace } from '../../wire/keys.js';
import { STORED_STATES, type StoredState } from '../../wire/states.js';
import type { FollowedTask, FollowingRole, FollowListener, FollowSource } from '../following.js';
import type { TaskPlace } from '../task-place.js';
import type { RedisClient } from './connection/client-factory.js';
import type { RedisConnections } from './connection/connections.js';
import type { Command } from './connection/tracking-connection.js';
import { headField, PROGRESS_FIELD, readHeads } from './scripts/note-fields.js';
import { TrackedReads } from './tracked-reads.js';

/** What is read of a followed task. */
const FIELDS = ['state', 'result', PROGRESS_FIELD, headField('log'), headField('chunk')];

type Fields = (Buffer | null)[];

export class RedisFollowing implements FollowingRole {
  constructor(
    private readonly connections: RedisConnections,
    private readonly keyspace: Keyspace,
  ) {}

  /** A pipeline per queue, as only one slot is in a pipeline. */
  async read(tasks: readonly TaskPlace[]): Promise<(FollowedTask | undefined)[]> {
    const found = new Array<FollowedTask | undefined>(tasks.length);
    const byQueue = new Map<string, number[]>();
    for (const [index, { queue }] of tasks.entries()) {
      const indexes = byQueue.get(queue);
      if (indexes) indexes.push(index);
      else byQueue.set(queue, [index]);
    }
    const readQueue = async (queue: string, indexes: readonly number[]): Promise<void> => {
      const keys = indexes.map((index) => this.keyspace.queue(queue).task(tasks[index]!.id));
      const replies = await this.connections.run('monitor', 'HMGET', (client) => readAll(client, keys));
      for (const [n, index] of indexes.entries()) found[index] = toFollowed(replies[n]!);
    };
    await Promise.all(Array.from(byQueue, ([queue, indexes]) => readQueue(queue, indexes)));
    return found;
  }

  follow(listener: FollowListener): FollowSource {
    return new RedisFollowSource(this.connections, this.keyspace, listener, new SystemClock());
  }
}

/** Notices by one-shot `CLIENT TRACKING` of the hashes of tasks. */
class RedisFollowSource implements FollowSource {
  private readonly reads: TrackedReads;
  /** By the names of their keys. */
  private readonly armed = new Map<string, { readonly task: TaskPlace; readonly node: string }>();

  constructor(
    connections: RedisConnections,
    private readonly keyspace: Keyspace,
    private readonly listener: FollowListener,
    clock: Clock,
  ) {
    const hooks = {
      onChanged: (node: string, keys: readonly string[] | undefined) => this.notice(node, keys),
      onLost: (node: string) => this.lose(node),
    };
    this.reads = new TrackedReads(connections, hooks, clock, true);
  }

  /** @throws WakeUpRefusedError, BrokerUnavailableError, ClosedError */
  async arm(tasks: readonly TaskPlace[]): Promise<(FollowedTask | undefined)[]> {
    const keys = tasks.map((task) => this.keyOf(task));
    const reads = keys.map((key) => ({ key, commands: [['HMGET', key, ...FIELDS] satisfies Command] }));
    const replies = await this.reads.read(reads, (node, indexes) => {
      for (const index of indexes) this.armed.set(keys[index]!, { task: tasks[index]!, node });
    });
    return replies.map(([fields]) => toFollowed(fields as Fields));
  }

  forget(task: TaskPlace): void {
    this.armed.delete(this.keyOf(task));
  }

  async close(): Promise<void> {
    this.armed.clear();
    await this.reads.close();
  }

  private keyOf({ queue, id }: TaskPlace): string {
    return this.keyspace.queue(queue).task(id);
  }

  private notice(node: string, keys: readonly string[] | undefined): void {
    for (const key of keys ?? [...this.armed.keys()]) {
      const armed = this.armed.get(key);
      if (armed?.node !== node) continue;
      this.armed.delete(key);
      this.listener.onChanged(armed.task);
    }
  }

  private lose(node: string): void {
    if (![...this.armed.values()].some((armed) => armed.node === node)) return;
    this.armed.clear();
    this.reads.learnNodes();
    this.listener.onLost();
  }
}

async function readAll(client: RedisClient, keys: readonly string[]): Promise<Fields[]> {
  const pipeline = client.pipeline();
  for (const key of keys) pipeline.hmgetBuffer(key, ...FIELDS);
  const replies = (await pipeline.exec()) ?? [];
  return replies.map(([error, fields]) => {
    if (error) throw error;
    return fields as Fields;
  });
}

function toFollowed([state, result, ...notes]: Fields): FollowedTask | undefined {
  const known = state && (STORED_STATES as readonly string[]).includes(state.toString());
  if (!known) return undefined;
  return { state: state.toString() as StoredState, result: result ?? undefined, notes: readHeads(notes) };
}

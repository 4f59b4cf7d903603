import { type Clock, floorSeconds } from '../../clock.js';
import { decodeTaskMessage } from '../../wire/codec.js';
import type { Keyspace } from '../../wire/keys.js';
import { TASK_STATES } from '../../wire/states.js';
import type { InspectorBroker, StoredTask } from '../broker.js';
import { readScore } from './arguments.js';
import type { RedisConnections } from './connections.js';
import type { Scripts } from './scripts.js';

type Reply = readonly [message: Buffer, state: Buffer, result: Buffer, score: Buffer, hasResult: number];

/** Looks at queues and tasks, and pauses queues, over the connection `monitor`. */
export class RedisInspector implements InspectorBroker {
  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
  ) {}

  queues(): Promise<string[]> {
    return this.connections.run('monitor', 'SMEMBERS', (client) => client.smembers(this.keyspace.queues));
  }

  /** @throws UndecodableMessageError when the message is none */
  async getTask(queue: string, id: string): Promise<StoredTask | undefined> {
    const keys = this.keyspace.queue(queue);
    const reply = await this.scripts.run('monitor', 'getTask', [keys.task(id), keys.scheduled, keys.retry], [id]);
    if ((reply as unknown[]).length === 0) return undefined;
    const [bytes, stateText, result, score, hasResult] = reply as Reply;
    const state = TASK_STATES.find((known) => known === stateText.toString());
    if (state === undefined) return undefined;
    return {
      message: decodeTaskMessage(bytes),
      state,
      nextProcessAt: score.length > 0 ? readScore(score.toString()) : undefined,
      result: hasResult === 1 ? result : undefined,
    };
  }

  async pauseQueue(queue: string): Promise<boolean> {
    const { paused } = this.keyspace.queue(queue);
    const now = floorSeconds(this.clock.now());
    return (await this.connections.run('monitor', 'SETNX', (client) => client.setnx(paused, now))) === 1;
  }

  async resumeQueue(queue: string): Promise<boolean> {
    const { paused } = this.keyspace.queue(queue);
    return (await this.connections.run('monitor', 'DEL', (client) => client.del(paused))) === 1;
  }
}

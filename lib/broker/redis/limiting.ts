import { type Clock, floorSeconds } from '../../clock.js';
import type { Keyspace } from '../../wire/keys.js';
import type { LimitingBroker } from '../limiting.js';
import { requireSeconds } from './arguments.js';
import type { RedisConnections } from './connections.js';
import type { Scripts } from './scripts.js';

/** Semaphores, over the connection `monitor`: a worker that waits for a token must not hold up those that settle tasks. */
export class RedisLimiting implements LimitingBroker {
  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
  ) {}

  async acquireToken(scope: string, taskId: string, max: number, deadline: number): Promise<boolean> {
    const now = String(floorSeconds(this.clock.now()));
    const argv = [taskId, String(max), now, requireSeconds(deadline, 'the deadline of a token')];
    return (await this.scripts.run('monitor', 'acquireToken', [this.keyspace.semaphore(scope)], argv)) === 1;
  }

  async releaseToken(scope: string, taskId: string): Promise<boolean> {
    const key = this.keyspace.semaphore(scope);
    return (await this.connections.run('monitor', 'ZREM', (client) => client.zrem(key, taskId))) === 1;
  }
}

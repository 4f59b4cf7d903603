import { type Clock, floorSeconds } from '../../clock.js';
import type { Keyspace } from '../../wire/keys.js';
import type { CostCorrection, LimitingRole, StartLimit } from '../limiting.js';
import { nanoseconds, requireSeconds } from './scripts/arguments.js';
import type { RedisConnections } from './connection/connections.js';
import type { Scripts } from './scripts/scripts.js';

/** Limits, over the connection `monitor`: waiting for a token must not delay settlements. */
export class RedisLimiting implements LimitingRole {
  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
  ) {}

  async acquireTokens(scope: string, max: number, deadline: number, taskIds: readonly string[]): Promise<boolean[]> {
    const now = String(floorSeconds(this.clock.now()));
    const argv = [String(max), now, requireSeconds(deadline, 'the deadline of a token'), ...taskIds];
    const answer = await this.scripts.run('monitor', 'acquireTokens', [this.keyspace.semaphore(scope)], argv);
    const refused = new Set(answer as number[]);
    return taskIds.map((_, index) => !refused.has(index + 1));
  }

  releaseTokens(scope: string, taskIds: readonly string[]): Promise<number> {
    const key = this.keyspace.semaphore(scope);
    return this.connections.run('monitor', 'ZREM', (client) => client.zrem(key, ...taskIds));
  }

  async takeStarts(scope: string, { max, window }: StartLimit, wanted: number) {
    const argv = [String(max), String(window), nanoseconds(this.clock.now()), String(wanted)];
    const answer = await this.scripts.run('monitor', 'takeStarts', [this.keyspace.starts(scope, window)], argv);
    const [granted, retryIn] = answer as [number, number];
    return { granted, retryIn };
  }

  async takeCosts(scope: string, { max, window }: StartLimit, costs: readonly number[]) {
    const argv = [String(max), String(window), nanoseconds(this.clock.now()), ...costs.map(String)];
    const answer = await this.scripts.run('monitor', 'takeCosts', [this.keyspace.starts(scope, window)], argv);
    const [granted, retryIn, part, least] = answer as [number, number, number, number];
    return { granted, retryIn, part, least };
  }

  async correctCosts(scope: string, window: number, corrections: readonly CostCorrection[]): Promise<void> {
    const pairs = corrections.flatMap(({ part, by }) => [String(part), String(by)]);
    const argv = [String(window), nanoseconds(this.clock.now()), ...pairs];
    await this.scripts.run('monitor', 'correctCosts', [this.keyspace.starts(scope, window)], argv);
  }

  async wakeWaiting(queue: string, waitlist: string, count: number) {
    const keys = this.keyspace.queue(queue);
    const argv = [keys.taskPrefix, nanoseconds(this.clock.now()), String(count), waitlist];
    const answer = await this.scripts.run(
      'monitor',
      'wakeWaiting',
      [keys.waiting(waitlist), keys.retry, keys.pending, keys.paused, keys.waitlists, keys.held],
      argv,
    );
    const [woken, left] = answer as [number, number];
    return { woken, left };
  }

  usedWaitlists(queue: string): Promise<readonly string[]> {
    const { waitlists } = this.keyspace.queue(queue);
    return this.connections.run('monitor', 'SMEMBERS', (client) => client.smembers(waitlists));
  }
}

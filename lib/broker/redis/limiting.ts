import { type Clock, floorSeconds } from '../../clock.js';
import type { Keyspace } from '../../wire/keys.js';
import {
  type CostCorrection,
  type LimitingRole,
  type StartLimit,
  TOKEN_REQUEST_MS,
  type TokenMove,
  type WaitlistPage,
  WAITLISTS_AT_ONCE,
} from '../limiting.js';
import { nanoseconds, requireSeconds } from './scripts/arguments.js';
import type { RedisConnections } from './connection/connections.js';
import type { Scripts } from './scripts/scripts.js';

/** Limits, over the connection `monitor`: waiting for a token must not delay settlements. */
export class RedisLimiting implements LimitingRole {
  readonly firstAllowance = 50;

  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
  ) {}

  async acquireTokens(scope: string, max: number, deadline: number, holders: readonly string[]): Promise<boolean[]> {
    const now = String(floorSeconds(this.clock.now()));
    const argv = [String(max), now, requireSeconds(deadline, 'the deadline of a token'), ...holders];
    const answer = await this.scripts.run('monitor', 'acquireTokens', [this.keyspace.semaphore(scope)], argv);
    const refused = new Set(answer as number[]);
    return holders.map((_, index) => !refused.has(index + 1));
  }

  releaseTokens(scope: string, holders: readonly string[]): Promise<number> {
    const key = this.keyspace.semaphore(scope);
    return this.connections.run('monitor', 'ZREM', (client) => client.zrem(key, ...holders));
  }

  async moveTokens(scope: string, deadline: number, moves: readonly TokenMove[]): Promise<boolean[]> {
    const names = moves.flatMap(({ from, to }) => [from, to]);
    const argv = [requireSeconds(deadline, 'the deadline of a token'), ...names];
    const answer = await this.scripts.run('monitor', 'moveTokens', [this.keyspace.semaphore(scope)], argv);
    const gone = new Set(answer as number[]);
    return moves.map((_, index) => !gone.has(index + 1));
  }

  async requestToken(scope: string, server: string): Promise<boolean> {
    const key = this.keyspace.tokenRequest(scope);
    const noted = await this.connections.run('monitor', 'SET', (client) =>
      client.set(key, server, 'PX', TOKEN_REQUEST_MS, 'NX'),
    );
    return noted !== null || (await this.tokenRequest(scope)) === server;
  }

  async tokenRequest(scope: string): Promise<string | undefined> {
    const key = this.keyspace.tokenRequest(scope);
    return (await this.connections.run('monitor', 'GET', (client) => client.get(key))) ?? undefined;
  }

  async takeStarts(scope: string, { max, window, allowance = 0 }: StartLimit, wanted: number) {
    const argv = [String(max), String(window), nanoseconds(this.clock.now()), String(wanted), String(allowance)];
    const answer = await this.scripts.run('monitor', 'takeStarts', [this.keyspace.starts(scope, window)], argv);
    const [granted, retryIn, countsFor, left, countedAt] = answer as [number, number, number, number, number];
    return { granted, retryIn, countsFor, left, countedAt };
  }

  async takeCosts(scope: string, { max, window, allowance = 0 }: StartLimit, costs: readonly number[]) {
    const argv = [String(max), String(window), nanoseconds(this.clock.now()), String(allowance), ...costs.map(String)];
    const answer = await this.scripts.run('monitor', 'takeCosts', [this.keyspace.starts(scope, window)], argv);
    const [granted, retryIn, countedAt, least] = answer as [number, number, number, number];
    return { granted, retryIn, countedAt, least };
  }

  async correctCosts(scope: string, window: number, corrections: readonly CostCorrection[]): Promise<void> {
    const pairs = corrections.flatMap(({ countedAt, by }) => [String(countedAt), String(by)]);
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

  async findWaitlists(queue: string, cursor: string): Promise<WaitlistPage> {
    const { waitlists } = this.keyspace.queue(queue);
    const [next, names] = await this.connections.run('monitor', 'SSCAN', (client) =>
      client.sscan(waitlists, cursor || '0', 'COUNT', WAITLISTS_AT_ONCE),
    );
    return { names, cursor: next === '0' ? '' : next };
  }

  async usedWaitlists(queue: string, names: readonly string[]): Promise<readonly string[]> {
    if (names.length === 0) return [];
    const { waitlists } = this.keyspace.queue(queue);
    const used = await this.connections.run('monitor', 'SMISMEMBER', (client) =>
      client.smismember(waitlists, ...names),
    );
    return names.filter((_, index) => used[index] === 1);
  }
}

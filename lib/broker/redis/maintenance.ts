import { type Clock, floorSeconds } from '../../clock.js';
import type { Keyspace, QueueKeys } from '../../wire/keys.js';
import type { Archives } from '../archives.js';
import { type ExpiredLeases, LEASE_SECONDS, type MaintenanceRole } from '../broker.js';
import type { RedisConnections } from './connection/connections.js';
import { ownKeys, scanKeys } from './connection/scan.js';
import { archiveLimits } from './scripts/archive-limits.js';
import { nanoseconds, readScore, requireSeconds } from './scripts/arguments.js';
import { LeasedTasks } from './scripts/leased-tasks.js';
import { PackedReader } from './scripts/packed-reader.js';
import { fairArguments, fairKeys, queueKeys } from './scripts/queue-keys.js';
import type { Argument } from './scripts/script-command.js';
import type { ScriptName } from './scripts/script-registry.js';
import type { Scripts } from './scripts/scripts.js';

/** Tasks moved by one script: others get their turn in between. */
const FORWARDED_AT_ONCE = 100;
/** Tasks deleted, and ids compared, by one script. */
const CHUNK = 500;
/** Lines whose tasks are counted by one script: a few milliseconds of Redis. */
const COUNTED_LINES = 5_000;

/** What servers do for a queue in the background, in steps that block Redis only briefly. */
export class RedisMaintenance implements MaintenanceRole {
  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
    private readonly archives: Archives,
  ) {}

  async forward(queue: string): Promise<{ moved: number; nextDue: number | undefined }> {
    const keys = this.keyspace.queue(queue);
    const now = this.clock.now();
    const { taskPrefix, groupPrefix } = keys;
    const due = floorSeconds(now);
    const argv = [taskPrefix, groupPrefix, String(due), nanoseconds(now), String(FORWARDED_AT_ONCE)];
    for (let moved = 0; ;) {
      const reply = await this.run('forward', queueKeys('forward', keys), argv);
      const [count, next, more] = reply as [number, Buffer, number];
      moved += count;
      const nextDue = next.length > 0 ? readScore(next.toString()) : undefined;
      if (more === 0 && (nextDue === undefined || nextDue > due)) return { moved, nextDue };
    }
  }

  async fillTurns(queue: string, most: number): Promise<{ before: number; filled: number }> {
    const keys = this.keyspace.queue(queue);
    const now = this.clock.now();
    const argv = [keys.taskPrefix, String(floorSeconds(now)), nanoseconds(now), String(most), ...fairArguments(keys)];
    const reply = await this.run('fillTurns', queueKeys('fillTurns', keys).concat(fairKeys(keys)), argv);
    const [before, filled] = reply as [number, number];
    return { before, filled };
  }

  async hasLines(queue: string): Promise<boolean> {
    const { fairRing, fairHeld } = this.keyspace.queue(queue);
    return (await this.connections.run('monitor', 'EXISTS', (client) => client.exists(fairRing, fairHeld))) > 0;
  }

  async repairLines(queue: string): Promise<number> {
    const keys = this.keyspace.queue(queue);
    const { fairLinePrefix } = keys;
    let before: number | undefined;
    let [repaired, counted] = [0, 0];
    for await (const found of scanKeys(this.connections, fairLinePrefix)) {
      const own = await ownKeys(this.connections, this.keyspace, keys, found);
      for (let from = 0; from < own.length; from += CHUNK) {
        const lines = queueKeys('repairLines', keys).concat(own.slice(from, from + CHUNK));
        const [lost, tasks, total] = (await this.run('repairLines', lines, [fairLinePrefix])) as number[];
        before ??= total!;
        repaired += lost!;
        counted += tasks!;
      }
    }
    const argv = [fairLinePrefix, String(before ?? 0), String(counted), String(COUNTED_LINES)];
    await this.run('repairTotal', queueKeys('repairTotal', keys), argv);
    await this.fillTurns(queue, 0); // gives no turns, but forgets slots, some per call
    return repaired;
  }

  async listExpiredLeases(queue: string, cutoff: number, limit: number): Promise<ExpiredLeases> {
    const keys = this.keyspace.queue(queue);
    const argv = [keys.taskPrefix, requireSeconds(cutoff, 'cutoff'), String(limit)];
    for (let dangling = 0; ;) {
      const reply = await this.run('listExpiredLeases', queueKeys('listExpiredLeases', keys), argv);
      const [removed, packed, ending] = reply as [number, Buffer, number];
      dangling += removed;
      const { tasks, damaged } = readExpired(queue, packed);
      // A page of dangling ids is gone now. It must not hide the tasks behind it.
      if (removed === 0 || tasks.length + damaged.length > 0) return { tasks, damaged, dangling, ending };
    }
  }

  async repairActive(queue: string): Promise<number> {
    const keys = queueKeys('repairActive', this.keyspace.queue(queue));
    const expiry = String(floorSeconds(this.clock.now()) + LEASE_SECONDS);
    let repaired = 0;
    for (let from = 0; ; from += CHUNK) {
      const argv = [expiry, String(from), String(CHUNK)];
      const [seen, leased] = (await this.run('repairActive', keys, argv)) as [number, number];
      repaired += leased;
      if (seen < CHUNK) return repaired;
    }
  }

  async deleteExpiredCompleted(queue: string, limit: number): Promise<number> {
    const keys = this.keyspace.queue(queue);
    const argv = [keys.taskPrefix, String(floorSeconds(this.clock.now()))];
    return this.deleteInChunks('deleteExpiredCompleted', keys, argv, limit);
  }

  async trimArchived(queue: string, limit: number): Promise<number> {
    const keys = this.keyspace.queue(queue);
    return this.deleteInChunks(
      'trimArchived',
      keys,
      [keys.taskPrefix, ...archiveLimits(this.archives.of(queue), this.clock.now())],
      limit,
    );
  }

  async deleteLateResults(queue: string): Promise<number> {
    const keys = this.keyspace.queue(queue);
    let deleted = 0;
    for await (const found of scanKeys(this.connections, keys.taskPrefix)) {
      const own = await ownKeys(this.connections, this.keyspace, keys, found);
      for (let from = 0; from < own.length; from += CHUNK) {
        deleted += (await this.run('deleteLateResults', own.slice(from, from + CHUNK), [])) as number;
      }
    }
    return deleted;
  }

  private async deleteInChunks(
    name: 'deleteExpiredCompleted' | 'trimArchived',
    keys: QueueKeys,
    argv: readonly string[],
    limit: number,
  ): Promise<number> {
    for (let deleted = 0; ;) {
      const chunk = Math.min(limit - deleted, CHUNK);
      if (!(chunk > 0)) return deleted;
      const count = (await this.run(name, queueKeys(name, keys), [...argv, String(chunk)])) as number;
      deleted += count;
      if (count < chunk) return deleted;
    }
  }

  private run(name: ScriptName, keys: readonly string[], argv: readonly Argument[]): Promise<unknown> {
    return this.scripts.run('consume', name, keys, argv);
  }
}

function readExpired(queue: string, packed: Buffer): LeasedTasks {
  const expired = new LeasedTasks(queue);
  const reader = new PackedReader(packed);
  while (reader.more()) expired.add(reader.text(), readScore(reader.text()), reader);
  return expired;
}

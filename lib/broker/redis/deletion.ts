import { type Clock, floorSeconds } from '../../clock.js';
import { FAIR_GROUP_PREFIX, type Keyspace, type QueueKeys } from '../../wire/keys.js';
import type { DeletionOptions, DeletionStatus } from '../inspection.js';
import type { RedisConnections } from './connection/connections.js';
import { queueKeys } from './scripts/queue-keys.js';
import { ownKeys, scanKeys } from './connection/scan.js';
import { SCRIPTS } from './scripts/script-registry.js';
import type { Scripts } from './scripts/scripts.js';

/** Tasks deleted by one script. */
const DELETE_BATCH_SIZE = 200;

const REFUSED: Readonly<Record<number, DeletionStatus>> = { [-1]: 'active', [-2]: 'notEmpty', [-3]: 'kept' };

/**
 * Deletes a queue:
 * 1. check that it may be deleted, and pause it;
 * 2. delete its tasks with their locks, in batches;
 * 3. delete all its other keys (counters, unlisted groups, locks without a task, the pause), while
 * no task is enqueued, except what others must learn of the deletion by (links);
 * 4. remove it from the list of queues, and add it again if a task was enqueued in this moment, or if
 * it keeps runs or batches, which go on.
 */
export class QueueDeletion {
  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
  ) {}

  async run(queue: string, { force, onProgress, signal }: DeletionOptions): Promise<DeletionStatus> {
    const keys = this.keyspace.queue(queue);
    signal?.throwIfAborted();
    const begun = await this.begin(keys, force);
    const refused = REFUSED[begun];
    if (refused) return refused;
    try {
      await this.deleteTasks(keys, onProgress, signal);
      if (await this.sweep(keys, signal)) await this.unlist(queue, keys);
    } catch (error) {
      if (begun === 1) await this.unpause(keys).catch(() => undefined);
      throw error;
    }
    return 'deleted';
  }

  private async begin(keys: QueueKeys, force: boolean): Promise<number> {
    const argv = [force ? '1' : '0', String(floorSeconds(this.clock.now()))];
    return (await this.scripts.run('monitor', 'beginDeletion', queueKeys('beginDeletion', keys), argv)) as number;
  }

  private async deleteTasks(
    keys: QueueKeys,
    onProgress: DeletionOptions['onProgress'],
    signal: DeletionOptions['signal'],
  ): Promise<void> {
    const argv = [keys.taskPrefix, keys.groupPrefix, String(DELETE_BATCH_SIZE), FAIR_GROUP_PREFIX];
    for (let deleted = 0; ;) {
      const some = (await this.scripts.run('monitor', 'deleteSome', queueKeys('deleteSome', keys), argv)) as number;
      if (some < 0) return;
      onProgress?.((deleted += some));
      signal?.throwIfAborted();
    }
  }

  /** Returns `false`, and ends the pause, when a task was enqueued to the queue again. */
  private async sweep(keys: QueueKeys, signal: DeletionOptions['signal']): Promise<boolean> {
    for await (const found of scanKeys(this.connections, keys.base)) {
      const all = await ownKeys(this.connections, this.keyspace, keys, found);
      const own = all.filter((key) => !keys.isAboutLinks(key) && key !== keys.senders);
      if (own.length > 0 && !(await this.deleteUnused(keys, own))) {
        await this.unpause(keys);
        return false;
      }
      signal?.throwIfAborted();
    }
    return true;
  }

  private async deleteUnused(keys: QueueKeys, unused: readonly string[]): Promise<boolean> {
    const guards = queueKeys('sweepQueue', keys);
    const argv = [String(SCRIPTS.sweepQueue.keys.length)];
    return (await this.scripts.run('monitor', 'sweepQueue', [...guards, ...unused], argv)) !== -1;
  }

  private async unlist(queue: string, keys: QueueKeys): Promise<void> {
    const { queues } = this.keyspace;
    await this.connections.run('monitor', 'SREM', (client) => client.srem(queues, queue));
    const guards = [...queueKeys('sweepQueue', keys), keys.runs, keys.batches];
    if ((await this.connections.run('monitor', 'EXISTS', (client) => client.exists(guards))) === 0) return;
    await this.connections.run('monitor', 'SADD', (client) => client.sadd(queues, queue));
  }

  private async unpause({ paused }: QueueKeys): Promise<void> {
    await this.connections.run('monitor', 'DEL', (client) => client.del(paused));
  }
}

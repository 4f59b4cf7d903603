import type { Archives } from '../archives.js';
import { type Clock, floorSeconds } from '../../clock.js';
import { decodeTaskMessage, encodeTaskMessage } from '../../wire/codec.js';
import { FAIR_GROUP_PREFIX, type Keyspace, type QueueKeys, WAITING_GROUP } from '../../wire/keys.js';
import { isAllowed } from '../../task/actions.js';
import type { TaskState } from '../../wire/states.js';
import type {
  AdministrationRole,
  DeletionOptions,
  DeletionStatus,
  MoveAction,
  MoveStatus,
  TaskLocation,
  UpdateStatus,
} from '../inspection.js';
import type { RedisConnections } from './connection/connections.js';
import { QueueDeletion } from './deletion.js';
import { archiveLimits } from './scripts/archive-limits.js';
import { nanoseconds } from './scripts/arguments.js';
import { queueKeys } from './scripts/queue-keys.js';
import type { Scripts } from './scripts/scripts.js';

/** Tasks moved by one script: two or three milliseconds of Redis. */
const MOVE_BATCH_SIZE = 200;
/** How often an update is tried when somebody else has changed the message meanwhile. */
const MAX_UPDATE_ATTEMPTS = 5;

/** The letters that move-tasks.lua returns. */
const STATUS: Readonly<Record<string, MoveStatus>> = {
  m: 'moved',
  n: 'missing',
  a: 'active',
  s: 'same',
  e: 'elsewhere',
  c: 'claimed',
  f: 'full',
  w: 'waiting',
};

const UPDATED: Readonly<Record<number, UpdateStatus>> = { 1: 'updated', [-1]: 'missing', [-2]: 'notEditable' };

/** What move-tasks.lua does to each task. */
interface Step {
  readonly action: MoveAction | 'schedule';
  /** The new time, in Unix seconds. */
  readonly at?: number;
  readonly maxArchived?: number;
}

/** Changes tasks and queues, over the connection `monitor`. */
export class RedisAdministration implements AdministrationRole {
  private readonly deletion: QueueDeletion;

  /** @param onDeleted called with the name of each deleted queue */
  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
    private readonly archives: Archives,
    private readonly onDeleted: (queue: string) => void,
  ) {
    this.deletion = new QueueDeletion(connections, scripts, keyspace, clock);
  }

  moveTasks(
    queue: string,
    action: MoveAction,
    ids: readonly string[],
    from?: TaskLocation,
    maxArchived?: number,
  ): Promise<MoveStatus[]> {
    return this.move(queue, { action, maxArchived }, ids, from);
  }

  rescheduleTasks(queue: string, ids: readonly string[], at: number, from?: TaskLocation): Promise<MoveStatus[]> {
    return this.move(queue, { action: 'schedule', at }, ids, from);
  }

  async updatePayload(queue: string, id: string, payload: Buffer, replaces?: Buffer): Promise<UpdateStatus> {
    const keys = this.keyspace.queue(queue);
    const task = keys.task(id);
    for (let attempt = 0; attempt < MAX_UPDATE_ATTEMPTS; attempt++) {
      const [old, state] = (await this.scripts.run(
        'monitor',
        'getTask',
        [task, keys.scheduled, keys.retry, keys.waitingTasks],
        [id, WAITING_GROUP, FAIR_GROUP_PREFIX, ''],
      )) as Buffer[];
      if (!old) return 'missing';
      const before = decodeTaskMessage(old);
      if (replaces && !before.payload.equals(replaces)) {
        return isAllowed('edit', String(state) as TaskState) ? 'different' : 'notEditable';
      }
      const message = encodeTaskMessage({ ...before, payload });
      const reply = await this.scripts.run(
        'monitor',
        'updatePayload',
        [task],
        [old, message, WAITING_GROUP, FAIR_GROUP_PREFIX],
      );
      const status = UPDATED[reply as number];
      if (status) return status;
    }
    return 'changed';
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

  async deleteQueue(queue: string, options: DeletionOptions): Promise<DeletionStatus> {
    const status = await this.deletion.run(queue, options);
    if (status === 'deleted') this.onDeleted(queue);
    return status;
  }

  private async move(queue: string, step: Step, ids: readonly string[], from?: TaskLocation): Promise<MoveStatus[]> {
    const { action, at = '', maxArchived } = step;
    const keys = this.keyspace.queue(queue);
    const place = from?.state === 'waiting' ? ['aggregating', WAITING_GROUP] : [from?.state ?? '', from?.group ?? ''];
    const how = [String(at), String(maxArchived ?? ''), WAITING_GROUP, FAIR_GROUP_PREFIX];
    const statuses: MoveStatus[] = [];
    for (let first = 0; first < ids.length; first += MOVE_BATCH_SIZE) {
      const some = ids.slice(first, first + MOVE_BATCH_SIZE);
      const now = this.clock.now();
      const when = [String(floorSeconds(now)), nanoseconds(now)];
      const argv = [keys.taskPrefix, keys.groupPrefix, action, ...when, ...place, ...how, ...some];
      const reply = await this.scripts.run('monitor', 'moveTasks', queueKeys('moveTasks', keys), argv);
      for (const letter of String(reply)) statuses.push(STATUS[letter]!);
      if (action === 'archive' && maxArchived === undefined) await this.trim(queue, keys);
    }
    return statuses;
  }

  /** Never deletes a task that was archived just now: it is the newest. */
  private async trim(queue: string, keys: QueueKeys): Promise<void> {
    const argv = [
      keys.taskPrefix,
      ...archiveLimits(this.archives.of(queue), this.clock.now()),
      String(2 * MOVE_BATCH_SIZE),
    ];
    await this.scripts.run('monitor', 'trimArchived', queueKeys('trimArchived', keys), argv);
  }
}

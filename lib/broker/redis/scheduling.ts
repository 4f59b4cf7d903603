import { mapInTurns } from '../../async.js';
import { type Clock, floorSeconds } from '../../clock.js';
import { encodeSchedulerEnqueueEvent, encodeSchedulerEntry } from '../../wire/codec.js';
import type { Keyspace } from '../../wire/keys.js';
import type { SchedulerEnqueueEvent, SchedulerEntry } from '../../wire/message.js';
import {
  type Firing,
  type FiringReply,
  type FiringStatus,
  HISTORY_SECONDS,
  MAX_ENQUEUE_EVENTS,
  type PauseStatus,
  type SchedulePause,
  type ScheduleProgress,
  type SchedulingRole,
} from '../scheduling.js';
import { isLinked } from '../links.js';
import { nanoseconds, requireSeconds } from './scripts/arguments.js';
import type { RedisConnections } from './connection/connections.js';
import type { RedisLinks } from './links.js';
import { persist, type RedisProducer } from './producer.js';
import { tolerant } from './publications.js';
import { encodeRequest } from './scripts/linked-requests.js';
import { readCaused } from './scripts/caused.js';
import type { Argument } from './scripts/script-command.js';
import { SCRIPTS } from './scripts/script-registry.js';
import type { Scripts } from './scripts/scripts.js';

/** The numbers that fire.lua returns. */
const STATUS: readonly FiringStatus[] = ['enqueued', 'duplicate', 'conflict', 'past', 'unfinished', 'paused'];

/** The numbers that pause-schedule.lua and resume-schedule.lua return. */
const PAUSE_STATUS: Readonly<Record<number, PauseStatus>> = { 1: 'changed', 0: 'same', [-1]: 'unknown' };

/** Fires over the connection `produce`, publishes and pauses over `monitor`. */
export class RedisScheduling implements SchedulingRole {
  constructor(
    private readonly connections: RedisConnections,
    private readonly scripts: Scripts,
    private readonly keyspace: Keyspace,
    private readonly clock: Clock,
    private readonly producer: RedisProducer,
    private readonly links: RedisLinks,
  ) {}

  async openSchedule(queue: string, entry: string, spec: string, keepFor: number): Promise<ScheduleProgress> {
    const key = this.keyspace.queue(queue).schedule(entry);
    const argv = [String(floorSeconds(this.clock.now())), spec, requireSeconds(keepFor, 'keepFor', 1)];
    const reply = await this.scripts.run('produce', 'openSchedule', [key], argv);
    const [handledUntil, lastFiredAt] = (reply as [Buffer, Buffer]).map(String) as [string, string];
    return { handledUntil: Number(handledUntil), lastFiredAt: secondsOrNone(lastFiredAt) };
  }

  async fire(queue: string, firing: Firing): Promise<FiringReply> {
    const { keys, argv } = this.firingArguments(queue, firing);
    const linked = isLinked(firing.request);
    await Promise.all([this.producer.register(queue), linked && this.links.register(queue)]);
    const script = linked ? 'fireLinked' : 'fire';
    const reply = await persist(() => this.scripts.run('produce', script, keys, argv));
    const [status, handledUntil, lastFiredAt, parcels] = reply as [number, Buffer, Buffer, Buffer?];
    const caused = parcels && readCaused(queue, parcels);
    return {
      status: STATUS[status]!,
      handledUntil: Number(handledUntil.toString()),
      lastFiredAt: secondsOrNone(lastFiredAt.toString()),
      ...caused,
    };
  }

  pauseSchedule(queue: string, entry: string): Promise<PauseStatus> {
    return this.changePause('pauseSchedule', queue, entry);
  }

  resumeSchedule(queue: string, entry: string): Promise<PauseStatus> {
    return this.changePause('resumeSchedule', queue, entry);
  }

  async readPause(queue: string, entry: string): Promise<SchedulePause> {
    const key = this.keyspace.queue(queue).schedule(entry);
    const [mark, paused] = await tolerant(
      this.connections.run('monitor', 'HMGET', (client) => client.hmget(key, 'mark', 'paused')),
      [],
    );
    return { known: typeof mark === 'string', pausedAt: secondsOrNone(paused ?? '') };
  }

  private async changePause(
    script: 'pauseSchedule' | 'resumeSchedule',
    queue: string,
    entry: string,
  ): Promise<PauseStatus> {
    const key = this.keyspace.queue(queue).schedule(entry);
    const reply = await this.scripts.run('monitor', script, [key], [String(floorSeconds(this.clock.now()))]);
    return PAUSE_STATUS[reply as number]!;
  }

  /** The index is in another slot, so it needs a command of its own. */
  async writeSchedulerEntries(schedulerId: string, entries: readonly SchedulerEntry[], ttl: number): Promise<void> {
    const key = this.keyspace.scheduler(schedulerId);
    const staleAt = floorSeconds(this.clock.now() + ttl * 1000);
    const argv: Argument[] = [String(Math.ceil(ttl)), ...(await mapInTurns(entries, encodeSchedulerEntry))];
    await Promise.all([
      this.connections.run('monitor', 'ZADD', (client) => client.zadd(this.keyspace.schedulers, staleAt, key)),
      this.scripts.run('monitor', 'writeSchedulerEntries', [key], argv),
    ]);
  }

  async clearSchedulerEntries(schedulerId: string): Promise<void> {
    const key = this.keyspace.scheduler(schedulerId);
    await Promise.all([
      this.connections.run('monitor', 'ZREM', (client) => client.zrem(this.keyspace.schedulers, key)),
      this.connections.run('monitor', 'DEL', (client) => client.del(key)),
    ]);
  }

  async recordEnqueueEvent(entryId: string, event: SchedulerEnqueueEvent): Promise<void> {
    const time = String(floorSeconds(event.enqueueTime));
    const argv = [time, encodeSchedulerEnqueueEvent(event), String(MAX_ENQUEUE_EVENTS), String(HISTORY_SECONDS)];
    await this.scripts.run('monitor', 'recordEnqueueEvent', [this.keyspace.schedulerHistory(entryId)], argv);
  }

  /** Encodes, and so checks, everything before sending. */
  private firingArguments(queue: string, firing: Firing): { keys: string[]; argv: Argument[] } {
    const queueKeys = this.keyspace.queue(queue);
    const { entry, scheduledFor, attempt, request, skipUnfinished, keepFor } = firing;
    const encoded = encodeRequest(queueKeys, request);
    const now = this.clock.now();
    const argv: Argument[] = [
      queueKeys.taskPrefix,
      String(floorSeconds(now)),
      nanoseconds(now),
      requireSeconds(scheduledFor, 'scheduledFor'),
      attempt,
      skipUnfinished ? '1' : '0',
      requireSeconds(keepFor, 'keepFor', 1),
      request.message.id,
      encoded.routes,
    ];
    const furtherKeys = encoded.keys.slice(SCRIPTS.enqueue.keys.length + 1);
    const { pending, scheduled, groups } = queueKeys;
    const keys = [queueKeys.schedule(entry), pending, scheduled, groups, queueKeys.task(request.message.id)];
    return { keys: keys.concat(furtherKeys), argv: argv.concat(encoded.rest) };
  }
}

const secondsOrNone = (text: string): number | undefined => (text === '' ? undefined : Number(text));

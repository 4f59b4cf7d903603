import { buildPeer } from './go.js';
import { Peer, type PeerEnqueue } from './peer.js';

export type GoState = 'active' | 'pending' | 'scheduled' | 'retry' | 'archived' | 'completed' | 'aggregating';

/** asynq.TaskInfo; bytes in base64, durations and times in milliseconds. */
export interface GoTask {
  id: string;
  queue: string;
  type: string;
  payload: string | null;
  headers: Record<string, string> | null;
  state: GoState;
  maxRetry: number;
  retried: number;
  lastErr: string;
  lastFailedAt: number | null;
  timeout: number;
  deadline: number | null;
  group: string;
  nextProcessAt: number | null;
  isOrphaned: boolean;
  retention: number;
  completedAt: number | null;
  result: string | null;
}

/** asynq.QueueInfo. */
export interface GoQueue extends Record<GoState, number> {
  size: number;
  memoryUsage: number;
  latency: number;
  groups: number;
  processed: number;
  failed: number;
  processedTotal: number;
  failedTotal: number;
  paused: boolean;
}

/** asynq.ServerInfo. */
export interface GoServer {
  id: string;
  host: string;
  pid: number;
  concurrency: number;
  queues: Record<string, number>;
  strictPriority: boolean;
  status: string;
  started: number;
  workers: GoWorker[];
}

export interface GoWorker {
  taskId: string;
  taskType: string;
  taskPayload: string;
  queue: string;
  started: number;
  deadline: number;
}

/** asynq.SchedulerEntry. */
export interface GoSchedulerEntry {
  id: string;
  spec: string;
  type: string;
  payload: string | null;
  options: string[] | null;
  next: number | null;
  prev: number | null;
}

/** What asynq.ParseRedisURI made of a URI; empty texts for what it does not say. */
export interface GoAddress {
  refused: boolean;
  network: string;
  addr: string;
  db: number;
  password: string;
  tls: boolean;
  master: string;
  hosts: string[] | null;
}

/** The Go peer: also asynq's Inspector. */
export class GoPeer extends Peer {
  queueInfo(queue: string): Promise<GoQueue> {
    return this.call('queueInfo', { queue });
  }

  /** asynq.QueueInfo as Go's own encoder writes it. */
  queueInfoAsIs(queue: string): Promise<Record<string, unknown>> {
    return this.call('queueInfoAsIs', { queue });
  }

  /** asynq.GroupInfo as Go's own encoder writes it. */
  groups(queue: string): Promise<{ Group: string; Size: number }[]> {
    return this.call('groups', { queue });
  }

  taskInfo(queue: string, id: string): Promise<GoTask> {
    return this.call('taskInfo', { queue, id });
  }

  list(queue: string, state: GoState, group?: string): Promise<GoTask[]> {
    return this.call('list', { queue, state, group });
  }

  servers(): Promise<GoServer[]> {
    return this.call('servers');
  }

  history(queue: string, days: number): Promise<{ date: string; processed: number; failed: number }[]> {
    return this.call('history', { queue, days });
  }

  /**
   * What robfig/cron makes of each spec: its error, or that many firings after `from`
   * (milliseconds).
   */
  cron(
    specs: readonly { spec: string; location: string; from: number; count: number }[],
  ): Promise<{ error: string; next: number[] | null }[]> {
    return this.call('cron', { specs });
  }

  /** Where asynq.ParseRedisURI would connect to. */
  redisURIs(uris: readonly string[]): Promise<GoAddress[]> {
    return this.call('redisURIs', { uris });
  }

  schedulerEntries(): Promise<GoSchedulerEntry[]> {
    return this.call('schedulerEntries');
  }

  /** Newest first. */
  enqueueEvents(id: string): Promise<{ taskId: string; enqueuedAt: number }[]> {
    return this.call('enqueueEvents', { id });
  }

  /** Starts a scheduler of asynq that publishes every second; returns the ids of its entries. */
  startScheduler(
    name: string,
    location: string,
    entries: readonly { spec: string; task: PeerEnqueue }[],
  ): Promise<string[]> {
    return this.call('startScheduler', { name, location, entries });
  }

  stopScheduler(name: string): Promise<void> {
    return this.call('stopScheduler', { name });
  }

  runTask(queue: string, id: string): Promise<void> {
    return this.call('runTask', { queue, id });
  }

  archiveTask(queue: string, id: string): Promise<void> {
    return this.call('archiveTask', { queue, id });
  }

  deleteTask(queue: string, id: string): Promise<void> {
    return this.call('deleteTask', { queue, id });
  }
}

/** Builds the program when needed and starts it against a Redis server. */
export const startGoPeer = async (redis: { host: string; port: number }): Promise<GoPeer> => {
  const peer = new GoPeer(await buildPeer(), ['-redis', `${redis.host}:${redis.port}`]);
  await peer.event('ready');
  return peer;
};

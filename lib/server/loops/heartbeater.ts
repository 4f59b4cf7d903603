import type { Broker } from '../../broker/broker.js';
import type { ServerIdentity } from '../../broker/monitoring.js';
import type { ServerProfile } from '../../broker/server-profile.js';
import type { Clock } from '../../clock.js';
import type { ServerInfo, WorkerInfo } from '../../wire/message.js';
import type { QueueRegistry } from '../fetching/queue-registry.js';

const HEARTBEAT_INTERVAL_MS = 5_000;
/** The published state expires after this: the server is gone. */
const TTL_SECONDS = 10;

/** What has not changed is published this often; it is seen for longer, and until the server is gone. */
const PROFILE_INTERVAL_MS = 300_000;
const PROFILE_TTL_SECONDS = 900;

/** What changes while a server runs. */
export interface PublishedServer {
  readonly concurrency: number;
  readonly status: string;
}

export interface HeartbeaterOptions {
  readonly broker: Pick<Broker, 'monitoring'>;
  readonly clock: Clock;
  readonly queues: QueueRegistry;
  readonly strictPriority: boolean;
  readonly server: PublishedServer;
  readonly identity: ServerIdentity;
  readonly profile: () => ServerProfile;
}

/** Publishes this server and what it runs, so that `asynq server ls` and asynqmon show it. */
export class Heartbeater {
  private readonly startTime: number;
  private profile = '';
  private profiledAt = -Infinity;

  constructor(private readonly options: HeartbeaterOptions) {
    this.startTime = options.clock.now();
  }

  /** @param status what it publishes of itself */
  async runOnce(status = this.options.server.status): Promise<number> {
    const workers = this.workers();
    await Promise.all([
      this.publishProfile(),
      this.options.broker.monitoring.writeServerState(this.info(workers.length, status), workers, TTL_SECONDS),
    ]);
    return HEARTBEAT_INTERVAL_MS;
  }

  private async publishProfile(): Promise<void> {
    const { broker, clock, profile } = this.options;
    const now = clock.now();
    const current = profile();
    const text = JSON.stringify(current);
    if (text === this.profile && Math.abs(now - this.profiledAt) < PROFILE_INTERVAL_MS) return;
    await broker.monitoring.writeServerProfile(this.info(0), current, PROFILE_TTL_SECONDS);
    this.profile = text;
    this.profiledAt = now;
  }

  async clear(): Promise<void> {
    await this.options.broker.monitoring.clearServerState(this.info(0));
    this.profile = '';
  }

  private info(activeWorkerCount: number, status = this.options.server.status): ServerInfo {
    return {
      ...this.options.identity,
      concurrency: this.options.server.concurrency,
      queues: this.options.queues.priorities(),
      strictPriority: this.options.strictPriority,
      status,
      startTime: this.startTime,
      activeWorkerCount,
    };
  }

  private workers(): WorkerInfo[] {
    const workers: WorkerInfo[] = [];
    for (const task of this.options.queues.held()) {
      if (task.handlerSettled) continue;
      workers.push({
        ...this.options.identity,
        taskId: task.id,
        taskType: task.type,
        taskPayload: task.payload,
        queue: task.queue,
        startTime: task.startedAt,
        deadline: task.deadlineAt,
      });
    }
    return workers;
  }
}

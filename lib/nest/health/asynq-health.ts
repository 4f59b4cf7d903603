import { withTimeout } from '../../async.js';
import { QueueNotFoundError } from '../../errors.js';
import type { AsynqInspector } from '../../inspector/inspector.js';
import type { QueueInfo } from '../../inspector/views.js';
import type { OutboxWriter, RowNotices } from '../../transactions/enqueue-transactions.js';
import type { ServerStats } from '../../server/index.js';
import type { Clock } from '../../clock.js';
import type { MonitoringRole } from '../../broker/broker.js';
import {
  resolveLiveness,
  resolveReadiness,
  type LivenessOptions,
  type ReadinessOptions,
  type ResolvedLiveness,
  type ResolvedReadiness,
  type ResolvedThresholds,
} from './health-options.js';
import { SharedReply } from './shared-reply.js';

/** The health of a connection and its server. */
export interface HealthReport {
  readonly status: 'up' | 'down';
  /** `none` if this process only enqueues, or has no handlers. */
  readonly server: 'none' | ServerStats['status'];
  /** Whether Redis replied; `undefined` if it was not asked. */
  readonly redis?: 'up' | 'down';
  /** How the relay of rows in this process learns of rows; `lost` is no problem: it polls. Absent: it has no relay. */
  readonly rowNotices?: RowNotices;
  /** One sentence per problem, with the names of queues; empty without problems. */
  readonly problems: readonly string[];
}

/** A problem: in detail for operators, and as a summary that everyone may read. */
export interface Problem {
  readonly text: string;
  /** Contains no queue, no loop and no number. */
  readonly summary: string;
}

interface RedisReply {
  readonly redis: 'up' | 'down';
  readonly problems: readonly Problem[];
}

export interface Judgement extends Pick<HealthReport, 'server' | 'redis' | 'rowNotices'> {
  readonly problems: readonly Problem[];
}

export interface AsynqHealthDeps {
  readonly broker: {
    readonly monitoring: Pick<MonitoringRole, 'ping'>;
    readonly clock: Clock;
    readonly manual?: boolean;
  };
  readonly inspector: Pick<AsynqInspector, 'getQueueInfo'>;
  /** `undefined` if there is no server, and will be none. */
  readonly stats: () => ServerStats | undefined;
  /** The outbox in a database, if there is one. */
  readonly outbox?: () => Pick<OutboxWriter, 'counts' | 'notices'> | undefined;
  /** Whether the application starts the server: then one that is not started is not ready. */
  readonly autoStart: boolean;
}

/**
 * Whether a process should be restarted (`live`), and whether it can work (`ready`), for probes such as those of Kubernetes. An
 * unavailable Redis is no reason for a restart, so liveness does not ask it.
 */
export class AsynqHealth {
  /** Replies of Redis by the options of the check. */
  private readonly replies = new Map<string, SharedReply<RedisReply>>();

  constructor(private readonly deps: AsynqHealthDeps) {}

  /** Down when loops of the server have stopped: nothing but a restart helps. @throws InvalidOptionError */
  live(options?: LivenessOptions): HealthReport {
    return toReport(this.judgeLife(options));
  }

  /**
   * Down when Redis does not reply, the server does not run or drains, its loops have stopped, or a queue exceeds its thresholds.
   * Takes at most `timeout`.
   *
   * @throws InvalidOptionError
   */
  async ready(options?: ReadinessOptions): Promise<HealthReport> {
    return toReport(await this.judge(resolveReadiness(options)));
  }

  /** {@link live} with the summary of each problem. */
  judgeLife(options?: LivenessOptions): Judgement {
    const limits = resolveLiveness(options);
    const stats = this.deps.stats();
    return judgement(stats, loopProblems(stats, limits));
  }

  /** {@link ready} with the summary of each problem. */
  async judge(limits: ResolvedReadiness): Promise<Judgement> {
    const reply = await this.replyFor(limits).get();
    const stats = this.deps.stats();
    const problems = [...this.serverProblems(stats), ...loopProblems(stats, limits), ...reply.problems];
    const rowNotices = this.deps.outbox?.()?.notices;
    return { ...judgement(stats, problems), redis: reply.redis, ...(rowNotices && { rowNotices }) };
  }

  private replyFor(limits: ResolvedReadiness): SharedReply<RedisReply> {
    const { clock, manual = false } = this.deps.broker;
    // With a test's clock a cached reply would never expire.
    if (limits.cacheFor === 0 || manual) return new SharedReply(clock, 0, () => this.askRedis(limits));
    const key = JSON.stringify({ ...limits, queues: [...limits.queues] });
    const known = this.replies.get(key);
    if (known) return known;
    if (this.replies.size >= MAX_SHARED_REPLIES) this.replies.clear(); // every check may have other options
    const reply = new SharedReply(clock, limits.cacheFor, () => this.askRedis(limits));
    this.replies.set(key, reply);
    return reply;
  }

  /** Checks Redis and the queues with thresholds. Never rejects; takes at most `timeout`. */
  private async askRedis(limits: ResolvedReadiness): Promise<RedisReply> {
    const queues = this.queueProblems(this.deps.stats(), limits);
    const outbox = this.outboxProblems(limits);
    const problems = await this.within(
      limits.timeout,
      this.deps.broker.monitoring.ping().then(() => queues),
    );
    if (problems) return { redis: 'up', problems: [...problems, ...(await outbox)] };
    const text = `Redis does not answer within ${seconds(limits.timeout)}`;
    return { redis: 'down', problems: [{ text, summary: 'Redis does not answer' }, ...(await outbox)] };
  }

  private async outboxProblems({ outbox: limits, timeout }: ResolvedReadiness): Promise<Problem[]> {
    const outbox = this.deps.outbox?.();
    if (!outbox) return [];
    const counts = await this.within(timeout, outbox.counts());
    const away = 'the database of the outbox does not answer';
    if (!counts) return [{ text: `${away} within ${seconds(timeout)}`, summary: away }];
    const { fresh, taken, poisoned, oldest } = counts;
    const texts = [];
    if (oldest > limits.maxAge) {
      const most = `longer than ${seconds(limits.maxAge)} (rows: ${fresh + taken})`;
      texts.push(`the oldest of the rows of the outbox waits for ${seconds(oldest)}, ${most}`);
    }
    if (poisoned > limits.maxPoisoned) {
      texts.push(`poisoned rows of the outbox: ${poisoned}, more than ${limits.maxPoisoned}`);
    }
    return texts.map((text) => ({ text, summary: 'the outbox is beyond its thresholds' }));
  }

  private serverProblems(stats: ServerStats | undefined): Problem[] {
    if (!stats || stats.status === 'active' || (stats.status === 'new' && !this.deps.autoStart)) return [];
    const text = NOT_RUNNING[stats.status];
    return [{ text, summary: text }];
  }

  private async queueProblems(stats: ServerStats | undefined, limits: ResolvedReadiness): Promise<Problem[]> {
    const wanted = new Map(limits.queues);
    if (limits.others) {
      for (const queue of stats?.inFlight.keys() ?? []) if (!wanted.has(queue)) wanted.set(queue, limits.others);
    }
    const found = await Promise.all([...wanted].map(([queue, thresholds]) => this.problemsOf(queue, thresholds)));
    return found.flat();
  }

  private async problemsOf(queue: string, { maxPending, maxAge }: ResolvedThresholds): Promise<Problem[]> {
    const info = await this.deps.inspector.getQueueInfo(queue).catch((error: unknown) => error);
    if (info instanceof QueueNotFoundError) return []; // nothing was ever enqueued
    const name = JSON.stringify(queue);
    if (info instanceof Error) return [{ text: `queue ${name} cannot be read`, summary: 'a queue cannot be read' }];
    const { paused, pending, held, latency, oldestHeld } = info as QueueInfo;
    if (paused) return []; // it waits on purpose
    const texts = [];
    if (pending + held > maxPending) {
      const more = held > 0 ? ` and ${held} held ones` : '';
      texts.push(`queue ${name} has ${pending} pending tasks${more}, more than ${maxPending}`);
    }
    if (pending > 0 && latency > maxAge) {
      texts.push(`queue ${name} has a task pending for ${seconds(latency)}, longer than ${seconds(maxAge)}`);
    }
    if (oldestHeld > maxAge) {
      texts.push(`queue ${name} has a task held for ${seconds(oldestHeld)}, longer than ${seconds(maxAge)}`);
    }
    return texts.map((text) => ({ text, summary: 'a queue is beyond its thresholds' }));
  }

  /** Resolves with `undefined` if the promise takes longer or rejects. */
  private within<T>(milliseconds: number, promise: Promise<T>): Promise<T | undefined> {
    const result = promise.catch(() => undefined);
    return withTimeout(result, milliseconds, this.deps.broker.clock);
  }
}

/** How many different options have cached replies. */
const MAX_SHARED_REPLIES = 16;

const NOT_RUNNING = {
  new: 'the server has not started',
  stopped: 'the server drains: it takes no tasks any more',
  closed: 'the server is closed',
};

function loopProblems(stats: ServerStats | undefined, { maxLag, maxPass }: ResolvedLiveness): Problem[] {
  if (!stats || stats.status === 'new') return [];
  const summary = 'a loop of the server has stopped';
  return stats.loops.flatMap(({ loop, overdue, busyFor }) => {
    if (overdue > maxLag) return [{ text: `the ${loop} is ${seconds(overdue)} late`, summary }];
    return busyFor > maxPass ? [{ text: `the ${loop} has been at one pass for ${seconds(busyFor)}`, summary }] : [];
  });
}

const judgement = (stats: ServerStats | undefined, problems: readonly Problem[]): Judgement => ({
  server: stats?.status ?? 'none',
  problems,
});

const toReport = ({ server, redis, rowNotices, problems }: Judgement): HealthReport => ({
  status: problems.length === 0 ? 'up' : 'down',
  server,
  ...(redis && { redis }),
  ...(rowNotices && { rowNotices }),
  problems: problems.map(({ text }) => text),
});

const seconds = (milliseconds: number): string => `${Math.round(milliseconds / 100) / 10} s`;

import { withTimeout } from '../../async.js';
import { QueueNotFoundError } from '../../errors.js';
import type { AsynqInspector } from '../../inspector/inspector.js';
import type { QueueInfo } from '../../inspector/views.js';
import type { ServerStats } from '../../server/server-stats.js';
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

/** How a connection, and the server on it, stand. */
export interface HealthReport {
  readonly status: 'up' | 'down';
  /** `none` where this process only produces, or has no handlers. */
  readonly server: 'none' | ServerStats['status'];
  /** Whether Redis answered; `undefined` when it was not asked. */
  readonly redis?: 'up' | 'down';
  /** What is wrong, a sentence each, with the names of queues; empty when all is well. */
  readonly problems: readonly string[];
}

/** What is wrong: for those who run the application, and in words that everyone may read. */
export interface Problem {
  readonly text: string;
  /** Names no queue, no loop and no number. */
  readonly summary: string;
}

interface RedisSaid {
  readonly redis: 'up' | 'down';
  readonly problems: readonly Problem[];
}

export interface Judgement extends Pick<HealthReport, 'server' | 'redis'> {
  readonly problems: readonly Problem[];
}

export interface AsynqHealthDeps {
  readonly broker: {
    readonly monitoring: Pick<MonitoringRole, 'ping'>;
    readonly clock: Clock;
    readonly manual?: boolean;
  };
  readonly inspector: Pick<AsynqInspector, 'getQueueInfo'>;
  /** `undefined` where no server is, or will be. */
  readonly stats: () => ServerStats | undefined;
  /** Whether the application starts the server by itself, so that one that is not started is not ready. */
  readonly autoStart: boolean;
}

/**
 * Whether a process should be restarted (`live`), and whether it does its work (`ready`): for the probes of Kubernetes and the like. A
 * Redis that is away is no reason to restart anything, so that liveness does not ask it.
 */
export class AsynqHealth {
  /** By the options that were asked with. */
  private readonly said = new Map<string, SharedReply<RedisSaid>>();

  constructor(private readonly deps: AsynqHealthDeps) {}

  /** Down when loops of the server have stopped: nothing but a restart helps. @throws InvalidOptionError */
  live(options?: LivenessOptions): HealthReport {
    return worded(this.judgeLife(options));
  }

  /**
   * Down when Redis does not answer, the server does not run (any more: it drains), its loops have stopped, or a queue is beyond its
   * thresholds. Takes as long as `timeout` at most.
   *
   * @throws InvalidOptionError
   */
  async ready(options?: ReadinessOptions): Promise<HealthReport> {
    return worded(await this.judge(resolveReadiness(options)));
  }

  /** {@link live}, with the problems also in words that name nothing. */
  judgeLife(options?: LivenessOptions): Judgement {
    const limits = resolveLiveness(options);
    const stats = this.deps.stats();
    return judgement(stats, loopProblems(stats, limits));
  }

  /** {@link ready}, with the problems also in words that name nothing. */
  async judge(limits: ResolvedReadiness): Promise<Judgement> {
    const said = await this.saidFor(limits).get();
    const stats = this.deps.stats();
    const problems = [...this.serverProblems(stats), ...loopProblems(stats, limits), ...said.problems];
    return { ...judgement(stats, problems), redis: said.redis };
  }

  private saidFor(limits: ResolvedReadiness): SharedReply<RedisSaid> {
    const { clock, manual = false } = this.deps.broker;
    // Where a test moves the clock, an answer would never get old.
    if (limits.cacheFor === 0 || manual) return new SharedReply(clock, 0, () => this.askRedis(limits));
    const key = JSON.stringify({ ...limits, queues: [...limits.queues] });
    const known = this.said.get(key);
    if (known) return known;
    if (this.said.size >= MAX_SHARED_REPLIES) this.said.clear(); // options are made anew for each call
    const said = new SharedReply(clock, limits.cacheFor, () => this.askRedis(limits));
    this.said.set(key, said);
    return said;
  }

  /** What Redis says of itself and of the queues with thresholds. Never rejects; takes as long as `timeout` at most. */
  private async askRedis(limits: ResolvedReadiness): Promise<RedisSaid> {
    const queues = this.queueProblems(this.deps.stats(), limits);
    const problems = await this.within(
      limits.timeout,
      this.deps.broker.monitoring.ping().then(() => queues),
    );
    if (problems) return { redis: 'up', problems };
    const text = `Redis does not answer within ${seconds(limits.timeout)}`;
    return { redis: 'down', problems: [{ text, summary: 'Redis does not answer' }] };
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
    const { paused, pending, latency } = info as QueueInfo;
    if (paused) return []; // somebody wants it to wait
    const texts = [];
    if (pending > maxPending) texts.push(`queue ${name} has ${pending} pending tasks, more than ${maxPending}`);
    if (pending > 0 && latency > maxAge) {
      texts.push(`queue ${name} has a task pending for ${seconds(latency)}, longer than ${seconds(maxAge)}`);
    }
    return texts.map((text) => ({ text, summary: 'a queue is beyond its thresholds' }));
  }

  /** `undefined` when it takes longer, or fails. */
  private within<T>(milliseconds: number, promise: Promise<T>): Promise<T | undefined> {
    const result = promise.catch(() => undefined);
    return withTimeout(result, milliseconds, this.deps.broker.clock);
  }
}

/** Different options whose answers are shared. */
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

const worded = ({ server, redis, problems }: Judgement): HealthReport => ({
  status: problems.length === 0 ? 'up' : 'down',
  server,
  ...(redis && { redis }),
  problems: problems.map(({ text }) => text),
});

const seconds = (milliseconds: number): string => `${Math.round(milliseconds / 100) / 10} s`;

import { QueueNotFoundError } from '../../errors.js';
import type { AsynqInspector } from '../../inspector/inspector.js';
import type { QueueInfo } from '../../inspector/views.js';
import type { ServerFacts } from '../../server/facts.js';
import type { Clock } from '../../clock.js';
import type { MonitoringBroker } from '../../broker/broker.js';
import {
  resolveLiveness,
  resolveReadiness,
  type LivenessOptions,
  type ReadinessOptions,
  type ResolvedLiveness,
  type ResolvedReadiness,
  type ResolvedThresholds,
} from './health-options.js';

/** How a connection, and the server on it, stand. */
export interface HealthReport {
  readonly status: 'up' | 'down';
  /** `none` where this process only produces, or has no handlers. */
  readonly server: 'none' | ServerFacts['status'];
  /** Whether Redis answered; `undefined` when it was not asked. */
  readonly redis?: 'up' | 'down';
  /** What is wrong, a sentence each; empty when all is well. Tells nothing secret. */
  readonly problems: readonly string[];
}

export interface AsynqHealthDeps {
  readonly broker: Pick<MonitoringBroker, 'ping'> & { readonly clock: Clock };
  readonly inspector: Pick<AsynqInspector, 'getQueueInfo'>;
  /** `undefined` where no server is, or will be. */
  readonly facts: () => ServerFacts | undefined;
  /** Whether the application starts the server by itself, so that one that is not started is not ready. */
  readonly autoStart: boolean;
}

/**
 * Whether a process should be restarted (`live`), and whether it does its work (`ready`): for the probes of Kubernetes and the like. A
 * Redis that is away is no reason to restart anything, so that liveness does not ask it.
 */
export class AsynqHealth {
  constructor(private readonly deps: AsynqHealthDeps) {}

  /** Down when loops of the server have stopped: nothing but a restart helps. @throws InvalidOptionError */
  live(options?: LivenessOptions): HealthReport {
    const limits = resolveLiveness(options);
    const facts = this.deps.facts();
    return report(facts, loopProblems(facts, limits));
  }

  /**
   * Down when Redis does not answer, the server does not run (any more: it drains), its loops have stopped, or a queue is beyond its
   * thresholds. Takes as long as `timeout` at most.
   *
   * @throws InvalidOptionError
   */
  async ready(options?: ReadinessOptions): Promise<HealthReport> {
    const limits = resolveReadiness(options);
    const facts = this.deps.facts();
    const problems = [...this.serverProblems(facts), ...loopProblems(facts, limits)];
    const queues = this.queueProblems(facts, limits);
    const answered = await this.within(
      limits.timeout,
      this.deps.broker.ping().then(() => queues),
    );
    problems.push(...(answered ?? [`Redis does not answer within ${seconds(limits.timeout)}`]));
    return { ...report(facts, problems), redis: answered ? 'up' : 'down' };
  }

  private serverProblems(facts: ServerFacts | undefined): string[] {
    if (!facts || facts.status === 'active' || (facts.status === 'new' && !this.deps.autoStart)) return [];
    return [NOT_RUNNING[facts.status]];
  }

  private async queueProblems(facts: ServerFacts | undefined, limits: ResolvedReadiness): Promise<string[]> {
    const wanted = new Map(limits.queues);
    if (limits.others) {
      for (const queue of facts?.inFlight.keys() ?? []) if (!wanted.has(queue)) wanted.set(queue, limits.others);
    }
    const found = await Promise.all([...wanted].map(([queue, thresholds]) => this.problemsOf(queue, thresholds)));
    return found.flat();
  }

  private async problemsOf(queue: string, { maxPending, maxAge }: ResolvedThresholds): Promise<string[]> {
    const info = await this.deps.inspector.getQueueInfo(queue).catch((error: unknown) => error);
    if (info instanceof QueueNotFoundError) return []; // nothing was ever enqueued
    if (info instanceof Error) return [`queue "${queue}" cannot be read`];
    const { paused, pending, latency } = info as QueueInfo;
    if (paused) return []; // somebody wants it to wait
    const problems = [];
    if (pending > maxPending) problems.push(`queue "${queue}" has ${pending} pending tasks, more than ${maxPending}`);
    if (pending > 0 && latency > maxAge) {
      problems.push(`queue "${queue}" has a task pending for ${seconds(latency)}, longer than ${seconds(maxAge)}`);
    }
    return problems;
  }

  /** `undefined` when it takes longer, or fails. */
  private within<T>(milliseconds: number, promise: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve) => {
      const timer = this.deps.broker.clock.after(milliseconds, () => resolve(undefined));
      const end = (value?: T): void => {
        timer.cancel();
        resolve(value);
      };
      promise.then(end, () => end());
    });
  }
}

const NOT_RUNNING = {
  new: 'the server has not started',
  stopped: 'the server drains: it takes no tasks any more',
  closed: 'the server is closed',
};

function loopProblems(facts: ServerFacts | undefined, { maxLag, maxPass }: ResolvedLiveness): string[] {
  if (!facts || facts.status === 'new') return [];
  return facts.loops.flatMap(({ loop, overdue, busyFor }) => {
    if (overdue > maxLag) return [`the ${loop} is ${seconds(overdue)} late`];
    return busyFor > maxPass ? [`the ${loop} has been at one pass for ${seconds(busyFor)}`] : [];
  });
}

const report = (facts: ServerFacts | undefined, problems: readonly string[]): HealthReport => ({
  status: problems.length === 0 ? 'up' : 'down',
  server: facts?.status ?? 'none',
  problems,
});

const seconds = (milliseconds: number): string => `${Math.round(milliseconds / 100) / 10} s`;

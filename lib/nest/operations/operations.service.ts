import { Inject, Injectable } from '@nestjs/common';
import { parseDuration, type Duration } from '../../duration.js';
import { ConnectionRegistry, type Connection } from '../connection.registry.js';
import type { AsynqHealth, Judgement, Problem, RedisSaid } from '../health/asynq-health.js';
import { HealthFactory } from '../health/health.factory.js';
import { ServerOrchestrator } from '../server.orchestrator.js';
import type { ResolvedOperationsOptions } from './operations.options.js';
import { OPERATIONS_OPTIONS } from './operations.tokens.js';
import { SharedAnswer } from './shared-answer.js';

/** What a probe is told. */
export interface OperationsReport {
  readonly status: 'up' | 'down';
  readonly problems: readonly string[];
}

interface Watched {
  readonly health: AsynqHealth;
  readonly said: SharedAnswer<RedisSaid>;
}

/** The operations on all connections of the application at once: what goes down or drains is the process. */
@Injectable()
export class OperationsService {
  private readonly watched = new Map<Connection, Watched>();

  constructor(
    @Inject(OPERATIONS_OPTIONS) private readonly options: ResolvedOperationsOptions,
    @Inject(ConnectionRegistry) private readonly connections: ConnectionRegistry,
    @Inject(ServerOrchestrator) private readonly orchestrator: ServerOrchestrator,
    @Inject(HealthFactory) private readonly health: HealthFactory,
  ) {}

  /** @throws InvalidOptionError */
  requireConnections(): void {
    this.connections.requireSome('AsynqOperationsModule');
  }

  live(): OperationsReport {
    return this.together(this.all().map(({ health }) => health.judgeLife(this.options.live)));
  }

  /** How servers stand is seen anew, so that one that drains is not ready from then on; what Redis said is shared. */
  async ready(): Promise<OperationsReport> {
    const judged = this.all().map(async ({ health, said }) => health.judge(this.options.ready, await said.get()));
    return this.together(await Promise.all(judged));
  }

  /** Drains every server. @throws InvalidOptionError for a timeout that is none */
  async drain(timeout: Duration | undefined = this.options.drainTimeout) {
    const milliseconds = timeout === undefined ? Infinity : parseDuration(timeout, 'timeout');
    const servers = this.connections
      .all()
      .filter(({ options }) => options.server !== false)
      .map((connection) => this.orchestrator.serverOf(connection));
    const drained = await Promise.all(servers.map((server) => server.drain(milliseconds)));
    const active = servers.reduce((sum, server) => sum + server.active, 0);
    return { drained: drained.every(Boolean), active };
  }

  /** The connections of the application, each with what it has said. */
  private all(): Watched[] {
    const { ready, cacheFor } = this.options;
    return this.connections.all().map((connection) => {
      const known = this.watched.get(connection);
      if (known) return known;
      const health = this.health.of(connection);
      const { clock, manual } = connection.broker;
      // Where a test moves the clock, an answer would never get old.
      const said = new SharedAnswer(clock, manual ? 0 : cacheFor, () => health.askRedis(ready));
      this.watched.set(connection, { health, said });
      return { health, said };
    });
  }

  private together(judgements: readonly Judgement[]): OperationsReport {
    const word = ({ text, summary }: Problem): string => (this.options.showDetails ? text : summary);
    const problems = [...new Set(judgements.flatMap((one) => one.problems.map(word)))];
    return { status: problems.length === 0 ? 'up' : 'down', problems };
  }
}

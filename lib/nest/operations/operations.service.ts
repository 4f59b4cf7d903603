import { Inject, Injectable } from '@nestjs/common';
import { parseDuration, type Duration } from '../../duration.js';
import { ConnectionRegistry, type Connection } from '../connection/connection.registry.js';
import type { AsynqHealth, Judgement, Problem } from '../health/asynq-health.js';
import { HealthFactory } from '../health/health.factory.js';
import { ServerOrchestrator } from '../lifecycle/server.orchestrator.js';
import type { ResolvedOperationsOptions } from './operations.options.js';
import { OPERATIONS_OPTIONS } from './operations.tokens.js';

/** The reply to a probe. */
export interface OperationsReport {
  readonly status: 'up' | 'down';
  readonly problems: readonly string[];
}

/** Operations on all connections of the application at once: a process is down or drains as a whole. */
@Injectable()
export class OperationsService {
  private readonly watched = new Map<Connection, AsynqHealth>();

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
    return this.together(this.all().map((health) => health.judgeLife(this.options.live)));
  }

  async ready(): Promise<OperationsReport> {
    return this.together(await Promise.all(this.all().map((health) => health.judge(this.options.ready))));
  }

  /** Drains every server. @throws InvalidOptionError for an invalid timeout */
  async drain(timeout: Duration | string | undefined = this.options.drainTimeout) {
    const milliseconds = timeout === undefined ? Infinity : parseDuration(timeout, 'timeout');
    const servers = this.connections
      .all()
      .filter(({ options }) => options.server !== false)
      .map((connection) => this.orchestrator.serverOf(connection));
    const drained = await Promise.all(servers.map((server) => server.drain(milliseconds)));
    const active = servers.reduce((sum, server) => sum + server.active, 0);
    return { drained: drained.every(Boolean), active };
  }

  /** The health of each connection, kept so that checks share replies. */
  private all(): AsynqHealth[] {
    return this.connections.all().map((connection) => {
      let health = this.watched.get(connection);
      if (!health) this.watched.set(connection, (health = this.health.of(connection)));
      return health;
    });
  }

  private together(judgements: readonly Judgement[]): OperationsReport {
    const word = ({ text, summary }: Problem): string => (this.options.showDetails ? text : summary);
    const problems = [...new Set(judgements.flatMap((one) => one.problems.map(word)))];
    return { status: problems.length === 0 ? 'up' : 'down', problems };
  }
}

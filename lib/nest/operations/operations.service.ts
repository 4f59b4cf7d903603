import { Inject, Injectable } from '@nestjs/common';
import { parseDuration, type Duration } from '../../duration.js';
import { ConnectionRegistry } from '../connection.registry.js';
import type { HealthReport } from '../health/asynq-health.js';
import { HealthFactory } from '../health/health.factory.js';
import { ServerOrchestrator } from '../server.orchestrator.js';
import type { ResolvedOperationsOptions } from './operations.options.js';
import { OPERATIONS_OPTIONS } from './operations.tokens.js';

/** What a probe is told. */
export interface OperationsReport {
  readonly status: 'up' | 'down';
  readonly problems: readonly string[];
}

/** The operations on all connections of the application at once: what goes down or drains is the process. */
@Injectable()
export class OperationsService {
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
    const all = this.connections.all();
    return together(all.map((connection) => this.health.of(connection).live(this.options.live)));
  }

  async ready(): Promise<OperationsReport> {
    const all = this.connections.all();
    return together(await Promise.all(all.map((connection) => this.health.of(connection).ready(this.options.ready))));
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
}

function together(reports: readonly HealthReport[]): OperationsReport {
  const problems = [...new Set(reports.flatMap((report) => report.problems))];
  return { status: problems.length === 0 ? 'up' : 'down', problems };
}

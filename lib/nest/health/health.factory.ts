import { Injectable } from '@nestjs/common';
import { AsynqInspector } from '../../inspector/inspector.js';
import type { Connection } from '../connection/connection.registry.js';
import { ServerOrchestrator } from '../lifecycle/server.orchestrator.js';
import { AsynqHealth } from './asynq-health.js';

/** Creates the AsynqHealth of a connection. */
@Injectable()
export class HealthFactory {
  constructor(private readonly orchestrator: ServerOrchestrator) {}

  of(connection: Connection): AsynqHealth {
    const { broker, options } = connection;
    const stats = () => {
      const serves = options.server !== false && !broker.manual && this.hasHandlers(connection);
      return serves ? this.orchestrator.serverOf(connection).stats() : undefined;
    };
    const outbox = () => connection.transactions.outbox;
    const inspector = new AsynqInspector(broker);
    return new AsynqHealth({ broker, inspector, stats, outbox, autoStart: options.autoStart });
  }

  private hasHandlers(connection: Connection): boolean {
    const { orchestrator } = this;
    return orchestrator.handlersOf(connection).length + orchestrator.aggregatorsOf(connection).length > 0;
  }
}

import { Injectable } from '@nestjs/common';
import { InvalidHandlerError } from '../../errors.js';
import type { PeriodicTaskConfigs } from '../../scheduler/source-poller.js';
import { ConnectionRegistry, type Connection } from '../connection/connection.registry.js';
import { scopedSource } from '../names/nest.messages.js';
import { HandlerExplorer, type DiscoveredHandler } from '../discovery/handler.explorer.js';

/** Registers what decorators declare with the schedulers of an application, starts and stops them. */
@Injectable()
export class SchedulerOrchestrator {
  private readonly prepared = new Set<Connection>();
  private shutDown = false;

  constructor(
    private readonly registry: ConnectionRegistry,
    private readonly explorer: HandlerExplorer,
  ) {}

  /**
   * Registers the `@PeriodicTask`s and `@PeriodicTaskSource`s of a connection, once.
   *
   * @throws InvalidOptionError, InvalidTaskError, InvalidHandlerError for a wrong declaration
   */
  prepare(connection: Connection, handlers: readonly DiscoveredHandler[]): void {
    if (this.prepared.has(connection)) return;
    this.prepared.add(connection);
    for (const { metadata } of handlers) {
      const { periodic, pattern } = metadata;
      if (periodic) connection.scheduler.register(periodic.spec, pattern, periodic.payload, periodic.options);
    }
    for (const source of this.explorer.sources()) {
      const { label, metadata, wrapper, scoped, methodName } = source;
      this.registry.requireFor(source);
      if (metadata.connection !== connection.name) continue;
      if (scoped) throw new InvalidHandlerError(scopedSource(label));
      const instance = wrapper.instance as Record<string, PeriodicTaskConfigs>;
      connection.scheduler.addSource(label, () => instance[methodName]!(), metadata.interval);
    }
  }

  /** Schedules in every process with the module, also without a server: in the fleet each planned time is enqueued once. */
  boot(connection: Connection, handlers: readonly DiscoveredHandler[]): void {
    const { scheduler, options } = connection;
    if (!options.scheduler) return;
    this.prepare(connection, handlers);
    if (options.autoStart && scheduler.status === 'new' && !this.shutDown) scheduler.start();
  }

  async shutdown(): Promise<void> {
    this.shutDown = true;
    await Promise.all(this.registry.all().map(({ scheduler }) => scheduler.stop()));
  }
}

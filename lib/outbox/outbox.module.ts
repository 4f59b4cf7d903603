import {
  type BeforeApplicationShutdown,
  Inject,
  Module,
  type OnApplicationBootstrap,
  type OnModuleInit,
  Optional,
} from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { InvalidOptionError } from '../errors.js';
import { ConnectionRegistry } from '../nest/connection/connection.registry.js';
import { moveInHookOrder } from '../nest/lifecycle/hook-order.js';
import { ServerOrchestrator } from '../nest/lifecycle/server.orchestrator.js';
import { DEFAULT_CONNECTION } from '../nest/names/nest.constants.js';
import { notForRoot } from '../nest/names/nest.messages.js';
import { AsynqOutbox, type OutboxOfModule } from './outbox.js';
import { ConfigurableModuleClass } from './outbox.module.definition.js';
import { RESOLVED_OUTBOX_OPTIONS } from './outbox.tokens.js';
import type { ResolvedOutboxOptions } from './options.js';
import type { OutboxRelay } from './relay.js';

/**
 * An outbox: tasks that are enqueued in a transaction become rows of its database, and a relay brings them to Redis.
 * Nothing is lost, and nothing comes twice, wherever a process dies.
 *
 * @example
 * imports: [
 *   AsynqModule.forRoot({ connection, transactions: clsTransactions() }),
 *   AsynqOutboxModule.forRoot({ store: pgOutbox(pool) }),
 * ]
 */
@Module({
  providers: [
    {
      provide: AsynqOutbox,
      useFactory: (options: ResolvedOutboxOptions) => new AsynqOutbox(options),
      inject: [RESOLVED_OUTBOX_OPTIONS],
    },
  ],
  exports: [AsynqOutbox],
})
export class AsynqOutboxModule
  extends ConfigurableModuleClass
  implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown
{
  private relay: OutboxRelay | undefined;

  constructor(
    @Optional() @Inject(RESOLVED_OUTBOX_OPTIONS) private readonly options: ResolvedOutboxOptions,
    private readonly registry: ConnectionRegistry,
    private readonly orchestrator: ServerOrchestrator,
    @Optional() @Inject(AsynqOutbox) private readonly outbox: OutboxOfModule,
    modules: ModulesContainer,
  ) {
    super();
    if (!options) throw new InvalidOptionError(notForRoot('AsynqOutboxModule'));
    moveInHookOrder(modules, AsynqOutboxModule, 'starts first, stops last');
  }

  /** Runs before the hooks of other modules, which may enqueue. @throws InvalidOptionError when the tables are missing */
  async onModuleInit(): Promise<void> {
    const { connection = DEFAULT_CONNECTION } = this.options;
    this.relay = this.outbox.connect(this.registry.get(connection, 'AsynqOutboxModule'));
    await this.outbox.check();
  }

  onApplicationBootstrap(): void {
    const { relay } = this;
    if (!relay || !this.options.relay) return;
    this.orchestrator.whenBootFails(() => void relay.stop());
    relay.start();
  }

  /** After the servers have drained, whose handlers enqueue, and before databases are closed. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.relay?.stop();
    this.options?.store.close?.();
  }
}

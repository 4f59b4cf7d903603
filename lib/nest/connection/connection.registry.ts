import { Injectable } from '@nestjs/common';
import type { Broker } from '../../broker/broker.js';
import type { AsynqClient } from '../../client/client.js';
import { InvalidHandlerError, InvalidOptionError } from '../../errors.js';
import type { AsynqEvents } from '../../events/events.js';
import type { Relay } from '../../links/relay.js';
import type { AsynqScheduler } from '../../scheduler/scheduler.js';
import { nearest } from '../../validation.js';
import type { EventWriter } from '../../event-streams/event-writer.js';
import type { Redactor } from '../../redaction/redactor.js';
import type { Tracing } from '../../tracing/tracing.js';
import type { EnqueueTransactions } from '../../transactions/enqueue-transactions.js';
import type { AsynqTaskEvents } from '../events/asynq-task-events.js';
import type { ResolvedModuleOptions } from './asynq-module.options.js';
import type { QueueWatch } from './queue-watch.js';
import { connectionTwice, noConnection, unknownConnection } from '../names/nest.messages.js';

/** Everything that one `AsynqModule.forRoot` creates. */
export interface Connection {
  readonly name: string;
  readonly options: ResolvedModuleOptions;
  readonly broker: Broker;
  readonly client: AsynqClient;
  readonly events: AsynqEvents;
  /** Carries messages between linked tasks, for everything of this connection. */
  readonly relay: Relay;
  readonly scheduler: AsynqScheduler;
  readonly taskEvents: AsynqTaskEvents;
  readonly tracing: Tracing | undefined;
  /** `undefined`: nothing is hidden. */
  readonly redactor: Redactor | undefined;
  /** Writes task events to the stream of the fleet, if the module has the option `eventStream`. */
  readonly eventWriter: EventWriter | undefined;
  /** Reports queues that get tasks and have no server. */
  readonly queueWatch: QueueWatch;
  /** What the client asks before it enqueues. */
  readonly transactions: EnqueueTransactions;
}

/** The connections of an application, by name. */
@Injectable()
export class ConnectionRegistry {
  private readonly connections = new Map<string, Connection>();

  /** @throws InvalidOptionError when the name is taken */
  add(connection: Connection): void {
    if (this.connections.has(connection.name)) throw new InvalidOptionError(connectionTwice(connection.name));
    this.connections.set(connection.name, connection);
  }

  all(): readonly Connection[] {
    return [...this.connections.values()];
  }

  /** @throws InvalidOptionError when the application has none */
  requireSome(what: string): void {
    if (this.connections.size === 0) throw new InvalidOptionError(noConnection(what));
  }

  /**
   * @param what names the caller in the message
   * @throws InvalidOptionError naming the nearest known connection
   */
  get(name: string, what: string): Connection {
    const connection = this.connections.get(name);
    if (connection) return connection;
    throw new InvalidOptionError(this.unknown(name, what));
  }

  /** @throws InvalidHandlerError when a decorator names an unknown connection */
  requireFor({
    label,
    metadata,
  }: {
    readonly label: string;
    readonly metadata: { readonly connection: string };
  }): void {
    if (this.connections.has(metadata.connection)) return;
    throw new InvalidHandlerError(this.unknown(metadata.connection, label));
  }

  /** The error text for an unknown connection. */
  private unknown(name: string, what: string): string {
    const known = [...this.connections.keys()];
    return unknownConnection(what, name, known.join(', '), nearest(name, known));
  }
}

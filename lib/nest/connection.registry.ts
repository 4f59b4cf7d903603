import { Injectable } from '@nestjs/common';
import type { Broker } from '../broker/broker.js';
import type { AsynqClient } from '../client/client.js';
import { InvalidOptionError } from '../errors.js';
import type { AsynqEvents } from '../events/events.js';
import type { AsynqScheduler } from '../scheduler/scheduler.js';
import { nearest } from '../validation.js';
import type { ResolvedModuleOptions } from './asynq-module.options.js';
import { connectionTwice, unknownConnection } from './nest.messages.js';

/** Everything one `AsynqModule.forRoot` made. */
export interface Connection {
  readonly name: string;
  readonly options: ResolvedModuleOptions;
  readonly broker: Broker;
  readonly client: AsynqClient;
  readonly events: AsynqEvents;
  readonly scheduler: AsynqScheduler;
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

  has(name: string): boolean {
    return this.connections.has(name);
  }

  all(): readonly Connection[] {
    return [...this.connections.values()];
  }

  /**
   * @param what who asks, for the message
   * @throws InvalidOptionError naming the nearest known connection
   */
  get(name: string, what: string): Connection {
    const connection = this.connections.get(name);
    if (connection) return connection;
    throw new InvalidOptionError(this.unknown(name, what));
  }

  /** The text about a name that no connection has. */
  unknown(name: string, what: string): string {
    const known = [...this.connections.keys()];
    return unknownConnection(what, name, known.join(', '), nearest(name, known));
  }
}

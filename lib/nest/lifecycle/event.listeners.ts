import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { finishesWithin, isThenable } from '../../async.js';
import { SystemClock } from '../../clock.js';
import { InvalidHandlerError } from '../../errors.js';
import { taskOf } from '../../events/events.js';
import { consoleActionMatcher } from '../../events/console-action.js';
import { onTaskEvents } from '../../events/task-events.js';
import { ConnectionRegistry, type Connection } from '../connection/connection.registry.js';
import type { ConsoleActionMetadata } from '../decorators/on-console-action.decorator.js';
import type { TaskEventMetadata } from '../decorators/on-task-event.decorator.js';
import { CONSOLE_ACTION_METADATA, TASK_EVENT_METADATA } from '../names/nest.constants.js';
import { decoratedListener, enhancedListener, scopedListener } from '../names/nest.messages.js';
import { rejectEnhancers } from '../discovery/plain-method.js';
import { type Discovered, HandlerExplorer } from '../discovery/handler.explorer.js';

/** How long a shutdown waits for listeners. */
const LISTENER_TIMEOUT_MS = 5_000;

interface Listeners {
  readonly tasks: readonly Discovered<TaskEventMetadata>[];
  readonly console: readonly Discovered<ConsoleActionMetadata>[];
}

/** Calls the `@OnTaskEvent` and `@OnConsoleAction` methods of an application, and tracks those that still run. */
@Injectable()
export class EventListeners {
  private listeners: Listeners | undefined;
  private readonly attached = new Set<Connection>();
  private readonly running = new Map<Promise<void>, Connection>();

  constructor(
    private readonly registry: ConnectionRegistry,
    private readonly explorer: HandlerExplorer,
  ) {}

  /** Calls the listeners of a connection from now on. Idempotent. @throws InvalidHandlerError for a wrong declaration */
  attach(connection: Connection): void {
    if (this.attached.has(connection)) return;
    this.listeners ??= this.explore();
    this.attached.add(connection);
    const { tasks, console } = this.listeners;
    for (const listener of tasks.filter(({ metadata }) => metadata.connection === connection.name)) {
      const { names, filter } = listener.metadata;
      onTaskEvents(connection.events, connection.name, names, filter, (event) =>
        this.call(connection, listener, event.event, event),
      );
    }
    for (const listener of console.filter(({ metadata }) => metadata.connection === connection.name)) {
      const fits = consoleActionMatcher(listener.metadata.filter);
      connection.events.on('consoleAction', (action) => {
        if (fits(action)) this.call(connection, listener, 'consoleAction', action);
      });
    }
  }

  /** Resolves when no listener of the connection runs, with whether one did. */
  async settle(connection: Connection): Promise<boolean> {
    const own = [...this.running].filter(([, of]) => of === connection).map(([promise]) => promise);
    if (own.length === 0) return false;
    await Promise.all(own);
    await this.settle(connection);
    return true;
  }

  /** Waits for the listeners of the connection, for a limited time. */
  async close(connection: Connection): Promise<void> {
    // A test's clock does not move at shutdown.
    const clock = connection.broker.manual ? new SystemClock() : connection.broker.clock;
    if (await finishesWithin(this.settle(connection), LISTENER_TIMEOUT_MS, clock)) return;
    const listeners = [...this.running.values()].filter((of) => of === connection).length;
    connection.events.emit('listenersLeft', { listeners });
  }

  private explore(): Listeners {
    return {
      tasks: this.exploreBy<TaskEventMetadata>(TASK_EVENT_METADATA, '@OnTaskEvent'),
      console: this.exploreBy<ConsoleActionMetadata>(CONSOLE_ACTION_METADATA, '@OnConsoleAction'),
    };
  }

  private exploreBy<M extends { readonly connection: string }>(key: string, decorator: string): Discovered<M>[] {
    const found = this.explorer.search((method) => (Reflect.getOwnMetadata(key, method) ?? []) as readonly M[]);
    for (const listener of found) {
      if (listener.scoped) throw new InvalidHandlerError(scopedListener(decorator, listener.label));
      rejectEnhancers(listener, {
        enhanced: (label, kind) => enhancedListener(decorator, label, kind),
        decorated: (label) => decoratedListener(decorator, label),
      });
      this.registry.requireFor(listener);
    }
    return found;
  }

  /** Never throws: a listener must not affect the task. */
  private call<E extends object>(
    connection: Connection,
    { wrapper, methodName, label }: Discovered<unknown>,
    name: string,
    event: E,
  ): void {
    const report = (error: unknown): void =>
      connection.events.emit('listenerFailed', { event: name, error, listener: label, ...taskOf(event) });
    try {
      // Read from the instance at each call: a spy may have replaced the method.
      const returned = (wrapper.instance as Record<string, (event: E) => unknown>)[methodName]!(event);
      if (!isThenable(returned)) return;
      const run: Promise<void> = Promise.resolve(returned)
        .then(() => undefined, report)
        .finally(() => this.running.delete(run));
      this.running.set(run, connection);
    } catch (error) {
      report(error);
    }
  }
}

import { isMainThread } from 'node:worker_threads';
import { Injectable } from '@nestjs/common';
import type { ClockTimer } from '../../clock.js';
import { DEFAULT_SETTINGS } from '../../task/settings.js';
import { classOf, injectedTasks, type TasksRef } from '../calls/injected-tasks.js';
import type { Connection } from '../connection/connection.registry.js';
import { declaredClasses } from '../decorators/handler-method.js';
import { type DiscoveredHandler, HandlerExplorer } from '../discovery/handler.explorer.js';

/** An application calls `enableShutdownHooks` before or after it has started. */
const DELAY_MS = 5_000;

/** Looks for mistakes of an application that would show late, or never. Only events come of it. */
@Injectable()
export class SetupChecks {
  private timer: ClockTimer | undefined;

  constructor(private readonly explorer: HandlerExplorer) {}

  /** @param started whose servers have started, each with its handlers */
  begin(started: readonly (readonly [Connection, readonly DiscoveredHandler[]])[]): void {
    const [first] = started;
    if (!first) return;
    for (const [connection, handlers] of started) this.watchQueues(connection, handlers);
    this.reportUnprovided(first[0]);
    this.timer = first[0].broker.clock.after(DELAY_MS, () => reportUnhandledSignal(first[0]));
  }

  close(): void {
    this.timer?.cancel();
  }

  /** The queues that definitions name may be served by other processes. */
  private watchQueues({ queueWatch, options }: Connection, handlers: readonly DiscoveredHandler[]): void {
    const usual = options.defaults?.queue ?? DEFAULT_SETTINGS.queue;
    for (const { metadata, label } of handlers) {
      const { periodic, task } = metadata;
      const queue = periodic ? (periodic.options.queue ?? usual) : definedQueue(task);
      if (queue !== undefined) queueWatch.add(queue, label);
    }
  }

  /** A class that is only called, by `@InjectTasks`, needs no instance. */
  private reportUnprovided({ events }: Connection): void {
    const provided = this.explorer.provided();
    const called = new Set([...injectedTasks()].map(calledClass));
    const missing = [...declaredClasses()].filter((one) => !provided.has(one) && !called.has(one));
    if (missing.length === 0) return;
    events.emit('handlersNotProvided', { classes: missing.map((one) => (one as { name: string }).name) });
  }
}

const definedQueue = (task: DiscoveredHandler['metadata']['task']): string | undefined =>
  typeof task === 'string' ? undefined : task.options?.queue;

function calledClass(ref: TasksRef): object | undefined {
  try {
    return classOf(ref);
  } catch {
    return undefined; // the module has refused it, or never saw it
  }
}

/** A worker thread gets no signals. */
function reportUnhandledSignal({ events }: Connection): void {
  if (isMainThread && process.listenerCount('SIGTERM') === 0) events.emit('shutdownHooksMissing', {});
}

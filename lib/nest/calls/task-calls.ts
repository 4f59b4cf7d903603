import { Injectable } from '@nestjs/common';
import type { EnqueueOptions } from '../../client/types.js';
import { InvalidHandlerError, InvalidTaskError } from '../../errors.js';
import type { TaskInfo } from '../../task/info.js';
import { requireObject } from '../../validation.js';
import { ConnectionRegistry } from '../connection/connection.registry.js';
import { optionsInCall } from '../names/nest.messages.js';
import { calledMethods, type CalledHandler } from './called-handlers.js';
import type { CallOptions, TasksClass, TasksOf } from './tasks-of.js';

type Enqueue = (args: readonly unknown[], options: CallOptions | undefined) => Promise<TaskInfo>;

/** Makes what `@InjectTasks` injects. */
@Injectable()
export class TaskCalls {
  private readonly made = new Map<TasksClass, object>();

  constructor(private readonly registry: ConnectionRegistry) {}

  /** @throws InvalidHandlerError when the class has no handlers, or one with a reserved name */
  of<C extends object>(tasks: TasksClass<C>): TasksOf<C> {
    let calls = this.made.get(tasks);
    if (!calls) this.made.set(tasks, (calls = this.make(tasks)));
    return calls as TasksOf<C>;
  }

  private make(tasks: TasksClass): object {
    const enqueues = Array.from(calledMethods(tasks), ([name, one]) => [name, this.enqueueOf(one)] as const);
    return callsWith(new Map(enqueues), undefined);
  }

  /** The client is looked up at a call: it may be made after the one who injects these calls. */
  private enqueueOf(handler: CalledHandler | string): Enqueue {
    if (typeof handler === 'string') {
      return () => {
        throw new InvalidHandlerError(handler);
      };
    }
    const { label, metadata, task } = handler;
    return (args, options) => {
      if (args.length > 1) throw new InvalidTaskError(optionsInCall(label));
      const { client } = this.registry.get(metadata.connection, label);
      return client.enqueue(task as string, args[0], options as EnqueueOptions<unknown> | undefined);
    };
  }
}

/** A call costs what `enqueue` costs: it adds no promise. */
function callsWith(enqueues: ReadonlyMap<string, Enqueue>, options: CallOptions | undefined): object {
  const calls: Record<string, unknown> = {
    with: (more: CallOptions): object => callsWith(enqueues, merged(options, more)),
  };
  for (const [name, enqueue] of enqueues) calls[name] = (...args: unknown[]) => enqueue(args, options);
  return calls;
}

function merged(options: CallOptions | undefined, more: CallOptions): CallOptions {
  requireObject(more, 'options of with(…)', InvalidTaskError);
  if (!options) return more;
  const headers = options.headers && more.headers ? { headers: { ...options.headers, ...more.headers } } : undefined;
  return { ...options, ...more, ...headers };
}

import { Injectable, type OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import type { EnqueueOptions } from '../../client/types.js';
import { InvalidHandlerError, InvalidTaskError } from '../../errors.js';
import type { ResultOptions } from '../../results/options.js';
import { requireObject } from '../../validation.js';
import { ConnectionRegistry } from '../connection/connection.registry.js';
import { optionsInCall } from '../names/nest.messages.js';
import { CallerCheck } from './caller-check.js';
import { calledMethods, type CalledHandler } from './called-handlers.js';
import type { CallOptions, TasksClass, TasksOf } from './tasks-of.js';

/** @param wait how to wait for the result; `undefined`: it only enqueues */
type Enqueue = (
  args: readonly unknown[],
  options: CallOptions | undefined,
  wait: ResultOptions | undefined,
) => Promise<unknown>;

/** Makes what `@InjectTasks` injects. */
@Injectable()
export class TaskCalls implements OnModuleInit {
  private readonly made = new Map<TasksClass, object>();
  private readonly checks: CallerCheck[] = [];

  constructor(
    private readonly registry: ConnectionRegistry,
    private readonly moduleRef: ModuleRef,
  ) {}

  /** @throws InvalidHandlerError when the pipes of `validate: 'both'` are missing or cannot be made here */
  async onModuleInit(): Promise<void> {
    for (const check of this.checks) await check.prepare();
  }

  /** @throws InvalidHandlerError when the class has no handlers, or one with a reserved name */
  of<C extends object>(tasks: TasksClass<C>): TasksOf<C> {
    let calls = this.made.get(tasks);
    if (!calls) this.made.set(tasks, (calls = this.make(tasks)));
    return calls as TasksOf<C>;
  }

  private make(tasks: TasksClass): object {
    const enqueues = Array.from(calledMethods(tasks), ([name, one]) => [name, this.enqueueOf(one, tasks)] as const);
    return callsWith(new Map(enqueues), undefined);
  }

  /** The client is looked up at a call: it may be made after the one who injects these calls. */
  private enqueueOf(handler: CalledHandler | string, tasks: TasksClass): Enqueue {
    if (typeof handler === 'string') {
      return () => {
        throw new InvalidHandlerError(handler);
      };
    }
    const { label, metadata, task } = handler;
    const check = metadata.validate === 'both' ? new CallerCheck(handler, tasks, this.moduleRef) : undefined;
    if (check) this.checks.push(check);
    return (args, options, wait) => {
      if (isOptions(args)) throw new InvalidTaskError(optionsInCall(label));
      const { client, options: module } = this.registry.get(metadata.connection, label);
      const enqueue = (): Promise<unknown> =>
        wait
          ? client.callFor(task, args[0], options ?? {}, wait)
          : client.enqueue(task as string, args[0], options as EnqueueOptions<unknown> | undefined);
      return check ? check.of(args[0], module.codec).then(enqueue) : enqueue();
    };
  }
}

/** A call costs what `enqueue` costs: it adds no promise. */
function callsWith(enqueues: ReadonlyMap<string, Enqueue>, options: CallOptions | undefined): object {
  const calls: Record<string, unknown> = {
    with: (more: CallOptions): object => callsWith(enqueues, merged(options, more)),
    call: (wait: ResultOptions = {}): object => methodsOf(enqueues, options, wait),
  };
  return Object.assign(methodsOf(enqueues, options, undefined), calls);
}

function methodsOf(
  enqueues: ReadonlyMap<string, Enqueue>,
  options: CallOptions | undefined,
  wait: ResultOptions | undefined,
): Record<string, unknown> {
  const methods: Record<string, unknown> = {};
  for (const [name, enqueue] of enqueues) methods[name] = (...args: unknown[]) => enqueue(args, options, wait);
  return methods;
}

/** Options would be lost in silence. Not so what `payloads.map(emails.welcome)` passes. */
const isOptions = (args: readonly unknown[]): boolean => args.length === 2 && typeof args[1] === 'object';

function merged(options: CallOptions | undefined, more: CallOptions): CallOptions {
  requireObject(more, 'options of with(…)', InvalidTaskError);
  if (!options) return more;
  const headers = options.headers && more.headers ? { headers: { ...options.headers, ...more.headers } } : undefined;
  return { ...options, ...more, ...headers };
}

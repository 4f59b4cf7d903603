import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { ApplicationConfig, ContextIdFactory, ExternalContextCreator, type ContextId } from '@nestjs/core';
import { isObservable, lastValueFrom } from 'rxjs';
import { isThenable } from '../../async.js';
import type { AsynqEvents } from '../../events/events.js';
import type { TaskHandlerEntry } from '../../server/attempt/handler.js';
import type { PayloadCodec } from '../../task/codec.js';
import type { TaskContext } from '../../task/context.js';
import { ASYNQ_CONTEXT_TYPE, TASK_PARAMS_METADATA } from '../nest.constants.js';
import type { DiscoveredHandler, HandlerMethod } from '../discovery/handler.explorer.js';
import { Enhancers } from './enhancers.js';
import { ExceptionFilters } from './exception-filters.js';
import { judgeFailure, notePipeFailures, undecodable, type InvalidPayloadPolicy } from './invalid-payload.js';
import { forHandler } from './nest-pipeline.js';
import { planParams, taskParamsFactory, type ParamPlan } from './param-plan.js';
import { ScopedInstances } from './scoped-instances.js';
import { TaskExecutionContext } from './task-execution-context.js';

/** What handlers of one connection have in common. */
export interface HandlerSettings {
  readonly codec: PayloadCodec;
  readonly invalidPayload: InvalidPayloadPolicy;
  readonly events: AsynqEvents;
}

type Invoke = (payload: unknown, task: TaskContext) => unknown;
type Handle = TaskHandlerEntry['handle'];

/** Turns discovered methods into what the server calls: plainly when nothing wraps them, else through Nest's pipeline. */
@Injectable()
export class TaskHandlerFactory {
  private readonly creator: ExternalContextCreator;

  constructor(
    creator: ExternalContextCreator,
    private readonly config: ApplicationConfig,
    private readonly enhancers: Enhancers,
  ) {
    this.creator = notePipeFailures(creator);
  }

  create(handler: DiscoveredHandler, settings: HandlerSettings): TaskHandlerEntry {
    const plan = planParams(handler.owner, handler.methodName);
    this.enhancers.requireReachable(handler, plan);
    const { pattern, retryDelay, isFailure, limits, codec = settings.codec } = handler.metadata;
    const read = plan.decodes ? decoder(codec) : (task: TaskContext) => task.payload;
    const wrapped = this.enhancers.wrap(handler, plan);
    const handle =
      wrapped || handler.scoped
        ? this.piped(handler, plan, read, settings, wrapped)
        : direct(handler, plan, read, settings);
    return { pattern, retryDelay, isFailure, limits, handle };
  }

  /** The way through guards, interceptors, pipes and filters, and the one of scoped handlers. */
  private piped(
    handler: DiscoveredHandler,
    plan: ParamPlan,
    read: (task: TaskContext) => unknown,
    settings: HandlerSettings,
    wrapped: boolean,
  ): Handle {
    const filters = new ExceptionFilters(handler, this.config, settings.events);
    const invoker = this.invoker(handler, plan, wrapped);
    return async (task) => {
      let payload: unknown = task.payload;
      const { contextId, invoke } = invoker(task);
      try {
        payload = read(task);
        const result = await invoke(payload, task);
        return isObservable(result) ? await lastValueFrom(result) : result; // its last value, as everywhere in Nest
      } catch (error) {
        const context = new TaskExecutionContext([payload, task], handler.instanceClass, handler.method);
        throw judgeFailure(await filters.apply(error, context, contextId), task.type, settings.invalidPayload);
      }
    };
  }

  /** What to call for a task, and in which of Nest's contexts. */
  private invoker(
    handler: DiscoveredHandler,
    plan: ParamPlan,
    wrapped: boolean,
  ): (task: TaskContext) => { contextId: ContextId; invoke: Invoke } {
    const creator = forHandler(this.creator, handler);
    const invokeOn = (instance: object, contextId?: ContextId): Invoke =>
      wrapped ? throughNest(creator, handler, instance, contextId) : (...args) => plan.call(instance, ...args);
    if (!handler.scoped) {
      const instance = handler.wrapper.instance as object;
      const invoke = followingMethod(instance, handler.methodName, () => invokeOn(instance));
      const shared = { contextId: ContextIdFactory.create(), invoke };
      return () => shared;
    }
    const scoped = new ScopedInstances(handler);
    return (task) => {
      const contextId = scoped.contextOf(task);
      const invoke: Invoke = async (payload) => invokeOn(await scoped.resolve(contextId), contextId)(payload, task);
      return { contextId, invoke };
    };
  }
}

function throughNest(
  creator: ExternalContextCreator,
  handler: DiscoveredHandler,
  instance: object,
  contextId?: ContextId,
): Invoke {
  return creator.create(
    instance,
    currentMethod(instance, handler),
    handler.methodName,
    TASK_PARAMS_METADATA,
    taskParamsFactory,
    contextId,
    handler.wrapper.id,
    { guards: true, interceptors: true, filters: false },
    ASYNQ_CONTEXT_TYPE,
  );
}

/** Makes an invocation, and makes it anew when the method is no longer the same: a spy may come late, and go again. */
function followingMethod(instance: object, methodName: string, make: () => Invoke): Invoke {
  const methodOf = (): unknown => (instance as Record<string, unknown>)[methodName];
  let method = methodOf();
  let invoke = make();
  return (payload, task) => {
    if (methodOf() !== method) [method, invoke] = [methodOf(), make()];
    return invoke(payload, task);
  };
}

/**
 * The method as the instance has it now: aspects and spies replace it on the instance. What Nest reads from the method goes along
 * with it, so that no guard is lost.
 */
function currentMethod(instance: object, { method, methodName }: DiscoveredHandler): HandlerMethod {
  const current = (instance as Record<string, HandlerMethod>)[methodName]!;
  if (current === method) return method;
  for (const key of Reflect.getMetadataKeys(method) as string[]) {
    if (!Reflect.hasMetadata(key, current)) Reflect.defineMetadata(key, Reflect.getMetadata(key, method), current);
  }
  return current;
}

/**
 * The way without a pipeline: the payload is decoded, the method called, nothing else. It runs once per task at tens of thousands a
 * second, so it is written without `async`, whose promises and turns would cost more than all the rest.
 */
function direct(
  handler: DiscoveredHandler,
  plan: ParamPlan,
  read: (task: TaskContext) => unknown,
  { invalidPayload }: HandlerSettings,
): Handle {
  const instance = handler.wrapper.instance as object;
  const fail = (error: unknown): never => {
    throw judgeFailure(error, handler.metadata.pattern, invalidPayload);
  };
  const settle = (result: unknown): unknown => (isObservable(result) ? lastValueFrom(result).catch(fail) : result);
  return (task) => {
    try {
      const answer = plan.call(instance, read(task), task);
      // What is no real promise need not answer with one.
      return isThenable(answer) ? Promise.resolve(answer).then(settle, fail) : settle(answer);
    } catch (error) {
      return fail(error);
    }
  };
}

const decoder =
  (codec: PayloadCodec) =>
  (task: TaskContext): unknown => {
    try {
      return codec.decode(task.payload);
    } catch (error) {
      throw undecodable(task.type, error);
    }
  };

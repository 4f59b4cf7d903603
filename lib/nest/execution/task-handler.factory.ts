import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { ApplicationConfig, ContextIdFactory, ExternalContextCreator, type ContextId } from '@nestjs/core';
import { isObservable, lastValueFrom } from 'rxjs';
import { isThenable } from '../../async.js';
import { InvalidHandlerError } from '../../errors.js';
import type { AsynqEvents } from '../../events/events.js';
import type { TaskHandlerEntry } from '../../server/index.js';
import type { PayloadCodec } from '../../task/codec.js';
import type { TaskContext } from '../../task/context.js';
import { type ReadVersions, upgraded } from '../../task/payload-versions.js';
import { PAYLOAD_VERSION_HEADER, payloadVersion } from '../../wire/payload-version.js';
import { ASYNQ_CONTEXT_TYPE, TASK_PARAMS_METADATA } from '../names/nest.constants.js';
import { bytesOfVersion, wrongVersion } from '../names/nest.messages.js';
import type { DiscoveredHandler } from '../discovery/handler.explorer.js';
import type { HandlerMethod } from '../discovery/methods-of.js';
import { Enhancers } from './enhancers.js';
import { ExceptionFilters } from './exception-filters.js';
import { judgeFailure, recordPipeErrors, undecodable, type InvalidPayloadPolicy } from './invalid-payload.js';
import { forHandler } from './nest-pipeline.js';
import { planParams, taskParamsFactory, type ParamPlan } from './param-plan.js';
import { ScopedInstances } from './scoped-instances.js';
import { TaskExecutionContext } from './task-execution-context.js';

/** The settings of all handlers of one connection. */
export interface HandlerSettings {
  readonly codec: PayloadCodec;
  readonly invalidPayload: InvalidPayloadPolicy;
  readonly events: AsynqEvents;
}

type Invoke = (payload: unknown, task: TaskContext) => unknown;
type Handle = TaskHandlerEntry['handle'];

/** Creates the handlers of the server from discovered methods: called directly without enhancers, else through Nest's pipeline. */
@Injectable()
export class TaskHandlerFactory {
  private readonly creator: ExternalContextCreator;

  constructor(
    creator: ExternalContextCreator,
    private readonly config: ApplicationConfig,
    private readonly enhancers: Enhancers,
  ) {
    this.creator = recordPipeErrors(creator);
  }

  create(handler: DiscoveredHandler, settings: HandlerSettings): TaskHandlerEntry {
    const plan = planParams(handler.owner, handler.methodName);
    this.enhancers.requireReachable(handler, plan);
    const { pattern, retryDelay, isFailure, limits, versions, codec = settings.codec } = handler.metadata;
    if (versions && plan.takesBytes) throw new InvalidHandlerError(bytesOfVersion(handler.label));
    const read = plan.decodes ? decoder(codec, versions) : (task: TaskContext) => task.payload;
    const wrapped = this.enhancers.wrap(handler, plan);
    const handle =
      wrapped || handler.scoped
        ? this.throughPipeline(handler, plan, read, settings, wrapped)
        : direct(handler, plan, read, settings);
    return { pattern, retryDelay, isFailure, limits, version: versions?.version, handle };
  }

  /** A handler with guards, interceptors, pipes or filters, or with an instance per task. */
  private throughPipeline(
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

  /** Returns what to call for a task, and its context id. */
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

/** Creates the invocation, and again when the method has changed: a spy may be set and restored at any time. */
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
 * The current method of the instance: aspects and spies replace it. The metadata of the original are copied, so that no guard is
 * lost.
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
 * A handler without a pipeline: it decodes the payload and calls the method. It runs tens of thousands of times a second, so it is
 * written without `async`, whose promises would cost more than all the rest.
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
      const returned = plan.call(instance, read(task), task);
      // A thenable's `then` need not return a promise.
      return isThenable(returned) ? Promise.resolve(returned).then(settle, fail) : settle(returned);
    } catch (error) {
      return fail(error);
    }
  };
}

/** Decodes payloads, and brings older ones up. */
function decoder(codec: PayloadCodec, versions: ReadVersions | undefined): (task: TaskContext) => unknown {
  return (task) => {
    try {
      const payload = codec.decode(task.payload);
      return versions ? current(payload, task, versions) : payload;
    } catch (error) {
      throw undecodable(task.type, error);
    }
  };
}

/** The payload in the version of the handler. One that is newer never comes here. */
function current(payload: unknown, { headers }: TaskContext, versions: ReadVersions): unknown {
  const version = payloadVersion(headers);
  if (Number.isNaN(version)) throw new TypeError(wrongVersion(headers[PAYLOAD_VERSION_HEADER]!));
  return version < versions.version ? upgraded(versions, payload, version) : payload;
}

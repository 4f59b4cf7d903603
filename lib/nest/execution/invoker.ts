import 'reflect-metadata';
import { ContextIdFactory, type ContextId, type ExternalContextCreator } from '@nestjs/core';
import { ASYNQ_CONTEXT_TYPE, TASK_PARAMS_METADATA } from '../names/nest.constants.js';
import type { DiscoveredHandler } from '../discovery/handler.explorer.js';
import type { HandlerMethod } from '../discovery/methods-of.js';
import type { GlobalEnhancers } from './global-enhancers.js';
import { forHandler } from './nest-pipeline.js';
import { taskParamsFactory, type ParamPlan } from './param-plan.js';
import { ScopedInstances } from './scoped-instances.js';

/** Calls the method with the payload and the context of a task, or with those of a batch. */
type Invoke = (payload: unknown, context: unknown) => unknown;

/** Returns what to call for a task or a batch, and the context id of the call. */
export type Invoker = (context: object) => { readonly contextId: ContextId; readonly invoke: Invoke };

/** How the methods of one connection are called. */
export interface Pipeline {
  readonly creators: ExternalContextCreator;
  readonly globals: GlobalEnhancers;
  /** Whether guards, interceptors and pipes of the whole application run. */
  readonly usesGlobals: boolean;
}

/** @param wrapped whether the method has guards, interceptors or pipes */
export function invokerOf(
  { creators, globals, usesGlobals }: Pipeline,
  handler: DiscoveredHandler,
  plan: ParamPlan,
  wrapped: boolean,
): Invoker {
  const creator = forHandler(creators, handler, globals, usesGlobals);
  const invokeOn = (instance: object, contextId?: ContextId): Invoke =>
    wrapped ? throughNest(creator, handler, instance, contextId) : (...args) => plan.call(instance, ...args);
  if (!handler.scoped) {
    const instance = handler.wrapper.instance as object;
    const invoke = followingMethod(instance, handler.methodName, () => invokeOn(instance));
    const shared = { contextId: ContextIdFactory.create(), invoke };
    return () => shared;
  }
  const scoped = new ScopedInstances(handler);
  return (context) => {
    const contextId = scoped.contextOf(context);
    const invoke: Invoke = async (payload) => invokeOn(await scoped.resolve(contextId), contextId)(payload, context);
    return { contextId, invoke };
  };
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
  return (payload, context) => {
    if (methodOf() !== method) [method, invoke] = [methodOf(), make()];
    return invoke(payload, context);
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

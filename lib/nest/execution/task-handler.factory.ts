import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { ApplicationConfig, ExternalContextCreator } from '@nestjs/core';
import { isObservable, lastValueFrom } from 'rxjs';
import { isThenable } from '../../async.js';
import { InvalidHandlerError, InvalidLimitKeyError, RevokeTask, SkipRetry } from '../../errors.js';
import type { AsynqEvents } from '../../events/events.js';
import type { SingleHandlerEntry, TaskHandlerEntry } from '../../server/index.js';
import { limitKeyOf } from '../../task/limit-key.js';
import type { PayloadCodec } from '../../task/codec.js';
import type { TaskContext } from '../../task/context.js';
import { PostponeTask } from '../../task/postpone.js';
import { type ReadVersions, upgraded } from '../../task/payload-versions.js';
import { PAYLOAD_VERSION_HEADER, payloadVersion } from '../../wire/payload-version.js';
import { bareParameter, bytesOfVersion, stepsInThread, wrongVersion } from '../names/nest.messages.js';
import type { DiscoveredHandler } from '../discovery/handler.explorer.js';
import { batchHandling } from './batch-handling.js';
import { Enhancers } from './enhancers.js';
import { ExceptionFilters } from './exception-filters.js';
import { undecorated } from './handler-params.js';
import { explained, GlobalEnhancers } from './global-enhancers.js';
import { judgeFailure, recordPipeErrors, undecodable, type InvalidPayloadPolicy } from './invalid-payload.js';
import { invokerOf } from './invoker.js';
import { watched } from './misspelt-fields.js';
import { planParams, type ParamPlan } from './param-plan.js';
import { TaskExecutionContext } from './task-execution-context.js';

/** The settings of all handlers of one connection. */
export interface HandlerSettings {
  readonly codec: PayloadCodec;
  readonly invalidPayload: InvalidPayloadPolicy;
  readonly events: AsynqEvents;
  /** Whether guards, pipes, interceptors and filters of the whole application run for tasks. */
  readonly globalEnhancers: boolean;
}

type Handle = SingleHandlerEntry['handle'];

/** Creates the handlers of the server from discovered methods: called directly without enhancers, else through Nest's pipeline. */
@Injectable()
export class TaskHandlerFactory {
  private readonly creators: ExternalContextCreator;
  private readonly globals: GlobalEnhancers;

  constructor(
    creator: ExternalContextCreator,
    private readonly config: ApplicationConfig,
    private readonly enhancers: Enhancers,
  ) {
    this.globals = new GlobalEnhancers(config);
    this.creators = recordPipeErrors(creator, this.globals);
  }

  create(handler: DiscoveredHandler, settings: HandlerSettings): TaskHandlerEntry {
    const { pattern, retryDelay, isFailure, limits, versions, batch, codec = settings.codec } = handler.metadata;
    const plan = planParams(handler.owner, handler.methodName, batch !== undefined);
    const bare = undecorated(handler.owner, handler.methodName, handler.method.length);
    if (bare !== undefined) throw new InvalidHandlerError(bareParameter(handler.label, bare));
    const { globalEnhancers: usesGlobals } = settings;
    this.enhancers.requireReachable(handler, plan, usesGlobals);
    if (versions && plan.takesBytes) throw new InvalidHandlerError(bytesOfVersion(handler.label));
    if (handler.metadata.thread && plan.takesSteps) throw new InvalidHandlerError(stepsInThread(handler.label));
    const decode = plan.decodes ? decoder(codec, versions) : (task: TaskContext) => task.payload;
    const read = plan.fields.length > 0 ? watched(decode, plan.fields, handler.label, settings.events) : decode;
    const wrapped = this.enhancers.wrap(handler, plan, usesGlobals);
    const cost = costOf(handler, codec, settings);
    const limitKey = limitKeyOfTasks(handler, codec, settings);
    const steps = handler.metadata.steps ?? (plan.takesSteps ? {} : undefined);
    const entry = { pattern, retryDelay, isFailure, limits, cost, limitKey, version: versions?.version, steps };
    if (batch) {
      const { invoker, filters } = this.pipelineOf(handler, plan, settings, wrapped);
      return { ...entry, batch: batchHandling({ handler, plan, read, invoker, filters, settings, ...batch }) };
    }
    const handle =
      wrapped || handler.scoped
        ? this.throughPipeline(handler, plan, read, settings, wrapped)
        : direct(handler, plan, read, settings);
    return { ...entry, handle };
  }

  private pipelineOf(handler: DiscoveredHandler, plan: ParamPlan, settings: HandlerSettings, wrapped: boolean) {
    const { globalEnhancers: usesGlobals, events } = settings;
    const { creators, globals, config } = this;
    return {
      invoker: invokerOf({ creators, globals, usesGlobals }, handler, plan, wrapped),
      filters: new ExceptionFilters(handler, usesGlobals ? config : undefined, events),
    };
  }

  /** A handler with guards, interceptors, pipes or filters, or with an instance per task. */
  private throughPipeline(
    handler: DiscoveredHandler,
    plan: ParamPlan,
    read: (task: TaskContext) => unknown,
    settings: HandlerSettings,
    wrapped: boolean,
  ): Handle {
    const { invoker, filters } = this.pipelineOf(handler, plan, settings, wrapped);
    return async (task) => {
      let payload: unknown = task.payload;
      const { contextId, invoke } = invoker(task);
      try {
        payload = read(task);
        const result = await invoke(payload, task);
        return orThrow(isObservable(result) ? await lastValueFrom(result) : result); // its last value, as everywhere in Nest
      } catch (error) {
        const context = new TaskExecutionContext([payload, task], handler.instanceClass, handler.method);
        const failure = explained(await filters.apply(error, context, contextId), task.type);
        throw judgeFailure(failure, task.type, settings.invalidPayload);
      }
    };
  }
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
  const settle = (result: unknown): unknown =>
    isObservable(result) ? lastValueFrom(result).then(orThrow).catch(fail) : orThrow(result);
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

/** They say how the task ends: who returns one, and does not throw it, means the same. */
function orThrow(result: unknown): unknown {
  if (result instanceof SkipRetry || result instanceof RevokeTask || result instanceof PostponeTask) throw result;
  return result;
}

/** What a task costs of the rate of the handler: decodes its payload, also where the handler does not. */
function costOf(
  { metadata }: DiscoveredHandler,
  codec: PayloadCodec,
  { invalidPayload }: HandlerSettings,
): TaskHandlerEntry['cost'] {
  const rate = metadata.limits?.rateLimit;
  if (!rate?.cost) return undefined;
  const read = decoder(codec, metadata.versions);
  return (task) => rate.cost!(readOr(() => read(task), task.type, invalidPayload));
}

function limitKeyOfTasks(
  { metadata }: DiscoveredHandler,
  codec: PayloadCodec,
  { invalidPayload }: HandlerSettings,
): TaskHandlerEntry['limitKey'] {
  const { limits } = metadata;
  if (!limits?.limitBy) return undefined;
  const read = decoder(codec, metadata.versions);
  const limitBy = (payload: unknown) => limits.limitBy!(payload);
  return (task) => {
    const payload = readOr(() => read(task), task.type, invalidPayload);
    return limitKeyOf(limitBy, payload, task.type, InvalidLimitKeyError);
  };
}

/** @throws the error that the task fails with when its payload cannot be read */
function readOr(read: () => unknown, type: string, policy: InvalidPayloadPolicy): unknown {
  try {
    return read();
  } catch (error) {
    throw judgeFailure(error, type, policy);
  }
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

import 'reflect-metadata';
import type { ExceptionFilter, Type } from '@nestjs/common';
import { ModuleRef, type ApplicationConfig, type ContextId } from '@nestjs/core';
import { isObservable, lastValueFrom } from 'rxjs';
import type { AsynqEvents } from '../../events/events.js';
import { hasCode } from '../../error-code.js';
import { NEST_METADATA } from '../names/nest.constants.js';
import type { DiscoveredHandler } from '../discovery/handler.explorer.js';
import { getTaskContexts } from './asynq-context.js';
import { boundEnhancers } from './enhancers.js';
import type { TaskExecutionContext } from './task-execution-context.js';

/** A filter, and how to get its instance. */
interface Candidate {
  readonly catches: (error: unknown) => boolean;
  readonly instance: (contextId: ContextId) => Promise<ExceptionFilter> | ExceptionFilter;
}

/**
 * Runs the exception filter of a failed task, chosen like Nest's: method before class before application, the last declared first,
 * at most one. Nest's own runner would take the return value of an asynchronous filter as the handler's result, and so turn a
 * failure into a success.
 */
export class ExceptionFilters {
  private readonly candidates: readonly Candidate[];

  constructor(
    private readonly handler: DiscoveredHandler,
    /** `undefined`: those of the application are left out. */
    config: ApplicationConfig | undefined,
    private readonly events: AsynqEvents,
  ) {
    const globals = (config?.getGlobalFilters() ?? []).map((filter) => boundCandidate(handler, filter));
    const scoped = (config?.getGlobalRequestFilters() ?? []).map((wrapper) => ({
      catches: catcher(wrapper.metatype as Type),
      instance: (contextId: ContextId) => resolveIn(wrapper.host!, wrapper.token as Type, contextId),
    }));
    const bound = boundEnhancers(handler, 'filters').map((filter) => boundCandidate(handler, filter));
    this.candidates = [...globals, ...scoped, ...bound].reverse();
  }

  /**
   * Returns the error that the task fails with. What a filter returns changes nothing. An error it throws counts if it decides about
   * the task (SkipRetry, RevokeTask) or has the original as its cause. Any other one is a bug of the filter (such as one for HTTP
   * only) and is reported, while the task keeps its own error.
   */
  async apply(error: unknown, context: TaskExecutionContext, contextId: ContextId): Promise<unknown> {
    if (hasCode(error, 'ASYNQ_TASK_SUSPENDED')) return error; // nothing has failed
    const filter = this.candidates.find((candidate) => candidate.catches(error));
    if (!filter) return error;
    try {
      const instance = await filter.instance(contextId);
      const run = instance.catch.bind(instance);
      const answer: unknown = run(error, context);
      await (isObservable(answer) ? lastValueFrom(answer, { defaultValue: undefined }) : answer);
    } catch (thrown) {
      if (thrown === error || decides(thrown) || carries(thrown, error)) return thrown;
      const { id, type, queue } = getTaskContexts(context)[0]!;
      const hook = `exception filter of ${this.handler.label}`;
      this.events.emit('hookFailed', { hook, error: thrown, task: { id, type, queue } });
    }
    return error;
  }
}

function boundCandidate({ wrapper }: DiscoveredHandler, filter: object | Type): Candidate {
  if (typeof filter !== 'function') {
    return { catches: catcher(filter.constructor as Type), instance: () => filter as ExceptionFilter };
  }
  return {
    catches: catcher(filter as Type),
    instance: (contextId) => resolveIn(wrapper.host!, filter as Type, contextId),
  };
}

type HostModule = NonNullable<DiscoveredHandler['wrapper']['host']>;

const resolveIn = (host: HostModule, token: Type, contextId: ContextId): Promise<ExceptionFilter> =>
  host.getProviderByKey<ModuleRef>(ModuleRef).instance.resolve(token, contextId, { strict: true });

function catcher(filter: Type): Candidate['catches'] {
  const types = (Reflect.getMetadata(NEST_METADATA.caughtTypes, filter) ?? []) as Type[];
  return (error) => types.length === 0 || types.some((type) => error instanceof type);
}

const decides = (error: unknown): boolean => hasCode(error, 'ASYNQ_SKIP_RETRY') || hasCode(error, 'ASYNQ_REVOKE_TASK');

function carries(error: unknown, original: unknown): boolean {
  const seen = new Set<unknown>();
  for (let current = error; current instanceof Error && !seen.has(current); current = current.cause) {
    if (current.cause === original) return true;
    seen.add(current);
  }
  return false;
}

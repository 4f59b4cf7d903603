import type { HandlerProfile, PublishedLimits, ServerProfile } from '../broker/server-profile.js';
import { InvalidHandlerError } from '../errors.js';
import { type ResolvedLimits, resolveLimits } from '../task/limits.js';
import type { TaskHandlerEntry } from './attempt/handler.js';
import type { QueueRegistry } from './fetching/queue-registry.js';
import type { Aggregators } from './groups/aggregators.js';

export interface ProfileSources {
  readonly handlers: Iterable<TaskHandlerEntry>;
  readonly queues: QueueRegistry;
  readonly aggregators: Aggregators;
}

/** What this server publishes of itself, so that anybody can find out why it does not run a task. */
export function profileOf({ handlers, queues, aggregators }: ProfileSources): ServerProfile {
  const limited = queues.served().flatMap(({ name, options }): [string, PublishedLimits][] => {
    const { concurrency, limits } = options;
    const shown = publish({
      concurrency,
      globalConcurrency: limits?.active ?? 0,
      rate: limits?.rate ?? 0,
      window: limits?.window ?? 1,
    });
    return Object.keys(shown).length === 0 ? [] : [[name, shown]];
  });
  return {
    handlers: [...handlers].map(handlerOf),
    queues: Object.fromEntries(limited),
    aggregates: aggregators.size > 0,
  };
}

function handlerOf({ pattern, version = 1, limits, cost, limitKey }: TaskHandlerEntry): HandlerProfile {
  const limited = limits && publish(resolveLimits(limits, `handler "${pattern}"`, InvalidHandlerError));
  return {
    pattern,
    ...(version > 1 && { version }),
    ...(limits && {
      scope: limits.limitScope ?? pattern,
      ...limited,
      ...(cost && { costs: true as const }),
      ...(limitKey && { keyed: true as const }),
    }),
  };
}

const publish = ({ concurrency, globalConcurrency, rate, window }: ResolvedLimits): PublishedLimits => ({
  ...(concurrency !== Infinity && { concurrency }),
  ...(globalConcurrency > 0 && { globalConcurrency }),
  ...(rate > 0 && { rate, window }),
});

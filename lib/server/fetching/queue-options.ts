import type { QueueLimits } from '../../broker/broker.js';
import { InvalidOptionError } from '../../errors.js';
import { FOREIGN } from '../../foreign-names.js';
import { resolveLimits, type Limits } from '../../task/limits.js';
import { QUEUE_SETTING_NAMES } from '../../task/queue-settings.js';
import { rejectMisplacedKeys, rejectUnknownKeys, requireInteger, requireObject } from '../../validation.js';

/**
 * One queue of a server. `globalConcurrency` counts the active tasks in Redis: also those on Go
 * servers, which do not apply the limit themselves, and those of a dead server until they are
 * recovered. Go servers neither apply `rateLimit` nor count for it.
 */
export interface QueueOptions extends Limits {
  /** Its share of the slots, as in asynq. Default 1. */
  priority?: number;
}

/** With every default applied. */
export interface ResolvedQueueOptions {
  readonly priority: number;
  readonly concurrency: number;
  readonly limits: QueueLimits | undefined;
}

const KNOWN: readonly (keyof QueueOptions)[] = ['priority', 'concurrency', 'globalConcurrency', 'rateLimit'];
const MAX_PRIORITY = 2 ** 31 - 1;

/** @param given a priority, or options. @throws InvalidOptionError */
export function resolveQueue(queue: string, given: unknown): ResolvedQueueOptions {
  if (typeof given === 'number') {
    return { priority: checkPriority(queue, given), concurrency: Infinity, limits: undefined };
  }
  const name = `queue "${queue}"`;
  const options = requireObject(given, `${name} (a priority, or options)`, InvalidOptionError) as QueueOptions;
  rejectMisplacedKeys(options, QUEUE_SETTING_NAMES, name, 'queues of the module, beside server', InvalidOptionError);
  rejectUnknownKeys(options, KNOWN, `option of ${name}:`, InvalidOptionError, FOREIGN.queue);
  refuseCost(options.rateLimit, name);
  const { priority = 1 } = options;
  const { concurrency, globalConcurrency, rate, window } = resolveLimits(options, name, InvalidOptionError);
  return {
    priority: checkPriority(queue, priority),
    concurrency,
    limits: globalConcurrency === 0 && rate === 0 ? undefined : { active: globalConcurrency, rate, window },
  };
}

/** The payload of a task is not known before it is claimed. */
function refuseCost(rateLimit: object | undefined, name: string): void {
  if (typeof rateLimit !== 'object' || rateLimit === null || !('cost' in rateLimit)) return;
  throw new InvalidOptionError(`rateLimit of ${name} counts tasks, and cannot have a cost; give it to their handlers`);
}

function checkPriority(queue: string, value: unknown): number {
  if (value === 0) {
    throw new InvalidOptionError(
      `priority of queue "${queue}" must not be 0; leave out a queue that is not to be served`,
    );
  }
  return requireInteger(value, `priority of queue "${queue}"`, InvalidOptionError, { least: 1, most: MAX_PRIORITY });
}

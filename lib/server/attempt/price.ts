import { types } from 'node:util';
import { hasCode } from '../../error-code.js';
import { type AsynqError, InvalidCostError, SkipRetry } from '../../errors.js';
import { describe } from '../../validation.js';
import type { ActiveTask } from './active-task.js';
import { isAmount } from './charge.js';

/** Gives the task its charge; returns why it has none. */
export function price(task: ActiveTask, max: number): AsynqError | undefined {
  let cost: unknown;
  try {
    cost = task.handler?.cost ? task.handler.cost(task) : 1;
  } catch (error) {
    if (hasCode(error, 'ASYNQ_INVALID_PAYLOAD')) return error as AsynqError;
    const reason = error instanceof Error ? error.message : String(error);
    return new InvalidCostError(`cost of task "${task.type}" threw: ${reason}`, { cause: error });
  }
  if (types.isPromise(cost)) cost.catch(() => undefined);
  if (!isAmount(cost)) {
    return new InvalidCostError(
      `cost of task "${task.type}" returned ${describe(cost)}; it must return a number of 0 or more, at once`,
    );
  }
  if (cost > max) {
    return new InvalidCostError(
      `task "${task.type}" costs ${cost}, and its rateLimit allows ${max} at most, so it could never run; ` +
        'split it, or raise max',
      { cause: new SkipRetry() },
    );
  }
  task.charge = { cost: Math.ceil(cost) };
  return undefined;
}

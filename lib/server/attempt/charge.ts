import type { CostCorrection } from '../../broker/limiting.js';
import { InvalidCostError } from '../../errors.js';
import { describe } from '../../validation.js';

/** What a task costs of a rate. */
export interface Charge {
  readonly cost: number;
  /** The time at which it counts, once it does. */
  countedAt?: number;
  /** What the handler has said that it has cost. */
  spent?: number;
}

/** More than any rate allows; sums stay exact. */
const MOST_SPENT = 1_000_000_000_000;

/** What is left to count of tasks that have ended. */
export function correctionsOf(tasks: readonly { readonly charge: Charge | undefined }[]): CostCorrection[] {
  return tasks.flatMap(({ charge }) => {
    if (charge?.countedAt === undefined || charge.spent === undefined || charge.spent === charge.cost) return [];
    return [{ countedAt: charge.countedAt, by: charge.spent - charge.cost }];
  });
}

/** @throws InvalidCostError */
export function requireSpent(amount: unknown, type: string): number {
  if (isAmount(amount) && amount <= MOST_SPENT) return Math.ceil(amount);
  throw new InvalidCostError(`spent of task "${type}" takes a number from 0 to ${MOST_SPENT}, not ${describe(amount)}`);
}

export const noCosts = (type: string): InvalidCostError =>
  new InvalidCostError(
    `spent of task "${type}": its handler has no rateLimit with a cost; give it cost: (payload) => …, or do not call spent`,
  );

export const isAmount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0;

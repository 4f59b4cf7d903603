import type { QueueSample } from '../api/types.js';
import type { Moment } from './live.js';

type Pick = (sample: QueueSample) => number;

/** A queue may be called like what every object has. */
export const sampleOf = ({ queues }: Moment, queue: string): QueueSample | undefined =>
  Object.hasOwn(queues, queue) ? queues[queue] : undefined;

const chosen = (moment: Moment, queue: string | undefined): QueueSample[] => {
  if (queue === undefined) return Object.values(moment.queues);
  const sample = sampleOf(moment, queue);
  return sample ? [sample] : [];
};

/** The sum over all queues, or the value of one. */
export const sums = (moments: readonly Moment[], pick: Pick, queue?: string): (number | undefined)[] =>
  moments.map((moment) => {
    const samples = chosen(moment, queue);
    return samples.length > 0 ? samples.reduce((total, sample) => total + pick(sample), 0) : undefined;
  });

export const highest = (moments: readonly Moment[], pick: Pick, queue?: string): (number | undefined)[] =>
  moments.map((moment) => {
    const samples = chosen(moment, queue);
    return samples.length > 0 ? Math.max(...samples.map(pick)) : undefined;
  });

/**
 * Differences per second, by queue, so that a new queue, or one that starts again at zero, makes no
 * peak.
 */
export function rates(moments: readonly Moment[], pick: Pick, queue?: string): (number | undefined)[] {
  return moments.map((moment, index) => {
    const before = moments[index - 1];
    if (!before) return undefined;
    const seconds = (moment.t - before.t) / 1000;
    if (seconds <= 0 || seconds > 60) return undefined;
    let grown = 0;
    for (const name of queue === undefined ? Object.keys(moment.queues) : [queue]) {
      const sample = sampleOf(moment, name);
      const old = sampleOf(before, name);
      if (sample && old) grown += Math.max(0, pick(sample) - pick(old));
    }
    return grown / seconds;
  });
}

/**
 * The mean of the last known values, so that "now" does not flicker. Undefined if none is known.
 */
export function recent(values: readonly (number | undefined)[], size = 5): number | undefined {
  const known = values.slice(-size).filter((value) => value !== undefined);
  return known.length > 0 ? known.reduce((total, value) => total + value, 0) / known.length : undefined;
}

import type { QueueSample, State } from '../api/types.js';
import type { Moment } from './live.js';

/** One line of a chart; a gap where a value is undefined. */
export interface Series {
  name: string;
  tone: string;
  values: readonly (number | undefined)[];
}

type Pick = (sample: QueueSample) => number;

/** A queue may be called like what every object has. */
const sampleOf = ({ queues }: Moment, queue: string): QueueSample | undefined =>
  Object.hasOwn(queues, queue) ? queues[queue] : undefined;

const chosen = (moment: Moment, queue: string | undefined): QueueSample[] => {
  if (queue === undefined) return Object.values(moment.queues);
  const sample = sampleOf(moment, queue);
  return sample ? [sample] : [];
};

/** The sum over all queues, or of one. */
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

/** Differences per second, queue by queue: one that appears, or starts again at zero, is no burst. */
export function rates(moments: readonly Moment[], pick: Pick, queue?: string): (number | undefined)[] {
  return moments.map((moment, index) => {
    const before = moments[index - 1];
    if (!before) return undefined;
    const seconds = (moment.t - before.t) / 1000;
    if (seconds <= 0 || seconds > 60) return undefined;
    let grown = 0;
    for (const [name, sample] of Object.entries(moment.queues)) {
      const old = sampleOf(before, name);
      if (old && (queue === undefined || queue === name)) grown += Math.max(0, pick(sample) - pick(old));
    }
    return grown / seconds;
  });
}

/** Buckets of this length make a line of 15 minutes that can be read. */
const BUCKETS = 120;

/** Means of neighbours, when there are more values than a chart has room for. Buckets stay where they are while time goes on. */
export function thin(
  times: readonly number[],
  series: readonly Series[],
  most = BUCKETS,
): { times: number[]; series: Series[] } {
  const span = (times.at(-1) ?? 0) - (times[0] ?? 0);
  const size = Math.max(1, Math.ceil(span / most / 1000) * 1000);
  const buckets = new Map<number, number[]>();
  for (const [index, time] of times.entries()) {
    const bucket = Math.floor(time / size);
    const indexes = buckets.get(bucket);
    if (indexes) indexes.push(index);
    else buckets.set(bucket, [index]);
  }
  const mean = (values: readonly (number | undefined)[], indexes: readonly number[]): number | undefined => {
    const known = indexes.map((index) => values[index]).filter((value) => value !== undefined);
    return known.length > 0 ? known.reduce((total, value) => total + value, 0) / known.length : undefined;
  };
  const all = [...buckets.values()];
  return {
    times: all.map((indexes) => times[indexes.at(-1) as number] as number),
    series: series.map((one) => ({ ...one, values: all.map((indexes) => mean(one.values, indexes)) })),
  };
}

/** The mean of the last few known values: what "now" says without jumping about. Undefined where none is known. */
export function recent(values: readonly (number | undefined)[], size = 5): number | undefined {
  const known = values.slice(-size).filter((value) => value !== undefined);
  return known.length > 0 ? known.reduce((total, value) => total + value, 0) / known.length : undefined;
}

/** States that wait for a worker: what "backlog" counts. */
export const BACKLOG: readonly State[] = ['pending', 'aggregating', 'scheduled', 'retry'];

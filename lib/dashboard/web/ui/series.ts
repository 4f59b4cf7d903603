/** One line of a chart, with a gap where a value is undefined. */
export interface Series {
  name: string;
  color: string;
  values: readonly (number | undefined)[];
}

/** As many points as a line of 15 minutes can show. */
const MAX_BUCKETS = 120;

/**
 * Averages neighbouring values if there are more than a chart can show. The buckets do not move
 * with time.
 */
export function thin(
  times: readonly number[],
  series: readonly Series[],
  most = MAX_BUCKETS,
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

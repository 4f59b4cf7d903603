import type { PrometheusResponse } from '../api/fleet-types.js';

/** One line of a chart. */
export interface Line {
  queue: string;
  /** One value per time; undefined where there is none. */
  values: (number | undefined)[];
}

export interface History {
  /** Milliseconds, one step apart, including times without a measurement. */
  times: number[];
  /** Sorted by queue name. */
  lines: Line[];
}

/** Why Prometheus refused, or undefined. */
export const refusalOf = ({ status, error, errorType }: PrometheusResponse): string | undefined =>
  status === 'success' ? undefined : (error ?? errorType ?? `it responded with the status “${status}”`);

/** `NaN` and `+Inf` are no values: without processed tasks there is no error rate. */
function toNumber(text: string): number | undefined {
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}

/**
 * The values of each queue by time. Each process of an application measures the same queue; the
 * highest value counts.
 */
function byQueue({ data }: PrometheusResponse): Map<string, Map<number, number | undefined>> {
  const queues = new Map<string, Map<number, number | undefined>>();
  for (const { metric, values } of data?.result ?? []) {
    const queue = metric?.['queue'] ?? '';
    const known = queues.get(queue) ?? new Map<number, number | undefined>();
    queues.set(queue, known);
    for (const [seconds, text] of values ?? []) {
      const value = toNumber(text);
      const before = known.get(seconds);
      known.set(seconds, value === undefined ? before : Math.max(value, before ?? value));
    }
  }
  return queues;
}

/**
 * All times from the first to the last. Prometheus leaves out times without a measurement; the
 * chart must show the gap.
 */
function gridOf(seconds: readonly number[]): number[] {
  const sorted = [...new Set(seconds)].sort((a, b) => a - b);
  const gaps = sorted.slice(1).map((time, index) => time - sorted[index]!);
  const step = Math.min(...gaps);
  const [first, last] = [sorted[0], sorted.at(-1)];
  if (first === undefined || last === undefined || !Number.isFinite(step)) return sorted;
  return Array.from({ length: Math.round((last - first) / step) + 1 }, (_, index) => first + index * step);
}

export function readHistory(response: PrometheusResponse): History {
  const queues = byQueue(response);
  const grid = gridOf([...queues.values()].flatMap((values) => [...values.keys()]));
  const lines = [...queues].map(([queue, values]) => ({ queue, values: grid.map((time) => values.get(time)) }));
  return { times: grid.map((time) => time * 1000), lines: lines.sort((a, b) => (a.queue < b.queue ? -1 : 1)) };
}

const lastOf = ({ values }: Line): number | undefined => values.findLast((value) => value !== undefined);

/** The last value of all queues together: their sum, or the highest. Undefined if none is known. */
export function figureOf(lines: readonly Line[], how: 'sum' | 'highest'): number | undefined {
  const last = lines.map(lastOf).filter((value) => value !== undefined);
  if (last.length === 0) return undefined;
  return how === 'sum' ? last.reduce((total, value) => total + value, 0) : Math.max(...last);
}

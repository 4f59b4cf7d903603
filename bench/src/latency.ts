import type { Measurement } from './measurement.js';

/** Of some latencies in milliseconds, in the order in which they were measured; the first tenth, which warms up, is left out. */
export function ofLatencies(times: readonly number[]): Measurement {
  const sorted = times.slice(Math.floor(times.length / 10)).sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)]!;
  return { value: at(0.5), p95: at(0.95) };
}

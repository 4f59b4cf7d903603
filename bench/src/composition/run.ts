import type { Measurement } from '../measurement.js';
import { linkLatency, rows } from './batches.js';
import { type Composer, type Shape, tasksOf } from './shapes.js';
import { timed } from './timed.js';

const composers: Record<string, (port: number) => Promise<Composer>> = {
  ours: async (port) => (await import('./ours.js')).ourWorkflows(port),
  bullmq: async (port) => (await import('./bullmq.js')).bullmqFlows(port),
};

/** Flows and chains that are added and run before the measured ones, for the JavaScript compiler. */
const WARM_TASKS = 30_000;

/** Tasks that run at the same time. */
const CONCURRENCY = 100;

/** What is measured, and of which shape. */
export type ComposedKind = `${'add' | 'run'}-${Shape['kind'] | 'batch'}` | 'link-latency';

/**
 * Adds flows, chains or members of a batch, and runs them if that is what is measured. In tasks per
 * second; a latency in milliseconds.
 */
export async function compose(
  name: string,
  measured: ComposedKind,
  port: number,
  count: number,
  size: number,
): Promise<Measurement> {
  if (measured === 'link-latency') return linkLatency(port, count);
  const [part, kind] = measured.split('-') as ['add' | 'run', Shape['kind'] | 'batch'];
  if (kind === 'batch') return rows(port, part, count, CONCURRENCY, name === 'ours');
  const shape: Shape = { kind, size, count };
  const composer = await composers[name]!(port);
  const warm = { ...shape, count: Math.max(1, Math.min(count, Math.floor(WARM_TASKS / tasksOf(shape)))) };
  await composer.add(warm);
  const adding = await timed(count * tasksOf(shape), () => composer.add(shape));
  const result = part === 'add' ? adding : await runAll(composer, shape, warm.count);
  await composer.close();
  return result;
}

async function runAll(composer: Composer, shape: Shape, warm: number): Promise<Measurement> {
  let begin: () => void = () => undefined;
  let finish: () => void = () => undefined;
  const begun = new Promise<void>((resolve) => (begin = resolve));
  const finished = new Promise<void>((resolve) => (finish = resolve));
  let ran = 0;
  let ended = 0;
  const warmTasks = warm * tasksOf(shape);
  const onTask = (): void => {
    if (++ran === warmTasks) begin();
  };
  const onEnd = (): void => {
    if (++ended === warm + shape.count) finish();
  };
  await composer.work(CONCURRENCY, onTask, onEnd);
  await begun;
  return timed(warmTasks + shape.count * tasksOf(shape) - ran, () => finished);
}

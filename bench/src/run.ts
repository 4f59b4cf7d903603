/*
 * Runs measurements, most often one, in its own process: node run.js PORT '[[SYSTEM, SCENARIO, COUNT, CONCURRENCY, WARM]]'.
 * Prints one line of JSON for each.
 */
import { Redis } from 'ioredis';
import { ofLatencies } from './latency.js';
import type { Measurement } from './measurement.js';
import { makePayload, type Handle, type System } from './system.js';

/* A system, or a measurement, is loaded alone: what else a process has loaded would count in its memory and its start. */

const systems: Record<string, (port: number) => Promise<System>> = {
  ours: async (port) => (await import('./ours.js')).ours(port),
  'ours+interceptor': async (port) => (await import('./ours.js')).ours(port, 'intercepted'),
  'ours+nest': async (port) => (await import('./ours.js')).ours(port, 'enhanced'),
  'ours, one by one': async (port) => (await import('./ours.js')).ours(port, 'single'),
  'ours, batch of 100': async (port) => (await import('./ours.js')).ours(port, 'batch'),
  'ours, replicated': async (port) => (await import('./replicated.js')).replicated(port, false),
  'ours, acknowledged': async (port) => (await import('./replicated.js')).replicated(port, true),
  bullmq: async (port) => (await import('./bullmq.js')).bullmq(port),
  'bee-queue': async (port) => (await import('./bee-queue.js')).beeQueue(port),
};

type Measure = (
  name: string,
  kind: never,
  port: number,
  count: number,
  concurrency: number,
  warm: number,
) => Promise<Measurement>;

/** What is measured in ways of its own, by what its kind looks like. */
const measures: readonly (readonly [RegExp, () => Promise<Measure>])[] = [
  [/^outbox-/, async () => (await import('./outbox/run.js')).measureOutbox],
  [/^(add|run)-(flow|chain|batch)$|^link-/, async () => (await import('./composition/run.js')).compose],
  [/^uniqueness-/, async () => (await import('./uniqueness.js')).uniqueness],
  [/^results-/, async () => (await import('./durable/results.js')).results],
  [/^steps-/, async () => (await import('./durable/steps.js')).steps],
  [/^fairness-/, async () => (await import('./fairness.js')).fairness],
  [/^threads-/, async () => (await import('./threads.js')).threads],
];

const payloads = (count: number) => Array.from({ length: count }, (_, n) => makePayload(n));
const rss = (): number => process.memoryUsage.rss() / 2 ** 20;
const usedMemory = async (redis: Redis): Promise<number> =>
  Number(/used_memory_dataset:(\d+)/.exec(await redis.info('memory'))?.[1]);

/** @param work calls `begin` when the measured part begins */
async function timed(count: number, work: (begin: () => void) => Promise<void>): Promise<Measurement> {
  let cpu = process.cpuUsage();
  let start = performance.now();
  await work(() => {
    cpu = process.cpuUsage();
    start = performance.now();
  });
  const seconds = (performance.now() - start) / 1000;
  const used = process.cpuUsage(cpu);
  return { value: count / seconds, cpu: (used.user + used.system) / count, rss: rss() };
}

async function enqueue(system: System, count: number, atOnce: number, port: number): Promise<Measurement> {
  const items = payloads(count);
  const redis = new Redis(port);
  for (const item of payloads(200)) await system.enqueue(item); // warm
  await redis.flushall();
  const before = await usedMemory(redis);
  const measured = await timed(count, async () => {
    if (atOnce === 1) for (const item of items) await system.enqueue(item);
    else if (atOnce < 1000) {
      for (let from = 0; from < count; from += atOnce) {
        await Promise.all(items.slice(from, from + atOnce).map((item) => system.enqueue(item)));
      }
    } else {
      for (let from = 0; from < count; from += atOnce) await system.enqueueMany(items.slice(from, from + atOnce));
    }
  });
  if ((await system.unfinished()) !== count) throw new Error(`expected ${count} waiting tasks`);
  const bytes = ((await usedMemory(redis)) - before) / count;
  redis.disconnect();
  return { ...measured, bytes };
}

/**
 * Measures from the first task after `warm` other tasks to the last one settled. So the start of the
 * application and the first work of the JavaScript compiler do not count.
 */
async function processAll(
  system: System,
  count: number,
  concurrency: number,
  warm: number,
  handle: Handle,
): Promise<Measurement> {
  const items = payloads(warm + count);
  for (let from = 0; from < items.length; from += 1000) await system.enqueueMany(items.slice(from, from + 1000));
  const measured = await timed(count, async (begin) => {
    let handled = 0;
    let allHandled = (): void => {};
    const done = new Promise<void>((resolve) => (allHandled = resolve));
    await system.work(concurrency, (payload) => {
      if (handled === warm) begin();
      if (++handled === warm + count) allHandled();
      return handle(payload);
    });
    await done;
    while ((await system.unfinished()) > 0) await new Promise((resolve) => setImmediate(resolve));
  });
  return measured;
}

/** The time from the enqueue call to the start of the handler, one task at a time, in an idle system. */
async function idleLatency(system: System, count: number): Promise<Measurement> {
  let started: (time: number) => void = () => {};
  await system.work(10, () => started(performance.now()));
  const times: number[] = [];
  for (let n = 0; n < count; n++) {
    await new Promise((resolve) => setTimeout(resolve, 15 + Math.random() * 30)); // the pause is part of the load
    const sent = performance.now();
    const start = new Promise<number>((resolve) => (started = resolve));
    await system.enqueue(makePayload(n));
    times.push((await start) - sent);
  }
  return ofLatencies(times);
}

const someMilliseconds: Handle = () => new Promise((resolve) => setTimeout(resolve, 1 + Math.random() * 4));

type Arguments = [system: string, scenario: string, count: number, concurrency: number, warm: number];

async function measure(port: number, [name, scenario, count, concurrency, warm]: Arguments): Promise<Measurement> {
  const load = measures.find(([kind]) => kind.test(scenario))?.[1];
  if (load) return (await load())(name, scenario as never, port, count, concurrency, warm);
  const system = await systems[name]!(port);
  const measured =
    scenario === 'enqueue'
      ? await enqueue(system, count, concurrency, port)
      : scenario === 'latency'
        ? await idleLatency(system, count)
        : await processAll(system, count, concurrency, warm, scenario === 'slow' ? someMilliseconds : () => undefined);
  await system.close();
  return measured;
}

async function flush(port: number): Promise<void> {
  const redis = new Redis(port);
  await redis.flushall();
  redis.disconnect();
}

const [, , port, list] = process.argv;
for (const [place, one] of (JSON.parse(list!) as Arguments[]).entries()) {
  if (place > 0) await flush(Number(port)); // who starts the process has done it for the first
  console.log(JSON.stringify(await measure(Number(port), one)));
}
process.exit(0);

import type { Measurement } from '../measurement.js';

/** How many tasks per second the work makes of so many tasks, and what they cost. */
export async function timed(tasks: number, work: () => Promise<void>): Promise<Measurement> {
  const cpu = process.cpuUsage();
  const start = performance.now();
  await work();
  const seconds = (performance.now() - start) / 1000;
  const used = process.cpuUsage(cpu);
  return { value: tasks / seconds, cpu: (used.user + used.system) / tasks, rss: process.memoryUsage.rss() / 2 ** 20 };
}

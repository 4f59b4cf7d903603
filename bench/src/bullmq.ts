import { Queue, Worker } from 'bullmq';
import type { System } from './system.js';

/** BullMQ with finished jobs removed, as asynq does by default. */
export async function bullmq(port: number): Promise<System> {
  const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null };
  const queue = new Queue('bench', { connection, defaultJobOptions: { removeOnComplete: true } });
  await queue.waitUntilReady();
  let worker: Worker | undefined;
  return {
    enqueue: (payload) => queue.add('bench', payload),
    enqueueMany: (payloads) => queue.addBulk(payloads.map((data) => ({ name: 'bench', data }))),
    work: async (concurrency, handle) => {
      worker = new Worker('bench', async (job) => handle(job.data), { connection, concurrency });
      worker.on('error', (error) => console.error(error));
      await worker.waitUntilReady();
    },
    unfinished: async () => {
      const counts = await queue.getJobCounts('wait', 'active', 'prioritized');
      return Object.values(counts).reduce((sum, count) => sum + count, 0);
    },
    close: async () => {
      await worker?.close();
      await queue.close();
    },
  };
}

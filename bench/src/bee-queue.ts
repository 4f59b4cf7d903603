import { createRequire } from 'node:module';
import type { Handle, Payload, System } from './system.js';

interface BeeJob {
  readonly data: Payload;
  save(): Promise<unknown>;
}
interface BeeQueue {
  createJob(data: Payload): BeeJob;
  saveAll(jobs: BeeJob[]): Promise<Map<unknown, Error>>;
  process(concurrency: number, handler: (job: BeeJob) => Promise<unknown>): void;
  checkHealth(): Promise<{ waiting: number; active: number }>;
  ready(): Promise<unknown>;
  close(timeout?: number): Promise<void>;
}
const BeeQueue = createRequire(import.meta.url)('bee-queue') as new (name: string, settings: object) => BeeQueue;

/** bee-queue with finished jobs removed, and otherwise its fastest documented settings. */
export async function beeQueue(port: number): Promise<System> {
  const settings = { redis: { host: '127.0.0.1', port }, removeOnSuccess: true, getEvents: false, sendEvents: false };
  const queue = new BeeQueue('bench', { ...settings, isWorker: false, storeJobs: false });
  await queue.ready();
  let worker: BeeQueue | undefined;
  return {
    enqueue: (payload) => queue.createJob(payload).save(),
    enqueueMany: async (payloads) => {
      const errors = await queue.saveAll(payloads.map((payload) => queue.createJob(payload)));
      if (errors.size > 0) throw new Error(`bee-queue refused ${errors.size} jobs`);
    },
    work: async (concurrency, handle: Handle) => {
      worker = new BeeQueue('bench', settings);
      worker.process(concurrency, async (job) => handle(job.data));
      await worker.ready();
    },
    unfinished: async () => {
      const { waiting, active } = await queue.checkHealth();
      return waiting + active;
    },
    close: async () => {
      await worker?.close(1_000);
      await queue.close(1_000);
    },
  };
}

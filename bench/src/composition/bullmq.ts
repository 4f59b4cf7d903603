import { type FlowJob, FlowProducer, type Job, Worker } from 'bullmq';
import type { Composer, Shape } from './shapes.js';

const OPTIONS = { removeOnComplete: true };
/** Flows that one call adds. */
const AT_ONCE = 100;

/** BullMQ's flows, with finished jobs removed, as asynq does by default. */
export async function bullmqFlows(port: number): Promise<Composer> {
  const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null };
  const producer = new FlowProducer({ connection });
  await producer.waitUntilReady();
  let worker: Worker | undefined;
  return {
    async add(shape) {
      const perCall = Math.max(1, Math.floor(AT_ONCE / shape.size));
      for (let from = 0; from < shape.count; from += perCall) {
        const some = Math.min(perCall, shape.count - from);
        await producer.addBulk(Array.from({ length: some }, () => tree(shape)));
      }
    },
    async work(concurrency, onTask, onEnd) {
      const run = async (job: Job<{ n: number; reads?: number }>): Promise<{ n: number }> => {
        if (job.data.reads !== undefined) {
          const results = Object.values(await job.getChildrenValues());
          if (results.length !== job.data.reads) throw new Error(`${results.length} results`);
        }
        onTask();
        if (job.name === 'last') onEnd();
        return { n: job.data.n };
      };
      worker = new Worker('bench', run, { connection, concurrency });
      worker.on('error', (error) => console.error(error));
      await worker.waitUntilReady();
    },
    async close() {
      await worker?.close();
      await producer.close();
    },
  };
}

function tree({ kind, size }: Shape): FlowJob {
  const step = (n: number, more: object): FlowJob => ({
    name: 'step',
    queueName: 'bench',
    data: { n },
    opts: OPTIONS,
    ...more,
  });
  if (kind === 'flow') {
    const children = Array.from({ length: size }, (_, n) => step(n, {}));
    return step(size, { name: 'last', data: { n: size, reads: size }, children });
  }
  let job = step(0, {});
  for (let n = 1; n < size; n++) {
    const last = n === size - 1;
    job = step(n, { name: last ? 'last' : 'step', data: { n, reads: 1 }, children: [job] });
  }
  return job;
}

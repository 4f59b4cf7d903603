import type pg from 'pg';
import PgBoss from 'pg-boss';
import type { Payload } from '../system.js';
import type { OutboxSystem } from './outbox-system.js';
import { settingsOf } from './postgres.js';

const WORKERS = 4;

export async function pgBoss(pool: pg.Pool): Promise<OutboxSystem> {
  const boss = new PgBoss({ ...settingsOf(pool.options.port!), schema: 'pgboss' });
  boss.on('error', (error) => console.error(error));
  await boss.start();
  await boss.createQueue('bench');
  return {
    enqueue: (client, payloads) =>
      boss.insert(
        payloads.map((data) => ({ name: 'bench', data })),
        { db: { executeSql: (text, values) => client.query(text, values) } },
      ),
    work: async (_concurrency, handle) => {
      // It polls after each batch, at most every half a second: throughput is a matter of large batches.
      for (let worker = 0; worker < WORKERS; worker++) {
        await boss.work<Payload>('bench', { batchSize: 1_000, pollingIntervalSeconds: 0.5 }, async (jobs) => {
          await Promise.all(jobs.map(({ data }) => handle(data)));
        });
      }
    },
    close: () => boss.stop({ graceful: false }),
  };
}

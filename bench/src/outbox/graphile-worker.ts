import type pg from 'pg';
import { Logger, run, runMigrations } from 'graphile-worker';
import type { Payload } from '../system.js';
import type { OutboxSystem } from './outbox-system.js';

export async function graphileWorker(pool: pg.Pool): Promise<OutboxSystem> {
  const logger = new Logger(() => () => undefined);
  await runMigrations({ pgPool: pool, logger });
  let stop = async (): Promise<void> => undefined;
  return {
    enqueue: (client, payloads) =>
      client.query(
        `SELECT 1 FROM graphile_worker.add_jobs(ARRAY(
          SELECT json_populate_record(NULL::graphile_worker.job_spec, json_build_object('identifier', 'bench', 'payload', p))
          FROM json_array_elements($1::json) p))`,
        [JSON.stringify(payloads)],
      ),
    work: async (concurrency, handle) => {
      const taskList = { bench: async (payload: unknown) => handle(payload as Payload) };
      const runner = await run({ pgPool: pool, concurrency, taskList, logger, noHandleSignals: true });
      stop = () => runner.stop();
    },
    close: () => stop(),
  };
}

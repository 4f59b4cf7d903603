import pg from 'pg';
import { timed } from '../composition/timed.js';
import type { Measurement } from '../measurement.js';
import { makePayload, type Payload } from '../system.js';
import type { OpenOutbox, OutboxSystem } from './outbox-system.js';
import { settingsOf } from './postgres.js';

const systems: Record<string, () => Promise<OpenOutbox>> = {
  ours: async () => (await import('./ours.js')).ours,
  'pg-boss': async () => (await import('./pg-boss.js')).pgBoss,
  'graphile-worker': async () => (await import('./graphile-worker.js')).graphileWorker,
};

export type OutboxKind = 'outbox-add' | 'outbox-relay' | 'outbox-run' | 'outbox-latency';
/** Tasks of one transaction, beside a row of the application. */
const TASKS_PER_TRANSACTION = 10;
const CONNECTIONS = 10;
const CONCURRENCY = 100;
/** Tasks before the measured ones, at most as many as these. */
const WARM_TASKS = 2_000;

/** Transactions of an application, on as many connections as a pool has by default. */
async function commit(pool: pg.Pool, system: OutboxSystem, payloads: readonly Payload[]): Promise<void> {
  let next = 0;
  const write = async (): Promise<void> => {
    while (next < payloads.length) {
      const some = payloads.slice(next, (next += TASKS_PER_TRANSACTION));
      await transaction(pool, system, some);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, write));
}

async function transaction(pool: pg.Pool, system: OutboxSystem, payloads: readonly Payload[]): Promise<void> {
  const client = await pool.connect();
  await client.query('BEGIN');
  await client.query('INSERT INTO orders (n) VALUES ($1)', [payloads[0]!.n]);
  await system.enqueue(client, payloads);
  await client.query('COMMIT');
  client.release();
}

const payloads = (count: number): Payload[] => Array.from({ length: count }, (_, n) => makePayload(n));

/** In tasks per second, or milliseconds from the commit to the start of the handler. */
export async function measureOutbox(
  name: string,
  kind: OutboxKind,
  redisPort: number,
  count: number,
  _atOnce: number,
  asked: number,
): Promise<Measurement> {
  const pool = new pg.Pool({ ...settingsOf(Number(process.env['BENCH_POSTGRES_PORT'])), max: 2 * CONNECTIONS });
  pool.on('error', () => undefined);
  await pool.query('DROP SCHEMA IF EXISTS pgboss, graphile_worker CASCADE');
  await pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE TABLE orders (n int)');
  const system = await (await systems[name]!())(pool, redisPort);
  const warm = Math.min(WARM_TASKS, asked);
  await commit(pool, system, payloads(warm));
  const measured =
    kind === 'outbox-latency'
      ? await latency(pool, system, count, warm)
      : await throughput(kind, pool, system, count, warm);
  await system.close();
  await pool.end();
  return measured;
}

async function throughput(
  kind: OutboxKind,
  pool: pg.Pool,
  system: OutboxSystem,
  count: number,
  warm: number,
): Promise<Measurement> {
  const add = (): Promise<void> => commit(pool, system, payloads(count));
  if (kind === 'outbox-add') return timed(count, add);
  if (kind === 'outbox-relay') {
    await system.relay!();
    await add();
    return timed(count, () => system.relay!());
  }
  await add();
  let handled = 0;
  let begin = (): void => undefined;
  let finish = (): void => undefined;
  const begun = new Promise<void>((resolve) => (begin = resolve));
  const finished = new Promise<void>((resolve) => (finish = resolve));
  await system.work(CONCURRENCY, () => {
    if (++handled === warm) begin();
    if (handled === warm + count) finish();
  });
  await begun;
  return timed(count, () => finished);
}

async function latency(pool: pg.Pool, system: OutboxSystem, count: number, warm: number): Promise<Measurement> {
  let started: (time: number) => void = () => undefined;
  let left = warm;
  await new Promise<void>((resolve) => {
    void system.work(CONCURRENCY, () => {
      if (--left === 0) resolve();
      started(performance.now());
    });
  });
  const times: number[] = [];
  for (let n = 0; n < count; n++) {
    await new Promise((resolve) => setTimeout(resolve, 15 + Math.random() * 30)); // the pause is part of the load
    const start = new Promise<number>((resolve) => (started = resolve));
    await transaction(pool, system, [makePayload(n)]);
    const committed = performance.now();
    times.push(Math.max(0, (await start) - committed));
  }
  times.sort((a, b) => a - b);
  const at = (share: number): number => times[Math.floor(times.length * share)]!;
  return { value: at(0.5), p95: at(0.95) };
}

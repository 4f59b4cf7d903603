/*
 * Measures the broker alone, without a server: npm run build && node bench/broker/main.mjs [runs].
 * Prints medians of interleaved runs on its own redis-server, with the time per task of Redis and of this process.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';

const dist = process.env.DIST ?? fileURLToPath(new URL('../../dist/modules', import.meta.url));
const { RedisBroker } = await import(`${dist}/broker/redis/redis-broker.js`);
const { RedisConnections } = await import(`${dist}/broker/redis/connection/connections.js`);

const RUNS = Number(process.argv[2] ?? 5);
const PAYLOAD = Buffer.alloc(100, 'x');
const QUEUE = 'default';

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

async function startRedis() {
  const port = await freePort();
  const server = spawn('redis-server', [
    '--port',
    `${port}`,
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--appendonly',
    'no',
  ]);
  for await (const chunk of server.stdout) if (String(chunk).includes('Ready to accept connections')) break;
  return { port, stop: () => server.kill('SIGKILL') };
}

const message = (id) => ({
  type: 'bench:task',
  payload: PAYLOAD,
  id,
  queue: QUEUE,
  maxRetry: 25,
  retried: 0,
  errorMsg: '',
  timeout: 1800,
  deadline: 0,
  uniqueKey: '',
  lastFailedAt: 0,
  retention: 0,
  completedAt: 0,
  groupKey: '',
  headers: undefined,
});

let created = 0;
/** Ids of the same length as those of asynq. */
const requests = (count) =>
  Array.from({ length: count }, () => ({
    message: message(`0f8fad5b-d9cb-469f-a165-${String(created++).padStart(12, '0')}`),
  }));

async function fill(broker, total) {
  for (let left = total; left > 0; left -= 1000) await broker.producer.enqueue(QUEUE, requests(Math.min(left, 1000)));
}

/** Runs `inFlight` calls at a time, each with `batch` tasks. */
const enqueue = (batch, total, inFlight = 1) => ({
  name: `enqueue, ${batch} a call${inFlight > 1 ? `, ${inFlight} in flight` : ''}`,
  total,
  prepare: async () => Array.from({ length: total / batch }, () => requests(batch)),
  run: async (broker, batches) => {
    const caller = async () => {
      for (let next = batches.pop(); next; next = batches.pop()) await broker.producer.enqueue(QUEUE, next);
    };
    await Promise.all(Array.from({ length: inFlight }, caller));
  },
});

/** Does what a server with no-op handlers does: the next call settles all tasks of the last one. */
const exchange = (batch, total) => ({
  name: `done ${batch} + take ${batch}`,
  total,
  prepare: (broker) => fill(broker, total),
  run: async (broker) => {
    let settle = [];
    for (let left = total; left > 0; left -= settle.length) {
      const { tasks } = await broker.consumer.exchange(QUEUE, { settle, take: batch });
      settle = tasks.map(({ lease, message: { uniqueKey } }) => ({ kind: 'done', lease, uniqueKey }));
    }
    await broker.consumer.exchange(QUEUE, { settle, take: 0 });
  },
});

const idle = (total) => ({
  name: 'nothing to settle or take',
  total,
  prepare: async () => undefined,
  run: async (broker) => {
    for (let i = 0; i < total; i++) await broker.consumer.exchange(QUEUE, { settle: [], take: 0 });
  },
});

/** Processor time of Redis in microseconds. Other programs do not affect it, unlike Redis' own statistics. */
async function redisTime(client) {
  const info = await client.info('cpu');
  const seconds = (name) => Number(new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1]);
  return (seconds('used_cpu_user_main_thread') + seconds('used_cpu_sys_main_thread')) * 1e6;
}

async function measure(broker, client, { total, prepare, run }) {
  await client.flushdb();
  const input = await prepare(broker);
  const redis = await redisTime(client);
  const cpu = process.cpuUsage();
  const start = performance.now();
  await run(broker, input);
  const wall = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  const perTask = (microseconds) => microseconds / total;
  return {
    rate: (total / wall) * 1000,
    redis: perTask((await redisTime(client)) - redis),
    js: perTask(user + system),
  };
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const best = (values) => Math.min(...values);

const benches = [
  enqueue(1, 5_000),
  enqueue(100, 50_000),
  enqueue(500, 50_000),
  enqueue(1000, 50_000),
  enqueue(1000, 50_000, 2),
  exchange(1, 5_000),
  exchange(10, 20_000),
  exchange(50, 50_000),
  exchange(100, 50_000),
  exchange(250, 50_000),
  idle(5_000),
];

const redis = await startRedis();
const connections = new RedisConnections({ port: redis.port });
const broker = new RedisBroker(connections);
const client = await connections.ready('monitor');
const results = benches.map(() => []);
for (let run = 0; run <= RUNS; run++) {
  for (const [index, bench] of benches.entries()) {
    const result = await measure(broker, client, bench);
    if (run > 0) results[index].push(result);
  }
}
console.log('| call | tasks/s, median | best | Redis µs/task, best | this process µs/task, best |');
console.log('| --- | --- | --- | --- | --- |');
for (const [index, { name }] of benches.entries()) {
  const of = (field) => results[index].map((result) => result[field]);
  const rates = [median(of('rate')), Math.max(...of('rate'))].map((rate) => Math.round(rate).toLocaleString('en'));
  const times = [best(of('redis')), best(of('js'))].map((time) => time.toFixed(2));
  console.log(`| ${[name, ...rates, ...times].join(' | ')} |`);
}
await broker.close();
redis.stop();

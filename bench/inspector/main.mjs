/*
 * Measures what the inspector costs on a queue of a million tasks: npm run bench:inspector [-- --smoke | --tasks=N].
 * It uses its own redis-server. It prints how long each operation takes, its slowest single command
 * (other clients wait that long), the memory of Redis afterwards, and the most memory of this
 * process. `--smoke` checks that the bench runs, not its speed.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const dist = process.env.DIST ?? fileURLToPath(new URL('../../dist/modules', import.meta.url));
const { RedisBroker } = await import(`${dist}/broker/redis/redis-broker.js`);
const { RedisConnections } = await import(`${dist}/broker/redis/connection/connections.js`);
const { SCRIPTS } = await import(`${dist}/broker/redis/scripts/script-registry.js`);
const { scriptSource } = await import(`${dist}/broker/redis/scripts/script-source.js`);
const { AsynqInspector } = await import(`${dist}/inspector/inspector.js`);

const smoke = process.argv.includes('--smoke');
const asked = process.argv.find((argument) => argument.startsWith('--tasks='))?.slice('--tasks='.length);
const TASKS = Number(asked ?? (smoke ? 2_000 : 1_000_000));
if (!Number.isInteger(TASKS) || TASKS < 1_000)
  throw new Error(`--tasks must be a whole number from 1000, not ${asked}`);
const POLLS = smoke ? 2 : 10;
const POLL_EVERY = smoke ? 50 : 1_000;
const SEARCHED = Math.min(10_000, TASKS);
const QUEUE = 'default';
const PAYLOAD = Buffer.from(JSON.stringify({ text: 'x'.repeat(89) }));

async function startRedis() {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  const slowlog = ['--slowlog-max-len', '20000'];
  const options = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', ...slowlog];
  const server = spawn('redis-server', options);
  for await (const chunk of server.stdout) if (String(chunk).includes('Ready to accept connections')) break;
  return { port, stop: () => server.kill('SIGKILL') };
}

const idOf = (index) => `0f8fad5b-d9cb-469f-a165-${String(index).padStart(12, '0')}`;

const request = (index, processAt) => ({
  message: {
    type: 'bench:task',
    payload: PAYLOAD,
    id: idOf(index),
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
  },
  processAt,
});

/** Enqueues a thousand tasks per call. Scheduled tasks are a second apart. */
async function fill(broker, scheduled) {
  const start = Math.ceil(Date.now() / 1000) + 86_400;
  for (let first = 0; first < TASKS; first += 1000) {
    const indices = Array.from({ length: Math.min(1000, TASKS - first) }, (_, index) => first + index);
    await broker.producer.enqueue(
      QUEUE,
      indices.map((index) => request(index, scheduled ? start + index : undefined)),
    );
  }
}

const scripts = new Map(Object.keys(SCRIPTS).map((name) => [scriptSource(name).sha1, name]));
const OURS = new Set(['slowlog', 'info', 'config', 'client', 'hello']);

/** The time of the longest command since the last reset, in milliseconds. */
async function slowest(client) {
  const entries = await client.call('SLOWLOG', 'GET', '-1');
  let [longest, name] = [0, ''];
  for (const [, , microseconds, words] of entries) {
    const [command, first] = words.map(String);
    if (OURS.has(command.toLowerCase()) || microseconds < longest) continue;
    [longest, name] = [microseconds, scripts.get(first) ?? command.toLowerCase()];
  }
  return { milliseconds: longest / 1000, name };
}

async function megabytes(client) {
  const info = await client.info('memory');
  return Number(/^used_memory:(\d+)/m.exec(info)[1]) / 2 ** 20;
}

/** The most memory of this process during the work, in megabytes, measured every few milliseconds. */
function watchMemory() {
  let most = 0;
  const look = () => (most = Math.max(most, process.memoryUsage.rss() / 2 ** 20));
  const timer = setInterval(look, 20);
  return () => {
    clearInterval(timer);
    look();
    return most;
  };
}

/** Only slow commands are logged: a log of all would take more memory than the tasks. */
const isBulk = (name) => /^fill|All |^deleteQueue/.test(name);

async function measure(client, name, work) {
  await client.config('SET', 'slowlog-log-slower-than', isBulk(name) ? 500 : 0);
  await client.call('SLOWLOG', 'RESET');
  const mostMemory = watchMemory();
  const start = performance.now();
  const told = await work();
  const milliseconds = told?.milliseconds ?? performance.now() - start;
  const rss = mostMemory();
  const longest = await slowest(client);
  await client.call('SLOWLOG', 'RESET');
  const memory = await megabytes(client);
  console.error(`measured: ${name}`);
  return { name, milliseconds, longest, memory, rss };
}

/** Calls once per second and returns the slowest time. */
const polled = async (call) => {
  let milliseconds = 0;
  for (let poll = 0; poll < POLLS; poll++) {
    const start = performance.now();
    await call();
    milliseconds = Math.max(milliseconds, performance.now() - start);
    await pause(POLL_EVERY); // the pause is part of the load
  }
  return { milliseconds };
};

/** Reads a page at the start, in the middle and at the end, and the page after each. */
const pages = (inspector, state) =>
  [
    ['start', 1],
    ['middle', Math.ceil(TASKS / 60)],
    ['end', Math.floor(TASKS / 30)],
  ].map(([where, page]) => [
    `list 30 ${state} tasks at the ${where}, and the next by cursor`,
    async () => {
      const { tasks, cursor } = await inspector.listTasks(QUEUE, state, { page });
      if (tasks.length === 0) throw new Error(`page ${page} of ${state} is empty`);
      if (cursor !== undefined) await inspector.listTasks(QUEUE, state, { cursor });
    },
  ]);

const search = (inspector, state) => [
  `search ${SEARCHED.toLocaleString('en')} ${state} tasks for a text in the payload`,
  async () => {
    const { scanned } = await inspector.searchTasks(QUEUE, state, {
      payload: 'nowhere',
      scan: Math.min(10_000, TASKS),
    });
    if (scanned < SEARCHED) throw new Error(`only ${scanned} tasks were searched`);
  },
];

const expectMoved = async (result) => {
  const { moved, skipped } = await result;
  if (skipped > 0 || moved === 0) throw new Error(`${moved} tasks were moved, ${skipped} skipped`);
};

const operations = (broker, inspector) => [
  ['fill: enqueue scheduled tasks, 1,000 a call', () => fill(broker, true)],
  ['queue info, the slowest of some calls a second apart', () => polled(() => inspector.getQueueInfo(QUEUE))],
  ...pages(inspector, 'scheduled'),
  search(inspector, 'scheduled'),
  ['run one scheduled task', () => inspector.runTask(QUEUE, idOf(TASKS / 2))],
  ['runAll scheduled', () => expectMoved(inspector.runAllTasks(QUEUE, 'scheduled'))],
  ['queue info, all pending', () => polled(() => inspector.getQueueInfo(QUEUE))],
  ...pages(inspector, 'pending'),
  search(inspector, 'pending'),
  ['archive one pending task, the next to run', () => inspector.archiveTask(QUEUE, idOf(1))],
  ['archive one pending task in the middle', () => inspector.archiveTask(QUEUE, idOf(TASKS / 2 + 1))],
  ['delete one pending task in the middle', () => inspector.deleteTask(QUEUE, idOf(TASKS / 2 - 1))],
  ['delete one pending task, the last to run', () => inspector.deleteTask(QUEUE, idOf(TASKS - 1))],
  ['archiveAll pending (9,999 are kept)', () => expectMoved(inspector.archiveAllTasks(QUEUE, 'pending'))],
  ['runAll archived', () => expectMoved(inspector.runAllTasks(QUEUE, 'archived'))],
  ['deleteAll pending', () => expectMoved(inspector.deleteAllTasks(QUEUE, 'pending'))],
  ['fill: enqueue pending tasks, 1,000 a call', () => fill(broker, false)],
  ['deleteAll pending', () => expectMoved(inspector.deleteAllTasks(QUEUE, 'pending'))],
  ['fill again', () => fill(broker, false)],
  ['deleteQueue', () => inspector.deleteQueue(QUEUE, { force: true })],
];

const redis = await startRedis();
const connections = new RedisConnections({ port: redis.port });
const broker = new RedisBroker(connections);
const client = await connections.ready('monitor');
// So that no measured call sends the text of a script.
for (const name of Object.keys(SCRIPTS)) await client.script('LOAD', scriptSource(name).text);
const results = [];
try {
  for (const [name, work] of operations(broker, new AsynqInspector(broker))) {
    results.push(await measure(client, name, work));
  }
  const left = await client.dbsize();
  if (left !== 0) throw new Error(`deleteQueue has left ${left} keys`);
} finally {
  await broker.close();
  redis.stop();
}
const time = (milliseconds) =>
  milliseconds >= 1000 ? `${(milliseconds / 1000).toFixed(1)} s` : `${milliseconds.toFixed(1)} ms`;
console.log(`${TASKS.toLocaleString('en')} tasks, Node ${process.version}\n`);
console.log("| operation | duration | Redis' slowest command | Redis, MB | this process, MB |");
console.log('| --- | ---: | ---: | ---: | ---: |');
for (const { name, milliseconds, longest, memory, rss } of results) {
  const cells = [
    name,
    time(milliseconds),
    longest.name ? `${longest.milliseconds.toFixed(1)} ms (${longest.name})` : 'under 0.5 ms',
  ];
  console.log(`| ${[...cells, memory.toFixed(0), rss.toFixed(0)].join(' | ')} |`);
}

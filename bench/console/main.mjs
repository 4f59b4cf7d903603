/*
 * Measures the cost and the speed of the console while a million tasks move:
 * npm run bench:console [-- --smoke | --tasks=N].
 * It uses its own redis-server, an application with the console, a worker in another process, and
 * ten tabs that send the requests of open pages: first while all tasks wait, then while they run.
 * `--smoke` checks that the bench runs, not its speed.
 */
import { spawn } from 'node:child_process';
import { once, setMaxListeners } from 'node:events';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { SCRIPTS } from '../../dist/modules/broker/redis/scripts/script-registry.js';
import { scriptSource } from '../../dist/modules/broker/redis/scripts/script-source.js';

const smoke = process.argv.includes('--smoke');
const asked = process.argv.find((argument) => argument.startsWith('--tasks='))?.slice('--tasks='.length);
const TASKS = Number(asked ?? (smoke ? 10_000 : 1_000_000));
if (!Number.isInteger(TASKS) || TASKS < 1_000 || TASKS % 1_000 !== 0) {
  throw new Error(`--tasks must be a multiple of 1000, not ${asked}`);
}
const TABS = 10;
/** Milliseconds between two requests of a tab, as in the page. */
const LIVE_INTERVAL_MS = smoke ? 200 : 2_000;
const LIST_INTERVAL_MS = smoke ? 300 : 5_000;
/** How long the console is measured while no task runs. */
const IDLE_MS = smoke ? 1_000 : 20_000;

const QUEUES = ['critical', 'default', 'low'];
const LISTS = ['pending', 'active', 'retry', 'archived', 'completed', 'scheduled'];

async function startRedis() {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  const server = spawn('redis-server', ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '']);
  for await (const chunk of server.stdout) if (String(chunk).includes('Ready to accept connections')) break;
  return { port, stop: () => server.kill('SIGKILL') };
}

/** Starts one of our programs. `until` waits for a line by its first word. */
function startProgram(...args) {
  const path = fileURLToPath(new URL('application.mjs', import.meta.url));
  const child = spawn(process.execPath, [path, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  const received = new Map();
  const waiting = new Set();
  const notify = (listener) => [...waiting].forEach(listener);
  createInterface(child.stdout).on('line', (line) => {
    const [word, value = ''] = line.split(' ');
    received.set(word, value);
    notify(({ check }) => check());
  });
  child.on('exit', (status) => notify(({ reject }) => reject(new Error(`${args[0]} ended with ${status}`))));
  const until = (word, matches = () => true) =>
    new Promise((resolve, reject) => {
      const waiter = {
        reject,
        check: () => {
          if (!received.has(word) || !matches(received.get(word))) return;
          waiting.delete(waiter);
          resolve(received.get(word));
        },
      };
      waiting.add(waiter);
      waiter.check();
    });
  return { until, write: (text) => child.stdin.write(text), stop: () => child.kill('SIGKILL') };
}

/** The times of all requests, by kind, in milliseconds. */
class Requests {
  byName = new Map();
  failures = [];

  async send(base, name, path) {
    const start = performance.now();
    const response = await fetch(`${base}/asynq/api/${path}`);
    const body = await response.text();
    const took = performance.now() - start;
    if (!response.ok) this.failures.push(`${path}: ${response.status} ${body.trim()}`);
    const times = this.byName.get(name);
    if (times) times.push(took);
    else this.byName.set(name, [took]);
    return response.ok ? JSON.parse(body) : undefined;
  }
}

/** One open tab until `over`: it polls the live numbers, and beside them a list of tasks or another page. */
function openTab(base, index, requests, over) {
  const loop = async (every, ask) => {
    await pause((every * index) / TABS, undefined, { signal: over }).catch(() => undefined); // tabs are not opened all at once
    while (!over.aborted) {
      await ask();
      await pause(every, undefined, { signal: over }).catch(() => undefined);
    }
  };
  let since;
  const live = async () => {
    const reply = await requests.send(base, 'live figures', since === undefined ? 'live' : `live?since=${since}`);
    since = reply?.sequence ?? since;
  };
  const queue = QUEUES[index % QUEUES.length];
  const state = LISTS[index % LISTS.length];
  const pages = [
    ['list of tasks', `queues/${queue}/${state}_tasks?size=50`],
    ['search of 1,000 tasks', `queues/${queue}/${state}_tasks?size=50&payload=nowhere&scan=1000`],
    ['queue with its history', `queues/${queue}`],
    ['what fails in a queue', `queues/${queue}/failures`],
    ['servers', 'servers'],
    ['all queues', 'queues'],
    ['Redis', 'redis_info'],
  ];
  let page = index;
  const openPage = async () => {
    const [name, path] = pages[page++ % pages.length];
    await requests.send(base, name, path);
  };
  return Promise.all([loop(LIVE_INTERVAL_MS, live), loop(LIST_INTERVAL_MS, openPage)]);
}

const scripts = new Map(Object.keys(SCRIPTS).map((name) => [scriptSource(name).sha1, name]));

/** The longest command since the last reset. */
async function slowest(redis) {
  let [longest, name] = [0, 'none above 0.1 ms'];
  for (const [, , microseconds, words] of await redis.call('SLOWLOG', 'GET', '-1')) {
    const [command, first] = words.map(String);
    if (microseconds <= longest || command.toLowerCase() === 'slowlog') continue;
    [longest, name] = [microseconds, scripts.get(first) ?? command.toLowerCase()];
  }
  return `${(longest / 1000).toFixed(1)} ms (${name})`;
}

async function calls(redis) {
  const info = await redis.info('commandstats');
  return [...info.matchAll(/calls=(\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Opens ten tabs during `work`. Returns their times and their cost. */
async function measured(name, redis, base, work) {
  await redis.call('SLOWLOG', 'RESET');
  const [before, start] = [await calls(redis), performance.now()];
  const requests = new Requests();
  const over = new AbortController();
  setMaxListeners(0, over.signal);
  const tabs = Array.from({ length: TABS }, (_, index) => openTab(base, index, requests, over.signal));
  await work();
  const seconds = (performance.now() - start) / 1000;
  const commands = (await calls(redis)) - before;
  over.abort();
  await Promise.all(tabs);
  if (requests.failures.length > 0) throw new Error(`requests failed: ${requests.failures.slice(0, 3).join('; ')}`);
  return { name, seconds, commands, byName: requests.byName, slowest: await slowest(redis) };
}

function report({ name, seconds, commands, byName, slowest: longest }, tasks) {
  const all = [...byName.values()].flat();
  const rate = tasks > 0 ? `, ${Math.round(tasks / seconds).toLocaleString('en')} tasks/s` : '';
  console.log(`\n${name}: ${seconds.toFixed(1)} s${rate}; Redis' slowest command ${longest}`);
  console.log(
    `${(all.length / seconds).toFixed(1)} requests/s of ${TABS} tabs, ${Math.round(commands / seconds)} commands/s in Redis`,
  );
  console.log('\n| request | count | median | slowest |\n| --- | ---: | ---: | ---: |');
  for (const [what, took] of [...byName].toSorted()) {
    took.sort((a, b) => a - b);
    const cells = [what, took.length, `${took[took.length >> 1].toFixed(1)} ms`, `${took.at(-1).toFixed(1)} ms`];
    console.log(`| ${cells.join(' | ')} |`);
  }
}

const server = await startRedis();
const redis = new Redis(server.port);
const programs = [];
try {
  await redis.config('SET', 'slowlog-log-slower-than', 100);
  await redis.config('SET', 'slowlog-max-len', 20_000);
  const worker = startProgram('worker', server.port, TASKS);
  const web = startProgram('web', server.port);
  programs.push(worker, web);
  const base = `http://127.0.0.1:${await web.until('listening')}`;
  await worker.until('filled');
  console.error(`${TASKS.toLocaleString('en')} tasks are enqueued`);
  const idle = await measured('All tasks wait', redis, base, () => pause(IDLE_MS)); // the pause is the load
  const moving = await measured('All tasks run', redis, base, () => {
    worker.write('go\n');
    return worker.until('ran', (count) => Number(count) >= TASKS);
  });
  console.log(`${TASKS.toLocaleString('en')} tasks, Node ${process.version}`);
  report(idle, 0);
  report(moving, TASKS);
} finally {
  for (const program of programs) program.stop();
  redis.disconnect();
  server.stop();
}

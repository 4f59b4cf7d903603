/*
 * What the console costs, and how it answers, while a million tasks move: npm run bench:console [-- --smoke | --tasks=N].
 * On a redis-server of its own: an application with the console, a worker of another process, and ten tabs that ask for what open
 * pages ask for, as often. First while all tasks wait, then while they run. `--smoke` says that the bench runs, not how fast.
 */
import { spawn } from 'node:child_process';
import { once, setMaxListeners } from 'node:events';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { SCRIPTS } from '../../dist/broker/redis/scripts/script-registry.js';
import { scriptSource } from '../../dist/broker/redis/scripts/script-source.js';

const smoke = process.argv.includes('--smoke');
const asked = process.argv.find((argument) => argument.startsWith('--tasks='))?.slice('--tasks='.length);
const TASKS = Number(asked ?? (smoke ? 10_000 : 1_000_000));
if (!Number.isInteger(TASKS) || TASKS < 1_000 || TASKS % 1_000 !== 0) {
  throw new Error(`--tasks must be a multiple of 1000, not ${asked}`);
}
const TABS = 10;
/** Milliseconds between two requests of a tab, as the page has them. */
const LIVE_EVERY = smoke ? 200 : 2_000;
const LIST_EVERY = smoke ? 300 : 5_000;
/** How long the console is watched while nothing runs. */
const RESTING = smoke ? 1_000 : 20_000;

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

/** A program of ours: what it says is waited for by its first word. */
function startProgram(...args) {
  const path = fileURLToPath(new URL('application.mjs', import.meta.url));
  const child = spawn(process.execPath, [path, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  const said = new Map();
  const waiting = new Set();
  const end = (tell) => [...waiting].forEach(tell);
  createInterface(child.stdout).on('line', (line) => {
    const [word, value = ''] = line.split(' ');
    said.set(word, value);
    end(({ check }) => check());
  });
  child.on('exit', (status) => end(({ reject }) => reject(new Error(`${args[0]} ended with ${status}`))));
  const hear = (word, fits = () => true) =>
    new Promise((resolve, reject) => {
      const waiter = {
        reject,
        check: () => {
          if (!said.has(word) || !fits(said.get(word))) return;
          waiting.delete(waiter);
          resolve(said.get(word));
        },
      };
      waiting.add(waiter);
      waiter.check();
    });
  return { hear, write: (text) => child.stdin.write(text), stop: () => child.kill('SIGKILL') };
}

/** Requests by what they ask for: how long each took, in milliseconds. */
class Requests {
  byName = new Map();
  failures = [];

  async send(base, name, path) {
    const start = performance.now();
    const response = await fetch(`${base}/asynq/api/${path}`);
    const body = await response.text();
    const took = performance.now() - start;
    if (!response.ok) this.failures.push(`${path}: ${response.status} ${body.trim()}`);
    const known = this.byName.get(name);
    if (known) known.push(took);
    else this.byName.set(name, [took]);
    return response.ok ? JSON.parse(body) : undefined;
  }
}

/** One open tab until `over`: the live figures all the time, and a list of tasks or another page beside it. */
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
  const look = async () => {
    const [name, path] = pages[page++ % pages.length];
    await requests.send(base, name, path);
  };
  return Promise.all([loop(LIVE_EVERY, live), loop(LIST_EVERY, look)]);
}

const scripts = new Map(Object.keys(SCRIPTS).map((name) => [scriptSource(name).sha1, name]));

/** The command that held Redis longest since the last reset. */
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

/** Has ten tabs open while `work` goes on; tells what they saw and what it cost. */
async function watched(name, redis, base, work) {
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
  const base = `http://127.0.0.1:${await web.hear('listening')}`;
  await worker.hear('filled');
  console.error(`${TASKS.toLocaleString('en')} tasks are enqueued`);
  const resting = await watched('All tasks wait', redis, base, () => pause(RESTING)); // the pause is the load
  const moving = await watched('All tasks run', redis, base, () => {
    worker.write('go\n');
    return worker.hear('ran', (count) => Number(count) >= TASKS);
  });
  console.log(`${TASKS.toLocaleString('en')} tasks, Node ${process.version}`);
  report(resting, 0);
  report(moving, TASKS);
} finally {
  for (const program of programs) program.stop();
  redis.disconnect();
  server.stop();
}

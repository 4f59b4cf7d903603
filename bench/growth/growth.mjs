import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { library } from './library.mjs';

const { RedisBroker } = await library('broker/redis/redis-broker.js');
const { RedisConnections } = await library('broker/redis/connection/connections.js');
const { Server } = await library('server/server.js');

export { library, pause };

/** What a row works with: a redis-server of its own, and brokers and servers that end with it. */
export class Growth {
  /** Whether sizes are small and no figure counts. */
  smoke;
  port;
  /** A client beside those that are measured. */
  client;
  #redis;
  #servers = [];
  #brokers = [];
  #children = new Set();

  static async start(smoke) {
    const growth = new Growth();
    growth.smoke = smoke;
    const probe = createServer().listen(0, '127.0.0.1');
    await once(probe, 'listening');
    growth.port = probe.address().port;
    probe.close();
    const options = ['--port', `${growth.port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
    growth.#redis = spawn('redis-server', options);
    for await (const chunk of growth.#redis.stdout) if (String(chunk).includes('Ready to accept connections')) break;
    growth.#redis.stdout.resume();
    growth.client = new Redis(growth.port);
    return growth;
  }

  async stop() {
    for (const child of this.#children) child.kill('SIGKILL');
    await Promise.all(this.#servers.map((server) => server.shutdown()));
    await Promise.all(this.#brokers.map((broker) => broker.close()));
    this.client.disconnect();
    this.#redis.kill('SIGKILL');
  }

  /** `small` when it is only to be seen that the row runs. */
  size(full, small) {
    return this.smoke ? small : full;
  }

  broker() {
    const broker = new RedisBroker(new RedisConnections({ host: '127.0.0.1', port: this.port }));
    this.#brokers.push(broker);
    return broker;
  }

  /** A server with a broker of its own, not started. */
  server(options, { handlers = [], aggregators = [], broker = this.broker() } = {}) {
    const server = new Server({ broker, handlers, aggregators, options });
    this.#servers.push(server);
    return server;
  }

  /** So many servers, each in a process of its own that has started them; `settings`: see server-process.mjs. */
  async serverProcesses(count, settings) {
    const argument = JSON.stringify({ port: this.port, ...settings });
    const script = fileURLToPath(new URL('server-process.mjs', import.meta.url));
    const children = Array.from({ length: count }, () => fork(script, [argument], { serialization: 'advanced' }));
    for (const child of children) this.#children.add(child.once('exit', () => this.#children.delete(child)));
    await Promise.all(children.map((child) => once(child, 'message')));
    /** What each has recorded since it was asked last. */
    const ask = (child, message) => {
      const reply = once(child, 'message').then(([records]) => records);
      child.send(message);
      return reply;
    };
    const askAll = (message) => Promise.all(children.map((child) => ask(child, message)));
    return {
      begin: () => askAll('begin'),
      records: () => askAll('records'),
      stop: () => Promise.all(children.map((child) => (child.send('stop'), once(child, 'exit')))),
    };
  }

  /** Enqueues `count` tasks, a thousand a call. `partial` makes the fields of each from its index. */
  async fill(broker, queue, count, partial = () => ({})) {
    for (let first = 0; first < count; first += 1000) {
      const length = Math.min(1000, count - first);
      const requests = Array.from({ length }, (_, index) => request(queue, partial(first + index)));
      await broker.producer.enqueue(queue, requests);
    }
  }

  /** Calls of the commands of Redis so far, by name: those that scripts make included. */
  async calls() {
    const info = await this.client.info('commandstats');
    return Object.fromEntries(
      [...info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map(([, name, count]) => [name, Number(count)]),
    );
  }

  /** Commands that clients have sent so far. */
  async commands() {
    return Number(/^total_commands_processed:(\d+)/m.exec(await this.client.info('stats'))[1]);
  }

  /** Processor time of Redis so far, in milliseconds. */
  async redisTime() {
    const info = await this.client.info('cpu');
    const seconds = (name) => Number(new RegExp(`^${name}:(\\S+)`, 'm').exec(info)[1]);
    return (seconds('used_cpu_user_main_thread') + seconds('used_cpu_sys_main_thread')) * 1000;
  }

  /** The times of the commands of 0.1 ms or more while `work` goes on, in milliseconds, the shortest first. */
  async commandTimes(work) {
    await this.client.config('SET', 'slowlog-max-len', 20_000);
    await this.client.config('SET', 'slowlog-log-slower-than', 100);
    await this.client.call('SLOWLOG', 'RESET');
    await work();
    const entries = await this.client.call('SLOWLOG', 'GET', '-1');
    return entries.map(([, , microseconds]) => microseconds / 1000).toSorted((a, b) => a - b);
  }

  /** The time of the longest command while `work` goes on, in milliseconds. Whatever else the machine does is in it. */
  async slowest(work) {
    return (await this.commandTimes(work)).at(-1) ?? 0;
  }

  /** The longest time the event loop stood while `work` went on, in milliseconds. */
  async stall(work) {
    let [longest, last] = [0, performance.now()];
    const timer = setInterval(() => {
      const now = performance.now();
      longest = Math.max(longest, now - last - 1);
      last = now;
    }, 1);
    await work();
    await pause(1); // the turn that ended the work counts, too
    clearInterval(timer);
    return Math.max(longest, performance.now() - last - 1);
  }
}

let made = 0;

/** A request of the broker for one task. */
export const request = (queue, { processAt, ...partial } = {}) => ({
  message: {
    type: 'bench:task',
    payload: Buffer.alloc(100, 'x'),
    id: `0f8fad5b-d9cb-469f-a165-${String(made++).padStart(12, '0')}`,
    queue,
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
    ...partial,
  },
  processAt,
});

export const number = (value) => Math.round(value).toLocaleString('en');

/** @param milliseconds a time */
export const time = (milliseconds) =>
  milliseconds >= 1000 ? `${(milliseconds / 1000).toFixed(1)} s` : `${milliseconds.toFixed(1)} ms`;

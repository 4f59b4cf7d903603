import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { hostname } from 'node:os';
import { describe, expect, onTestFinished, vi } from 'vitest';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { SystemClock } from '../../lib/clock.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import type { ServerOptions } from '../../lib/server/options.js';
import { Server } from '../../lib/server/server.js';
import { encodeAttempt } from '../../lib/task/attempts.js';
import { it, type RedisDriver } from '../contract/redis-fixture.js';
import { completion, retrial } from '../contract/driver.js';
import { connectionsTo, observe } from './support.js';
import { compiled } from '../support/programs.js';

vi.setConfig({ testTimeout: 60_000 });

const ID = 'order-17';

/** All that Redis is asked while `work` runs, also by scripts. */
async function commandsOf({ server, redis }: RedisDriver, work: () => Promise<unknown>): Promise<string[][]> {
  const monitor = await observe(server.port).monitor();
  const seen: string[][] = [];
  const ended = new Promise<void>((resolve) => {
    monitor.on('monitor', (_time: string, args: string[]) => {
      if (args[1] === 'end of the test') resolve();
      else seen.push(args);
    });
  });
  await work();
  await redis.echo('end of the test');
  await ended;
  monitor.disconnect();
  return seen;
}

/** A task that runs once, and what Redis was asked for it. */
async function attempt(driver: RedisDriver, handle: () => unknown, options: ServerOptions) {
  const { redis, broker } = driver;
  await redis.flushall();
  await driver.add({ id: ID, retention: 60 });
  const entry = { pattern: 'test:task', handle: async () => handle() };
  const made = new Server({ broker, handlers: [entry], options: { retryDelay: () => 60_000, ...options } });
  const all = await commandsOf(driver, () => made.runOnce());
  // Connections may say hello, and loops look, at any time: what counts is what is said of the task.
  const commands = all.filter((args) => args.some((argument) => argument.includes(ID)));
  await made.shutdown();
  const key = driver.keys.task(ID);
  return { commands, hash: (await redis.hkeys(key)).sort() };
}

const fail = (): never => {
  throw new Error('no parcel');
};

describe('what a history of attempts costs', () => {
  it('is no command, no argument and no byte for a task that succeeds at once', async ({ driver }) => {
    await attempt(driver, () => 'ok', {}); // scripts are loaded
    const withHistory = await attempt(driver, () => 'ok', { attemptHistory: 10 });
    const without = await attempt(driver, () => 'ok', { attemptHistory: false });
    expect(withHistory.commands.length).toBeGreaterThan(3);
    expect(withHistory.commands).toEqual(without.commands);
    expect(withHistory.hash).toEqual(without.hash);
  });

  it('is a read and a write of one entry for a task that fails, and nothing without a history', async ({ driver }) => {
    await attempt(driver, fail, {});
    const withHistory = await attempt(driver, fail, { attemptHistory: 10 });
    const without = await attempt(driver, fail, { attemptHistory: false });
    expect(without.commands.flat().join()).not.toContain('attempt:');
    expect(without.hash).toEqual(['msg', 'state']);
    expect(withHistory.hash).toEqual(['attempt:0', 'attempt:kept', 'msg', 'state']);
    const [sent, sentWithout] = [withHistory, without].map(({ commands }) =>
      commands.map(([name]) => name!.toLowerCase()),
    );
    const more = sent!.filter((_, index) =>
      withHistory.commands[index]!.some((argument) => argument.startsWith('attempt:')),
    );
    expect(more).toEqual(['hget', 'hset']);
    expect(sent!.length).toBe(sentWithout!.length + 2);
  });

  it('is bounded: the bytes of a task do not grow with its attempts', async ({ driver }) => {
    const { redis, keys } = driver;
    let task = await driver.takeNew({ id: ID });
    const text = 'x'.repeat(1_000);
    const entry = {
      outcome: 'failed',
      startedAt: 0,
      endedAt: 1,
      duration: 1,
      retried: 0,
      counts: true,
      server: 'a',
    } as const;
    const note = { text: encodeAttempt({ ...entry, error: text, stack: text + text }), most: 10 };
    for (let n = 0; n < 50; n++) {
      await driver.settle({ ...retrial(task, driver.now), attempt: note });
      await driver.broker.maintenance.forward('default');
      task = await driver.takeOne();
    }
    const names = (await redis.hkeys(keys.task(ID))).filter((name) => name.startsWith('attempt:'));
    expect(names).toHaveLength(11);
    expect(await redis.memory('USAGE', keys.task(ID), 'SAMPLES', 0)).toBeLessThan(50_000);
  });
});

describe('the history of attempts in Redis', () => {
  it('begins anew when others have written what is no history, and is never a reason to fail', async ({ driver }) => {
    const { redis, keys, broker } = driver;
    let task = await driver.takeNew({ id: ID });
    for (const kept of ['', 'x', '5', '7 3', '1 99999999999999999', '-1 2', '99999999999999 99999999999999']) {
      await redis.hset(keys.task(ID), 'attempt:kept', kept);
      await driver.settle({ ...retrial(task, driver.now), attempt: { text: '[1]', most: 10 } });
      expect(await broker.inspection.attempts('default', ID)).toEqual([{ n: 0, text: '[1]' }]);
      await driver.broker.maintenance.forward('default');
      task = await driver.takeOne();
    }
    await redis.hset(keys.task(ID), { 'attempt:kept': '0 3', 'attempt:0': '{}', 'attempt:1': '["failed"]' });
    await redis.hdel(keys.task(ID), 'attempt:2');
    await driver.settle(completion(task, driver.now + 60));
    expect(await new AsynqInspector(broker).attempts('default', ID)).toEqual({ attempts: [], total: 0 });
  });

  it('goes on where a hundred entries and more are said to be there', async ({ driver }) => {
    const { redis, keys, broker } = driver;
    const task = await driver.takeNew({ id: ID });
    await redis.hset(keys.task(ID), 'attempt:kept', '0 5000000');
    await driver.settle({ ...retrial(task, driver.now), attempt: { text: '[1]', most: 10 } });
    expect(await broker.inspection.attempts('default', ID)).toEqual([{ n: 5_000_000, text: '[1]' }]);
    expect(await redis.hget(keys.task(ID), 'attempt:kept')).toBe('4999991 5000001');
  });
});

/** Ahead of all others, so that it finds leases ended. */
class FastClock extends SystemClock {
  override now(): number {
    return super.now() + 120_000;
  }
}

describe('a server that is killed', () => {
  it('is in the history of the task that it ran', async ({ driver }) => {
    const { host, port } = driver.server;
    const program = await compiled(new URL('./attempt-process.ts', import.meta.url));
    const child: ChildProcess = spawn(process.execPath, [program, host, String(port)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const before = Date.now();
    await driver.add({ id: ID, maxRetry: 9 });
    await once(child.stdout!, 'data');
    child.kill('SIGKILL');
    await once(child, 'exit');

    const broker = new RedisBroker(connectionsTo({ host, port }), { clock: new FastClock() });
    const handlers = [{ pattern: 'other', handle: async () => undefined }];
    const other = new Server({ broker, handlers, options: { retryDelay: () => 3_600_000 } });
    onTestFinished(() => other.shutdown());
    const recovered = new Promise((resolve) => other.events.on('tasksRecovered', resolve));
    await other.start();
    await recovered;
    const { attempts, total } = (await new AsynqInspector(broker).attempts('default', ID))!;
    expect(total).toBe(1);
    expect(attempts).toMatchObject([
      { number: 1, outcome: 'crashed', startedAt: undefined, duration: undefined, error: 'asynq: task lease expired' },
    ]);
    expect([undefined, `${hostname()}:${child.pid}`]).toContain(attempts[0]!.server);
    expect(attempts[0]!.endedAt.getTime()).toBeGreaterThan(before - 2_000);
  });
});

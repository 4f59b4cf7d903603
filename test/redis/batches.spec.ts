import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { type Clock, SystemClock } from '../../lib/clock.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import { Relay } from '../../lib/links/relay.js';
import { Server } from '../../lib/server/server.js';
import type { TaskContext } from '../../lib/task/context.js';
import { withoutStyles, runInProcess } from '../support/command-line.js';
import { connectionsTo, observe, ownServer } from './support.js';
import { compiled } from '../support/programs.js';

vi.setConfig({ testTimeout: 120_000 });

/** A minute and a bit later: what a process that was killed left half done may be settled. */
class LaterClock extends SystemClock {
  override now(): number {
    return super.now() + 70_000;
  }
}

const QUEUES = { home: 1, rows: 1, calls: 1 };

/** What a process has of a Redis; with a handler, also a server. */
async function processOn(port: number, handle?: (task: TaskContext) => unknown, clock: Clock = new SystemClock()) {
  const broker = new RedisBroker(connectionsTo({ host: '127.0.0.1', port }), { clock });
  const events = new AsynqEvents();
  const relay = new Relay(broker.links, events);
  const client = new AsynqClient(broker, {}, { events, relay });
  const handlers = handle ? [{ pattern: 'test:', handle: async (task: TaskContext) => handle(task) }] : [];
  const { taskContexts: contexts } = client;
  const server = new Server({
    broker,
    relay,
    events,
    handlers,
    contexts,
    options: { queues: QUEUES, concurrency: 100 },
  });
  if (handle) await server.start();
  onTestFinished(async () => {
    await server.shutdown();
    await client.close();
    await relay.close();
  });
  return { broker, client, inspector: new AsynqInspector(broker, relay) };
}

/** The calls back, in the order of their starts. */
function callbacks() {
  const calls: string[] = [];
  let resolve = (): void => undefined;
  const succeeded = new Promise<void>((done) => (resolve = done));
  const note = ({ type }: TaskContext): void => {
    calls.push(type);
    if (type === 'test:success') resolve();
  };
  return { calls, note, succeeded };
}

/** Waits until it is so; fails when the test's time is up. */
const until = (check: () => Promise<void>): Promise<void> => vi.waitFor(check, { timeout: 60_000, interval: 20 });

/** Keys of links, besides the set of places. */
async function keysOfLinks(port: number): Promise<string[]> {
  const keys = await observe(port).keys('asynq:{*');
  return keys.filter((key) => /:(links|outbox|timers|batches|batch:.*|part:.*|run:.*|early:.*)$/.test(key)).sort();
}

const CALLS = {
  onSuccess: ['test:success', { file: 7 }, { queue: 'calls' }],
  onComplete: ['test:complete', undefined, { queue: 'calls' }],
  onDeath: ['test:death', undefined, { queue: 'calls' }],
} as const;

describe('a batch on Redis', () => {
  it('of 20,000 rows of a stream ends once, and leaves nothing when it is deleted', async () => {
    const { port } = await ownServer();
    const { calls, note, succeeded } = callbacks();
    let rows = 0;
    const { client, inspector } = await processOn(port, (task) =>
      task.type === 'test:row' ? void rows++ : note(task),
    );
    async function* source() {
      for (let n = 0; n < 20_000; n++) yield { n };
    }
    const batch = await client.openBatch({ name: 'import', queue: 'home', ...CALLS });
    expect(await batch.add('test:row', source(), { queue: 'rows' })).toBe(20_000);
    await batch.close();
    await succeeded;
    await until(async () => expect(calls.toSorted()).toEqual(['test:complete', 'test:success']));
    expect(rows).toBe(20_000);
    const counts = { total: 20_000, pending: 0, succeeded: 20_000, failed: 0 };
    expect(await batch.progress()).toMatchObject({ state: 'succeeded', ...counts });
    await inspector.deleteBatch('home', batch.id);
    await until(async () => expect(await keysOfLinks(port)).toEqual([]));
    expect(calls).toHaveLength(2);
  });

  it('of members that add members, of which some die and are run again, ends in the end', async () => {
    const { port } = await ownServer();
    const { calls, note, succeeded } = callbacks();
    let broken = true;
    const known: unknown[] = [];
    const { client, inspector } = await processOn(port, async (task) => {
      if (task.type === 'test:folder')
        return void (await task.batch.add('test:row', [1, 2, 3], { queue: 'rows', maxRetry: 0 }));
      if (task.type !== 'test:row') {
        const { total } = await task.batch.progress();
        known.push([task.isMember, task.batch.queue, task.batch.id, total]);
        return note(task);
      }
      if (broken && task.payload.toString() === '2') throw new Error('row 2 is wrong');
    });
    const batch = await client.openBatch({ name: 'tree', queue: 'home', ...CALLS });
    await batch.add('test:folder', ['a', 'b'], { queue: 'rows' });
    await batch.close();
    await until(async () => expect(await batch.progress()).toMatchObject({ state: 'completed', total: 8, failed: 2 }));
    await until(async () => expect(calls.toSorted()).toEqual(['test:complete', 'test:death']));
    broken = false;
    await inspector.runAllTasks('rows', 'archived');
    await succeeded;
    expect(await batch.progress()).toMatchObject({ state: 'succeeded', succeeded: 8 });
    expect(calls.filter((type) => type === 'test:success')).toHaveLength(1);
    expect(known).toEqual(Array.from({ length: 3 }, () => [false, 'home', batch.id, 8]));
  });

  it('whose process is killed while it adds is closed in time, and counts what is there', async () => {
    const { port } = await ownServer();
    const program = await compiled(new URL('./batch-process.ts', import.meta.url));
    const killed = spawn(process.execPath, [program, String(port)], { stdio: ['pipe', 'pipe', 'inherit'] });
    const lines: string[] = [];
    const ready = new Promise<void>((resolve) => {
      createInterface({ input: killed.stdout }).on('line', (line) => lines.push(line) > 5 && resolve());
    });
    const ended = once(killed, 'close');
    await ready;
    killed.kill('SIGKILL');
    await ended;
    const { calls, note, succeeded } = callbacks();
    let rows = 0;
    const { broker, client } = await processOn(
      port,
      (task) => (task.type === 'test:row' ? void rows++ : note(task)),
      new LaterClock(),
    );
    const batch = client.batch({ queue: 'home', id: lines[0]! });
    await succeeded;
    const { state, total, succeeded: done, failed } = await batch.progress();
    expect({ state, failed }).toEqual({ state: 'succeeded', failed: 0 });
    expect(total).toBeGreaterThanOrEqual(2_500);
    expect([done, rows]).toEqual([total, total]);
    expect(calls).toEqual(['test:success']);
    expect(await broker.inspection.describeQueue('rows')).toMatchObject({ pending: 0, active: 0 });
  });
});

describe('what members cost', () => {
  /** Commands that clients have sent, by name. */
  async function sent(port: number, work: () => Promise<unknown>): Promise<Record<string, number>> {
    const redis = observe(port);
    await redis.config('RESETSTAT');
    await work();
    const stats = await redis.info('commandstats');
    const found = [...stats.matchAll(/cmdstat_(\w+):calls=(\d+)/g)].map(([, name, calls]) => [name, Number(calls)]);
    return Object.fromEntries(found) as Record<string, number>;
  }

  it('is a call for 500 of them, and two for 2,000', async () => {
    const { port } = await ownServer();
    const { client } = await processOn(port);
    const rows = Array.from({ length: 10_000 }, (_, n) => ({ n }));
    const batch = await client.openBatch({ name: 'n', queue: 'home' });
    await batch.add('test:row', rows.slice(0, 10), { queue: 'rows' }); // the scripts are known
    const { evalsha } = await sent(port, () => batch.add('test:row', rows, { queue: 'rows' }));
    expect(evalsha).toBeLessThanOrEqual(20 + 2 * 6);
  });

  it('is nothing for tasks that are no members', async () => {
    const { port } = await ownServer();
    const { client } = await processOn(port);
    const rows = Array.from({ length: 1_000 }, (_, n) => ({ n }));
    await client.enqueueMany('test:row', rows, { queue: 'plain' });
    const before = await sent(port, () => client.enqueueMany('test:row', rows, { queue: 'plain' }));
    const batch = await client.openBatch({ name: 'n', queue: 'home' });
    await batch.add('test:row', rows, { queue: 'rows' });
    expect(await sent(port, () => client.enqueueMany('test:row', rows, { queue: 'plain' }))).toEqual(before);
  });
});

describe('the command batch', () => {
  it('lists, shows, closes and deletes', async () => {
    const { port } = await ownServer();
    const { client } = await processOn(port);
    const run = async (line: string) => {
      const { status, stdout, stderr } = await runInProcess(['--uri', `127.0.0.1:${port}`, ...line.split(' ')]);
      return { status, out: withoutStyles(stdout), err: stderr };
    };
    expect(await run('batch ls')).toEqual({ status: 0, out: '', err: 'No batches\n' });
    const batch = await client.openBatch({ name: 'import 42', queue: 'home' });
    await batch.add('test:row', [1, 2], { queue: 'rows' });
    const [head, row] = (await run('batch ls')).out.split('\n');
    expect(head).toMatch(/^ID +Queue +Name +State +Total +Pending +Succeeded +Failed +Opened/);
    expect(row!.split(/ {2,}/).slice(0, 8)).toEqual([batch.id, 'home', 'import 42', 'open', '2', '2', '0', '0']);
    expect(JSON.parse((await run(`batch inspect -q home ${batch.id} --json`)).out)).toMatchObject([
      { id: batch.id, queue: 'home', name: 'import 42', state: 'open', total: 2, endedAt: null },
    ]);
    expect((await run(`batch inspect -q home ${batch.id}`)).out).toMatch(/State: +open\n(.*\n)+Ended: +not yet/);
    expect(await run(`batch delete -q home ${batch.id}`)).toMatchObject({
      status: 1,
      err: expect.stringContaining('has not ended and was not deleted'),
    });
    expect(await run(`batch close -q home ${batch.id}`)).toEqual({
      status: 0,
      out: `Batch "${batch.id}" is closed\n`,
      err: '',
    });
    expect(await batch.progress()).toMatchObject({ state: 'closed' });
    const empty = await client.openBatch({ name: 'none', queue: 'home' });
    await empty.close();
    expect((await run(`batch rm -q home ${empty.id}`)).out).toBe(`Batch "${empty.id}" is deleted\n`);
    expect(await run(`batch inspect -q home ${empty.id}`)).toMatchObject({
      status: 1,
      err: expect.stringContaining('batch not found'),
    });
  });
});

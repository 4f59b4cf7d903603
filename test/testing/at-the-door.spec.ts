import { Injectable } from '@nestjs/common';
import { AsynqClient, defineTask, Payload, QueueFullError, TaskHandler, workflow } from 'nestjs-asynq';
import type { AsynqTester } from 'nestjs-asynq/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { rejection, testApp } from '../nest/support.js';

const Rows = defineTask<number>('row', { rateLimit: { max: 6, per: '1m' } });

@Injectable()
class Handlers {
  readonly calls: number[][] = [];
  readonly ran: unknown[] = [];

  @TaskHandler(Rows, { batch: { size: 4, wait: '30s' } })
  rows(@Payload() rows: number[]) {
    this.calls.push(rows);
    return rows.map(() => undefined);
  }

  @TaskHandler('slow', { rateLimit: { max: 1, per: '1m' } })
  slow(@Payload() n: number) {
    this.ran.push(n);
  }
}

const Steps = workflow('steps').add('one', 'slow', 1).add('two', 'free', 2, { after: 'one' });

@Injectable()
class Senders {
  readonly ran: string[] = [];

  constructor(private readonly client: AsynqClient) {}

  @TaskHandler('fills')
  async fills(@Payload() n: number) {
    await this.client.enqueue('free', n, { queue: 'small' });
    this.ran.push(`filled ${n}`);
  }

  @TaskHandler('waits')
  async waits() {
    const run = await this.client.start(Steps);
    this.ran.push((await run.done({ timeout: '1h' })).state);
  }

  @TaskHandler('slow')
  async slow() {}

  @TaskHandler('free')
  free(@Payload() n: number) {
    this.ran.push(`free ${n}`);
  }
}

let tasks: AsynqTester;
let client: AsynqClient;
let handlers: Handlers;

beforeEach(async () => {
  const made = await testApp({ providers: [Handlers] }, { server: { concurrency: 3 } });
  tasks = made.tasks;
  client = made.app.get(AsynqClient);
  handlers = made.app.get(Handlers);
});

describe('a test of a batch handler', () => {
  it('gets as many tasks as the rate allows, without waiting for more', async () => {
    await client.enqueueMany(Rows, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(await tasks.drain()).toMatchObject({ done: 6, left: [{ count: 3, reason: 'limited' }] });
    expect(handlers.calls.flat().toSorted()).toEqual([1, 2, 3, 4, 5, 6]);
    expect(await tasks.advance('64s')).toMatchObject({ done: 3, left: [] });
    expect(Math.max(...handlers.calls.map(({ length }) => length))).toBeGreaterThan(1);
  });

  it('runs a task alone', async () => {
    expect(await tasks.work(Rows, 7)).toMatchObject({ outcome: 'done' });
    expect(handlers.calls).toEqual([[7]]);
  });
});

describe('a test of tasks that expire', () => {
  it('archives or drops those that a rate held back for too long', async () => {
    await client.enqueue('slow', 1);
    await client.enqueue('slow', 2, { expiresIn: '30s' });
    await client.enqueue('slow', 3, { expiresIn: '30s', onExpiry: 'drop' });
    await client.enqueue('slow', 4);
    expect(await tasks.drain()).toMatchObject({ done: 1 });
    expect(await tasks.advance('5m')).toMatchObject({ done: 1, archived: 1, left: [] });
    expect(handlers.ran).toEqual([1, 4]);
    expect(tasks.archived('slow')).toMatchObject([{ payload: 2 }]);
    expect(tasks.all()).toHaveLength(1);
  });
});

describe('a test of a queue that is full', () => {
  const start = async () => {
    const made = await testApp(
      { providers: [Senders] },
      {
        queues: { small: { maxPending: 1, waitForRoom: '5s' } },
        server: { concurrency: 3, queues: { default: 1, small: 1 } },
      },
    );
    return { ...made, asynq: made.app.get(AsynqClient), senders: made.app.get(Senders) };
  };
  const add = (asynq: AsynqClient, n: number) => asynq.enqueue('free', n, { queue: 'small' });

  it('waits for room until tasks run, or the clock says that it was too long', async () => {
    const { tasks, asynq } = await start();
    await add(asynq, 1);
    const late = rejection(add(asynq, 2));
    await expect.poll(() => tasks.clock.nextDue(), { interval: 1 }).toBeDefined(); // it waits
    tasks.clock.advance(5_000);
    expect(await late).toBeInstanceOf(QueueFullError);

    const waiting = add(asynq, 3);
    const first = await tasks.drain(); // also the one that waits, if it is quick
    expect(await waiting).toMatchObject({ created: true });
    expect(first.done + (await tasks.drain()).done).toBe(2);
  });

  it('runs the tasks for which a handler waits to add one', async () => {
    const { tasks, asynq, senders } = await start();
    await asynq.enqueueMany('fills', [1, 2]);
    expect(await tasks.drain({ patience: 20 })).toMatchObject({ done: 4, left: [] });
    expect(senders.ran.toSorted()).toEqual(['filled 1', 'filled 2', 'free 1', 'free 2']);
  });

  it('runs the tasks of the workflow for which a handler waits', async () => {
    const { tasks, asynq, senders } = await start();
    await asynq.enqueue('waits');
    expect(await tasks.drain({ patience: 20 })).toMatchObject({ done: 3, left: [] });
    expect(senders.ran).toEqual(['free 2', 'succeeded']);
  });
});

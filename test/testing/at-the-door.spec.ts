import { Injectable } from '@nestjs/common';
import { AsynqClient, defineTask, Payload, TaskHandler } from 'nestjs-asynq';
import type { AsynqTester } from 'nestjs-asynq/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { testApp } from '../nest/support.js';

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

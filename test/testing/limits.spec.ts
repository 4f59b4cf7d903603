import { setImmediate as nextTurn } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { AsynqClient, AsynqSemaphores, defineTask, TaskCtx, TaskHandler, type TaskContext } from 'nestjs-asynq';
import type { AsynqTester } from 'nestjs-asynq/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { testApp } from '../nest/support.js';

const Refund = defineTask<number>('refund', { globalConcurrency: 1 });

@Injectable()
class Limited {
  running = 0;
  most = 0;
  readonly order: number[] = [];
  readonly starts: number[] = [];
  tester!: AsynqTester;

  constructor(private readonly semaphores: AsynqSemaphores) {}

  @TaskHandler('narrow', { concurrency: 2 })
  async narrow(@TaskCtx() task: TaskContext) {
    this.order.push(JSON.parse(task.payload.toString()));
    this.most = Math.max(this.most, ++this.running);
    await nextTurn();
    this.running--;
  }

  @TaskHandler('rated', { rateLimit: { max: 3, per: '1m' } })
  rated() {
    this.starts.push(this.tester.clock.now());
  }

  @TaskHandler('call:', { globalConcurrency: 1, rateLimit: { max: 2, per: '1m' }, limitScope: 'api' })
  calls() {
    this.starts.push(this.tester.clock.now());
  }

  @TaskHandler('other-call', { globalConcurrency: 1, rateLimit: { max: 2, per: '1m' }, limitScope: 'api' })
  otherCalls() {
    this.starts.push(this.tester.clock.now());
  }

  @TaskHandler(Refund)
  async refund(@TaskCtx() { signal }: TaskContext) {
    this.starts.push(this.tester.clock.now());
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  }

  @TaskHandler('borrows')
  async borrows(@TaskCtx() task: TaskContext) {
    await this.semaphores.get('refund', 1).run(task, () => this.narrow(task), { wait: '1s' });
  }

  @TaskHandler('free')
  free() {
    this.starts.push(this.tester.clock.now());
  }
}

let tasks: AsynqTester;
let client: AsynqClient;
let limited: Limited;

beforeEach(async () => {
  const queues = {
    default: 1,
    rated: { rateLimit: { max: 3, per: '1m' } },
    lone: { globalConcurrency: 1 },
    pair: { concurrency: 2 },
  } as const;
  const made = await testApp({ providers: [Limited] }, { server: { queues, concurrency: 5 } });
  tasks = made.tasks;
  client = made.app.get(AsynqClient);
  limited = made.app.get(Limited);
  limited.tester = tasks;
});

const numbers = (length: number) => Array.from({ length }, (_, index) => index);

/** How many ran at each time, in milliseconds after the first. */
const waves = () => {
  const counts: Record<number, number> = {};
  for (const time of limited.starts) counts[time - limited.starts[0]!] = (counts[time - limited.starts[0]!] ?? 0) + 1;
  return counts;
};

describe('a test of limited handlers', () => {
  it('runs no more of a handler at a time than its concurrency, and all of them', async () => {
    await client.enqueueMany('narrow', numbers(20));
    await client.enqueue('free');
    expect(await tasks.drain()).toMatchObject({ done: 21, postponed: 0, left: [] });
    expect(limited.most).toBe(2);
    expect(limited.order.toSorted((a, b) => a - b)).toEqual(numbers(20));
  });

  it('starts as many as the rate allows, says what is left and why, and starts the next when there is room', async () => {
    await client.enqueueMany('rated', [1, 2, 3, 4, 5, 6, 7]);
    await client.enqueue('free');
    const { done, left } = await tasks.drain();
    expect(done).toBe(4);
    expect(left).toEqual([
      {
        queue: 'default',
        type: 'rated',
        count: 4,
        reason: 'limited',
        why: 'a limit of the handlers of "rated" holds them back: advance the clock',
      },
    ]);
    expect(await tasks.advance('59s')).toMatchObject({ done: 0, left: [{ count: 4 }] });
    expect(await tasks.advance('1s')).toMatchObject({ done: 3, left: [{ count: 1 }] });
    expect(await tasks.advance('2m')).toMatchObject({ done: 1, left: [] });
    limited.starts.splice(3, 1); // of the task that is free
    expect(waves()).toEqual({ 0: 3, 60_000: 3, 120_000: 1 });
  });

  it('lets handlers of one scope share their limits', async () => {
    await client.enqueueMany('call:a', [1, 2]);
    await client.enqueueMany('other-call', [1, 2]);
    const { done, left } = await tasks.drain();
    expect(done).toBe(2);
    expect(left.map(({ reason, why }) => [reason, why])).toContainEqual(['limited', expect.stringContaining('"api"')]);
    expect(await tasks.advance('64s')).toMatchObject({ done: 2, left: [] });
  });

  it('runs the next of a fleet-wide limit when one ends, also at its time-out, while hours pass', async () => {
    await client.enqueueMany(Refund, [1, 2, 3], { timeout: '1h', maxRetry: 0 });
    expect(await tasks.advance('3h')).toMatchObject({ archived: 3, left: [] });
    expect(waves()).toEqual({ 0: 1, [3_600_000]: 1, [7_200_000]: 1 });
  });

  it('counts semaphores of handlers with the same scope', async () => {
    await client.enqueue(Refund, 1, { timeout: '10s', maxRetry: 0 });
    await client.enqueue('borrows', 2, { maxRetry: 0, processIn: '1s' });
    const { archived, done, postponed } = await tasks.advance('15s');
    expect({ archived, done }).toEqual({ archived: 1, done: 1 });
    expect(postponed).toBeGreaterThan(3);
  });

  it('runs hundreds of tasks at a rate without a pass for each', async () => {
    await client.enqueueMany('rated', numbers(300));
    expect(await tasks.advance('2h')).toMatchObject({ done: 300, left: [] });
    expect(Object.values(waves())).toEqual(Array.from({ length: 100 }).fill(3));
  });

  it('runs one task alone whatever the limit, and counts it for none', async () => {
    for (let n = 0; n < 5; n++) expect(await tasks.work('rated', n)).toMatchObject({ outcome: 'done' });
    await client.enqueueMany('rated', [1, 2, 3]);
    expect(await tasks.drain()).toMatchObject({ done: 3, left: [] });
  });
});

describe('a test of limited queues', () => {
  it('starts as many as the rate allows, and the next when there is room', async () => {
    await client.enqueueMany('free', [1, 2, 3, 4, 5], { queue: 'rated' });
    expect(await tasks.drain()).toMatchObject({
      done: 3,
      left: [{ count: 2, reason: 'limited', why: 'a limit of the queue "rated" holds them back: advance the clock' }],
    });
    expect(await tasks.advance('64s')).toMatchObject({ done: 2, left: [] });
    expect(waves()).toEqual({ 0: 3, 60_000: 2 });
  });

  it.each([
    ['lone', 1],
    ['pair', 2],
  ])('runs no more of "%s" at a time than it allows', async (queue, most) => {
    await client.enqueueMany('borrows', [1], { queue });
    await client.enqueueMany('narrow', [1, 2, 3, 4, 5], { queue });
    expect(await tasks.drain()).toMatchObject({ done: 6, left: [] });
    expect(limited.most).toBe(most);
  });
});

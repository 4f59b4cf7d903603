import { Injectable } from '@nestjs/common';
import { AsynqClient, defineTask, TaskHandler, type TaskContext } from 'nestjs-asynq';
import type { AsynqTester } from 'nestjs-asynq/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { testApp } from '../nest/support.js';

interface Prompt {
  readonly tokens: number;
  readonly spent?: number;
}

const Complete = defineTask<Prompt>('complete', {
  rateLimit: { max: 100, per: '1m', cost: (prompt) => prompt.tokens },
  limitScope: 'model',
});
const COSTS: Readonly<Record<string, () => number>> = {
  throws: () => {
    throw new Error('no tokenizer');
  },
  async: () => Promise.reject(new Error('later')) as unknown as number,
};
/** The cost is what the payload says, whatever that is. */
const Odd = defineTask<{ cost: unknown }>('odd', {
  rateLimit: { max: 100, per: '1m', cost: ({ cost }) => COSTS[cost as string]?.() ?? (cost as number) },
});
const Plain = defineTask<void>('plain');

@Injectable()
class Tasks {
  readonly ran: number[] = [];

  @TaskHandler(Complete)
  complete({ tokens, spent }: Prompt, task: TaskContext) {
    this.ran.push(tokens);
    if (spent !== undefined) task.spent(spent);
  }

  @TaskHandler('ping', { rateLimit: { max: 100, per: '1m' }, limitScope: 'model' })
  ping() {
    this.ran.push(1);
  }

  @TaskHandler(Odd)
  odd() {
    this.ran.push(0);
  }

  @TaskHandler(Plain)
  plain(_payload: void, task: TaskContext) {
    task.spent(1);
  }
}

let tester: AsynqTester;
let client: AsynqClient;
let tasks: Tasks;

beforeEach(async () => {
  const { app, tasks: made } = await testApp({ providers: [Tasks] });
  [tester, client, tasks] = [made, app.get(AsynqClient), app.get(Tasks)];
});

const add = async (...prompts: Prompt[]): Promise<void> => {
  for (const prompt of prompts) await client.enqueue(Complete, prompt);
};

describe('a rate with a cost', () => {
  it('lets tasks start while their costs fit, and the others when there is room', async () => {
    await add({ tokens: 60 }, { tokens: 30 }, { tokens: 50 }, { tokens: 10 });
    await tester.drain();
    expect(tasks.ran).toEqual([60, 30]); // 10 would fit, and 50 waits before it
    await tester.advance('2m');
    expect(tasks.ran).toEqual([60, 30, 50, 10]);
  });

  it('is corrected by what the handler has spent: less is room at once', async () => {
    await add({ tokens: 100, spent: 20 });
    await tester.drain();
    await add({ tokens: 80 }, { tokens: 1 });
    await tester.drain();
    expect(tasks.ran).toEqual([100, 80]);
  });

  it('is corrected by what the handler has spent: more holds others back', async () => {
    await add({ tokens: 10, spent: 99.5 });
    await tester.drain();
    await add({ tokens: 1 });
    await tester.drain();
    expect(tasks.ran).toEqual([10]);
    await tester.advance('2m');
    expect(tasks.ran).toEqual([10, 1]);
  });

  it('counts 1 for handlers of its scope without a cost, and nothing for a cost of 0', async () => {
    await add({ tokens: 99 });
    for (let count = 0; count < 2; count++) await client.enqueue('ping');
    await add({ tokens: 0 });
    await tester.drain();
    expect(tasks.ran).toEqual([99, 1, 0]);
  });

  it('archives a task that could never run', async () => {
    await add({ tokens: 101 });
    const { outcomes } = await tester.drain();
    expect(outcomes).toMatchObject([{ outcome: 'archived', error: { code: 'ASYNQ_INVALID_COST' } }]);
    expect(tester.archived()[0]?.lastErr).toBe(
      'task "complete" costs 101, and its rateLimit allows 100 at most, so it could never run; split it, or raise max',
    );
  });

  it.each<[unknown, string]>([
    [-1, 'returned -1'],
    ['7', 'returned "7"'],
    [null, 'returned null'],
    ['async', 'returned a promise; await it first; it must return a number of 0 or more, at once'],
    ['throws', 'threw: no tokenizer'],
  ])('fails a task whose cost is %j', async (cost, message) => {
    await client.enqueue(Odd, { cost });
    const { outcomes } = await tester.drain();
    expect(outcomes).toMatchObject([{ outcome: 'retry', error: { code: 'ASYNQ_INVALID_COST' } }]);
    expect((outcomes[0]!.error as Error).message).toContain(`cost of task "odd" ${message}`);
    expect(tasks.ran).toEqual([]);
  });

  it('archives a task whose payload cannot be decoded, as without a rate', async () => {
    const broken = { encode: () => Buffer.from('{'), decode: () => undefined };
    await client.enqueue(defineTask('complete', { codec: broken }), {});
    expect((await tester.drain()).outcomes).toMatchObject([
      {
        outcome: 'archived',
        error: { message: expect.stringContaining('payload of task "complete" cannot be decoded') },
      },
    ]);
  });

  it('refuses a wrong amount, and one where there is no cost', async () => {
    await add({ tokens: 1, spent: -1 });
    await client.enqueue(Plain);
    const { outcomes } = await tester.drain();
    expect(outcomes.map(({ error }) => (error as Error).message).sort()).toEqual([
      'spent of task "complete" takes a number from 0 to 1000000000000, not -1',
      'spent of task "plain": its handler has no rateLimit with a cost; give it cost: (payload) => …, or do not call spent',
    ]);
  });

  it('counts nothing of a task that runs alone, which may say what it has spent', async () => {
    for (let count = 0; count < 3; count++) {
      expect(await tester.work(Complete, { tokens: 90, spent: 95 })).toMatchObject({ outcome: 'done' });
    }
    await add({ tokens: 100 });
    expect(await tester.drain()).toMatchObject({ done: 1, left: [] });
  });

  it('does not take what is no function, nor stand at a queue', async () => {
    const wrong = { max: 1, per: 1000, cost: 5 as unknown as () => number };
    expect(() => defineTask('t', { rateLimit: wrong })).toThrow('cost of rateLimit of task "t" must be a function');
    const rateLimit = { max: 1, per: 1000, cost: () => 1 };
    const { app } = await testApp({ providers: [Tasks] }, { server: { queues: { default: { rateLimit } } } });
    await expect(app.init()).rejects.toThrow(
      'rateLimit of queue "default" counts tasks, and cannot have a cost; give it to their handlers',
    );
  });
});

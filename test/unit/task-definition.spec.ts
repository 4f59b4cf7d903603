import { describe, expect, expectTypeOf, it } from 'vitest';
import { AsynqClient } from '../../lib/client/client.js';
import type { EnqueueResult } from '../../lib/enqueue/enqueue-result.js';
import { InvalidTaskError } from '../../lib/errors.js';
import { defineTask, type PayloadOf, type ResultOf, type TaskDefinition } from '../../lib/task/definition.js';
import type { TaskInfo } from '../../lib/task/info.js';
import { FakeProducerBroker } from '../support/producer-broker.js';

interface Welcome {
  userId: number;
}

const WelcomeEmail = defineTask<Welcome, string>('email:welcome', { queue: 'critical', maxRetry: 5, timeout: '30s' });
const Warm = defineTask<void>('cache:warm');

describe('defineTask', () => {
  it('keeps type, defaults and handling apart, frozen', () => {
    const retryDelay = () => 1000;
    const isFailure = () => true;
    const definition = defineTask('x', { queue: 'low', retryDelay, isFailure });
    expect(definition).toEqual({ type: 'x', options: { queue: 'low' }, retryDelay, isFailure, codec: undefined });
    expect(Object.isFrozen(definition)).toBe(true);
    expect(Object.isFrozen(definition.options)).toBe(true);
  });

  it('does not follow later changes of the object it was given', () => {
    const options = { queue: 'low' };
    const definition = defineTask('x', options);
    options.queue = 'high';
    expect(definition.options.queue).toBe('low');
  });

  it.each<[string, string, object | null, string]>([
    ['a blank type', ' \u0085', {}, 'task typename cannot be empty'],
    ['an unknown option', 'x', { maxRetries: 3 }, 'unknown option of task "x": "maxRetries"; did you mean "maxRetry"?'],
    ['a wrong option', 'x', { timeout: -1 }, 'timeout must not be negative'],
    ['options that are none', 'x', null, 'options of task "x" must be an object, not null'],
    [
      'a retryDelay that is none',
      'x',
      { retryDelay: 5 },
      'retryDelay of task "x" ((retried) => milliseconds) must be a function, not 5',
    ],
    ['an isFailure that is none', 'x', { isFailure: true }, 'isFailure of task "x" must be a function, not true'],
    ['a codec that is none', 'x', { codec: { encode() {} } }, 'codec of task "x": decode must be a function'],
  ])('refuses %s', (_, type, options, text) => {
    expect(() => defineTask(type, options as object)).toThrow(InvalidTaskError);
    expect(() => defineTask(type, options as object)).toThrow(text);
  });
});

describe('types', () => {
  it('carry the payload and the result', () => {
    expectTypeOf<PayloadOf<typeof WelcomeEmail>>().toEqualTypeOf<Welcome>();
    expectTypeOf<ResultOf<typeof WelcomeEmail>>().toEqualTypeOf<string>();
    expectTypeOf(WelcomeEmail).toExtend<TaskDefinition>();
    expect(WelcomeEmail).not.toHaveProperty('__types');
  });

  it('accept a valid payload and reject an invalid one', async () => {
    const client = new AsynqClient(new FakeProducerBroker());
    const right: Promise<TaskInfo>[] = [
      client.enqueue(WelcomeEmail, { userId: 1 }),
      client.enqueue(WelcomeEmail, { userId: 1 }, { processIn: '10m' }),
      client.enqueue(Warm),
      client.enqueue(Warm, undefined, { queue: 'low' }),
      client.enqueue('any:type', { whatever: 1 }, { maxRetry: 1 }),
      client.enqueue('any:type'),
    ];
    const wrong = [
      // @ts-expect-error a payload of another type
      client.enqueue(WelcomeEmail, { userId: 'one' }),
      // @ts-expect-error a missing payload
      client.enqueue(WelcomeEmail),
      // @ts-expect-error a payload for a task that has none
      client.enqueue(Warm, { userId: 1 }),
    ];
    expect(await Promise.all([...right, ...wrong])).toHaveLength(9);
    // @ts-expect-error an option that does not exist
    await expect(client.enqueue(WelcomeEmail, { userId: 1 }, { delay: 5 })).rejects.toThrow(InvalidTaskError);
  });

  it('apply to many tasks as to one', async () => {
    const client = new AsynqClient(new FakeProducerBroker());
    const users: Welcome[] = [{ userId: 1 }];
    const right: Promise<EnqueueResult[]>[] = [
      client.enqueueMany(WelcomeEmail, users, { queue: 'low' }),
      client.enqueueMany('any:type', [1, 'two']),
      client.enqueueMany([
        { task: WelcomeEmail, payload: { userId: 1 } },
        { task: Warm, options: { queue: 'low' } },
        { type: 'any:type', payload: [1] },
      ]),
      client.enqueueMany(users.map((user) => ({ task: WelcomeEmail, payload: user }))),
    ];
    const wrong = [
      // @ts-expect-error a payload of another type
      client.enqueueMany(WelcomeEmail, [{ userId: 'one' }]),
      // @ts-expect-error a payload of another type
      client.enqueueMany([{ task: WelcomeEmail, payload: { userId: 'one' } }]),
      // @ts-expect-error a missing payload
      client.enqueueMany([{ task: Warm }, { task: WelcomeEmail }]),
    ];
    expect((await Promise.all([...right, ...wrong])).flat().every((result) => result.ok)).toBe(true);
  });

  it('distinguish success from failure', async () => {
    const [result] = await new AsynqClient(new FakeProducerBroker()).enqueueMany(Warm, [undefined]);
    if (result!.ok) expectTypeOf(result!.info).toEqualTypeOf<TaskInfo>();
    else expectTypeOf(result!.error).toEqualTypeOf<Error>();
    expect(result!.info?.type).toBe('cache:warm');
  });
});

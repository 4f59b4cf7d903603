import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { AsynqClient } from '../../../lib/client/client.js';
import type { BatchOptions } from '../../../lib/batches/options.js';
import { BatchNotFoundError, ClosedError, InvalidTaskError } from '../../../lib/errors.js';
import { defineTask } from '../../../lib/task/definition.js';
import { FakeBatchesBroker } from '../../support/batches-broker.js';

const Done = defineTask<{ id: number }>('import:done', { queue: 'mail', maxRetry: 3 });
const Tick = defineTask<undefined>('tick');

const setUp = () => {
  const broker = new FakeBatchesBroker();
  return { broker, client: new AsynqClient(broker) };
};

describe('openBatch', () => {
  it('stores the batch in its queue, with the tasks that are its callbacks', async () => {
    const { broker, client } = setUp();
    const now = broker.clock.now() / 1000;
    const batch = await client.openBatch({
      name: 'import 42',
      queue: 'imports',
      onSuccess: [Done, { id: 42 }],
      onComplete: ['import:ended', { id: 42 }, { queue: 'low' }],
      onDeath: [Tick],
    });
    expect(batch.queue).toBe('imports');
    expect(batch.id).toMatch(/^batch-[\w-]{22}$/);
    expect(inspect(batch)).toBe(`AsynqBatch { queue: 'imports', id: '${batch.id}' }`);
    const [{ home, batch: stored }] = broker.opened as [(typeof broker.opened)[0]];
    expect(home).toBe('imports');
    expect(stored).toMatchObject({ id: batch.id, name: 'import 42', closeBy: now + 3600, retention: 7 * 86_400 });
    const { success, complete, death } = stored.callbacks;
    expect(success?.message).toMatchObject({
      type: 'import:done',
      queue: 'mail',
      maxRetry: 3,
      id: `${batch.id}~success`,
    });
    expect(JSON.parse(success!.message.payload.toString())).toEqual({ id: 42 });
    expect(complete?.message).toMatchObject({ type: 'import:ended', queue: 'low', id: `${batch.id}~complete` });
    expect(success?.message.headers).toEqual({ 'asynq-batch': JSON.stringify(batch) });
    expect(death?.message).toMatchObject({ type: 'tick', queue: 'default', id: `${batch.id}~death` });
  });

  it('takes its times as durations, in whole seconds, rounded up', async () => {
    const { broker, client } = setUp();
    await client.openBatch({ name: 'n', closeWithin: '90.5s', retention: 5001 });
    const closeBy = Math.ceil((broker.clock.now() + 90_500) / 1000);
    expect(broker.opened[0]).toMatchObject({ home: 'default', batch: { closeBy, retention: 6, callbacks: {} } });
  });

  const Grouped = defineTask('grouped', { group: 'g' });
  const Delayed = defineTask('delayed', { processIn: '1m' });
  it.each<[string, unknown, RegExp]>([
    ['no options', undefined, /options of openBatch must be an object, not undefined/],
    ['no name', {}, /name of a batch must be a string, not undefined/],
    ['a blank name', { name: ' ' }, /name of a batch must contain/],
    ['a long name', { name: 'x'.repeat(201) }, /at most 200 characters, not 201/],
    [
      'an unknown option',
      { name: 'n', onSucces: ['t'] },
      /unknown option of openBatch "onSucces"; did you mean "onSuccess"/,
    ],
    ['a queue with braces', { name: 'n', queue: '{q}' }, /queue of a batch "\{q\}" has a brace/],
    ['a queue that is named like marks', { name: 'n', queue: '~q' }, /queue of a batch is "~q": a name that begins/],
    [
      'the same for a callback',
      { name: 'n', onSuccess: ['t', 1, { queue: '~t' }] },
      /queue of onSuccess of a batch is "~t"/,
    ],
    [
      'a wait of a callback that its definition does not have',
      { name: 'n', onSuccess: ['t', 1, { after: [] }] },
      /onSuccess of a batch cannot have "after"; leave it out, or define the task with it/,
    ],
    ['no time to close', { name: 'n', closeWithin: 0 }, /closeWithin of a batch must be at least 1 second, not 0/],
    ['a short retention', { name: 'n', retention: '1s' }, /retention of a batch must be at least 5 seconds, not "1s"/],
    ['a retention that is none', { name: 'n', retention: 'soon' }, /retention of a batch: "soon" is not a duration/],
    ['a callback that is no array', { name: 'n', onDeath: 't' }, /onDeath of a batch must be an array .* not "t"/],
    ['an empty callback', { name: 'n', onDeath: [] }, /not an array of 0/],
    ['a callback without a task', { name: 'n', onDeath: [7] }, /a type name or a task definition, not 7/],
    ['a payload that is not JSON', { name: 'n', onComplete: ['t', 1n] }, /payload of task "t" cannot be encoded/],
    ['an id', { name: 'n', onSuccess: ['t', 1, { taskId: 'x' }] }, /onSuccess of a batch cannot have "taskId": its id/],
    ['a lock', { name: 'n', onSuccess: ['t', 1, { unique: '1h' }] }, /cannot have "unique": it is enqueued once/],
    ['a time', { name: 'n', onSuccess: ['t', 1, { processIn: '1h' }] }, /cannot have "processIn": it starts when/],
    [
      'a mistyped option',
      { name: 'n', onSuccess: ['t', 1, { queu: 'q' }] },
      /unknown option of onSuccess of a batch "queu"/,
    ],
    [
      'a definition with a group',
      { name: 'n', onSuccess: [Grouped, 1] },
      /cannot have "group", which the definition of "grouped"/,
    ],
    [
      'a definition with a delay',
      { name: 'n', onSuccess: [Delayed, 1] },
      /cannot have "processIn", which the definition/,
    ],
  ])('refuses %s, before anything is written', async (_, options, text) => {
    const { broker, client } = setUp();
    const opening = client.openBatch(options as BatchOptions);
    await expect(opening).rejects.toThrow(InvalidTaskError);
    await expect(opening).rejects.toThrow(text);
    expect(broker.opened).toEqual([]);
  });

  it('knows the payloads of definitions', () => {
    const check = (client: AsynqClient) => {
      void client.openBatch({ name: 'n', onSuccess: [Done, { id: 1 }], onComplete: [Tick], onDeath: ['any', [1]] });
      void client.openBatch({ name: 'n', onSuccess: [Done, { id: 1 }, { queue: 'q' }] });
      // @ts-expect-error the payload of Done has an id
      void client.openBatch({ name: 'n', onSuccess: [Done, { ids: 1 }] });
      void client.openBatch({
        name: 'n',
        onSuccess: [
          Done,
          // @ts-expect-error here, and not at the definition, as with every mistake in a callback
          { ids: 1 },
        ],
        onComplete: [
          Tick,
          // @ts-expect-error the same for a task without a payload
          { id: 1 },
        ],
      });
      // @ts-expect-error a callback is an array
      void client.openBatch({ name: 'n', onSuccess: Done });
      // @ts-expect-error it begins with a task
      void client.openBatch({ name: 'n', onSuccess: [{ id: 1 }] });
      const late: BatchOptions = { name: 'n', onSuccess: [Done, { id: 1 }], onDeath: ['any'] };
      void client.openBatch(late);
      // @ts-expect-error the payload of Done is needed
      void client.openBatch({ name: 'n', onSuccess: [Done] });
      // @ts-expect-error a callback has no lock
      void client.openBatch({ name: 'n', onSuccess: [Done, { id: 1 }, { unique: '1h' }] });
      // @ts-expect-error a batch has a name
      void client.openBatch({});
    };
    expect(check).toBeTypeOf('function');
  });
});

describe('a handle of a batch', () => {
  it('is made of a reference, also one that went through JSON', async () => {
    const { broker, client } = setUp();
    const batch = await client.openBatch({ name: 'n', queue: 'q' });
    const again = client.batch(JSON.parse(JSON.stringify(batch)));
    expect(again).toMatchObject({ queue: 'q', id: batch.id });
    await again.close();
    expect(broker.closed).toEqual([`q ${batch.id}`]);
  });

  it('reports how far the batch is', async () => {
    const { client } = setUp();
    expect(await client.batch({ queue: 'q', id: 'b' }).progress()).toEqual({
      id: 'b',
      queue: 'q',
      name: 'n',
      state: 'closed',
      total: 3,
      pending: 1,
      succeeded: 1,
      failed: 1,
      failedIn: ['rows'],
      openedAt: new Date(1_000),
      endedAt: undefined,
    });
  });

  it('says so when there is no such batch', async () => {
    const { client } = setUp();
    const gone = client.batch({ queue: 'q', id: 'gone' });
    await expect(gone.progress()).rejects.toThrow(BatchNotFoundError);
    await expect(gone.close()).rejects.toThrow('batch not found: id="gone", queue="q"');
  });

  it('refuses a reference that is none', () => {
    const { client } = setUp();
    expect(() => client.batch(undefined as never)).toThrow('a batch must be an object, not undefined');
    expect(() => client.batch({ queue: 'q' } as never)).toThrow('id of a batch must be a string, not undefined');
    expect(() => client.batch({ id: 'b' } as never)).toThrow('queue of a batch must be a string, not undefined');
  });

  it('does nothing on a client that is closed', async () => {
    const { broker, client } = setUp();
    const batch = await client.openBatch({ name: 'n' });
    await client.close();
    await expect(client.openBatch({ name: 'n' })).rejects.toThrow(ClosedError);
    await expect(batch.add('t', [1])).rejects.toThrow(ClosedError);
    await expect(batch.close()).rejects.toThrow(ClosedError);
    expect(broker.reserved).toEqual([]);
  });
});

import { describe, expect, it } from 'vitest';
import { AsynqClient } from '../../../lib/client/client.js';
import { InvalidTaskError } from '../../../lib/errors.js';
import type { LinkedRequest } from '../../../lib/broker/links.js';
import type { TaskOptions } from '../../../lib/task/options.js';
import { defineTask } from '../../../lib/task/definition.js';
import { FakeProducerBroker } from '../../support/producer-broker.js';

interface Order {
  orderId: string;
}

const key = ({ orderId }: Order): string => orderId;
const Capture = defineTask<Order>('capture', { key, rememberFor: '7d', queue: 'payments' });
const Unkeyed = defineTask<Order>('unkeyed');

const NOW = 1_700_000_000_000;
const setUp = () => {
  const broker = new FakeProducerBroker({ now: NOW });
  const { links } = broker;
  const linked: LinkedRequest[] = [];
  const enqueue: typeof links.enqueue = (queue, requests) => {
    linked.push(...requests);
    return links.enqueue(queue, requests);
  };
  const watched = Object.create(links, { enqueue: { value: enqueue } }) as typeof links;
  const client = new AsynqClient(Object.create(broker, { links: { value: watched } }) as typeof broker);
  return { broker, client, linked };
};

/** What a wrong option of a definition says. */
const refusal = (options: object): string => {
  try {
    defineTask('x', options);
  } catch (error) {
    if (error instanceof InvalidTaskError) return error.message;
    throw error;
  }
  throw new Error('the definition was accepted');
};

describe('a definition with links', () => {
  it('types its key function, and what it waits for', () => {
    // @ts-expect-error: no such field in the payload
    defineTask<Order>('x', { key: (order) => order.customer as string });
    // @ts-expect-error: not text
    defineTask<{ n: number }>('x', { key: ({ n }) => n });
    // @ts-expect-error: a promise
    defineTask<Order>('x', { key: async ({ orderId }) => orderId });
    const wrongTask = (): unknown =>
      // @ts-expect-error: only a call can wait for one task
      defineTask<Order>('x', { key, after: { queue: 'q', id: 'i' } });
    expect(wrongTask).not.toThrow();
    const Ship = defineTask<Order, number>('x', { key: (order) => order.orderId, after: [Capture, { task: Capture }] });
    expect(Ship.links).toMatchObject({ rememberFor: 0, onFailure: 'cancel', onTimeout: 'archive' });
  });

  it('takes a definition of any payload and result to wait for', () => {
    const Other = defineTask<{ id: number }, string[]>('other', { key: ({ id }) => String(id), rememberFor: 1000 });
    const made = defineTask<Order>('x', { after: { task: Other, key: (order) => order.orderId } });
    expect(made.links?.after).toHaveLength(1);
  });

  it.each<[string, object, RegExp]>([
    ['a key that is no function', { key: 'orderId' }, /key of task "x" must be a function/],
    ['rememberFor without key', { rememberFor: '1d' }, /rememberFor of task "x" needs key/],
    ['rememberFor below a second', { key, rememberFor: 999 }, /at least 1 second, not 999/],
    ['rememberFor of nonsense', { key, rememberFor: 'soon' }, /rememberFor of task "x": "soon" is not a duration/],
    ['after a definition without key', { key, after: Unkeyed }, /"unkeyed" leaves no trace .* key and rememberFor/],
    ['after a key only', { key, after: defineTask('y', { key }) }, /"y" leaves no trace/],
    ['after without a key of its own', { after: Capture }, /which "capture" is meant\? Give task "x" a key/],
    ['after a type name', { key, after: 'capture' }, /must be a task definition, a TaskInfo or \{ queue, id \}/],
    ['after nothing', { key, after: [undefined] }, /after\[0\] .*in a circle/],
    ['after an object', { key, after: { task: {} } }, /must be made by defineTask/],
    ['an unknown name in after', { key, after: { task: Capture, keys: key } }, /unknown option .*did you mean "key"/],
    [
      'a key in after that is none',
      { after: { task: Capture, key: 1 } },
      /key in after of task "x" must be a function/,
    ],
    ['1,001 prerequisites', { key, after: Array(1001).fill(Capture) }, /waits for 1,001 tasks, more than 1,000/],
    ['group and after', { key, after: Capture, group: 'g' }, /both group and after/],
    ['group and rememberFor', { key, rememberFor: '1d', group: 'g' }, /both group and rememberFor/],
    ['onFailure', { onFailure: 'cancle' }, /onFailure of task "x": "cancle" is unknown; did you mean "cancel"/],
    ['onTimeout', { onTimeout: 'wait' }, /onTimeout of task "x": "wait" is unknown; it is one of archive, run/],
    ['missing', { missing: 'ok' }, /missing of task "x": "ok" is unknown; it is one of succeeded, failed/],
    ['waitAtMost', { waitAtMost: 0 }, /waitAtMost of task "x" must be longer than 0/],
    ['the group of waiting tasks', { group: 'asynq:waiting' }, /holds the tasks that wait for others/],
    ['an unknown option', { afer: Capture }, /did you mean "after"/],
  ])('refuses %s', (_, options, message) => {
    expect(refusal(options)).toMatch(message);
  });

  it('refuses a type with braces that is remembered', () => {
    expect(() => defineTask('a}b', { key, rememberFor: '1d' })).toThrow(/has a brace/);
    expect(() => defineTask('a}b', { key })).not.toThrow();
  });

  it('refuses cycles of the same key, and allows those of other keys', () => {
    const B = defineTask<Order>('b', { key, rememberFor: '1d', after: Capture });
    expect(() => defineTask<Order>('capture', { key, after: B })).toThrow(
      'task "capture" waits for itself: capture after b after capture; leave one of these out',
    );
    expect(() => defineTask<Order>('capture', { key, after: Capture })).toThrow(/capture after capture/);
    const previous = { task: Capture, key: ({ orderId }: Order) => `${orderId}-0` };
    expect(() => defineTask<Order>('capture', { key, after: previous })).not.toThrow();
  });
});

describe('a call with links', () => {
  it('types the key by the payload of the call', () => {
    const { client } = setUp();
    const Note = defineTask<{ order: Order }>('note');
    const calls = [
      () =>
        client.enqueue(
          Note,
          { order: { orderId: '7' } },
          { after: { task: Capture, key: ({ order }) => order.orderId } },
        ),
      () => client.enqueueMany(Note, [], { after: [{ task: Capture, key: ({ order }) => order.orderId }] }),
      () =>
        client.enqueue(
          Note,
          { order: { orderId: '7' } },
          // @ts-expect-error: no such field in the payload
          { after: { task: Capture, key: ({ nobody }) => nobody as string } },
        ),
      // @ts-expect-error: an id without a queue
      () => client.enqueue(Note, { order: { orderId: '7' } }, { after: { id: '7' } }),
      // @ts-expect-error: no such policy
      () => client.enqueue('note', {}, { after: [], onFailure: 'ignore' }),
    ];
    expect(calls).toHaveLength(5);
  });

  it('stores what it waits for, and holds its lock that much longer', async () => {
    const { client, linked } = setUp();
    const Ship = defineTask<Order>('ship', {
      key,
      after: Capture,
      onFailure: 'wait',
      waitAtMost: '90s',
      unique: '10s',
    });
    expect(await client.enqueue(Ship, { orderId: '7' })).toMatchObject({
      state: 'waiting',
      retention: 0,
      nextProcessAt: new Date(NOW + 90_000),
    });
    expect(linked[0]!).toMatchObject({
      wait: {
        prerequisites: [{ type: 'capture', key: '7' }],
        onFailure: 'wait',
        onTimeout: 'archive',
        deadline: NOW / 1000 + 90,
      },
      uniqueTtl: 100,
    });
    expect(linked[0]!.mark).toBeUndefined();
  });

  it('marks a remembered task, and shows no retention that nobody asked for', async () => {
    const { client, linked } = setUp();
    expect(await client.enqueue(Capture, { orderId: '7' })).toMatchObject({ state: 'pending', retention: 0 });
    expect(linked[0]!).toMatchObject({
      mark: { type: 'capture', key: '7', rememberFor: 604_800 },
      message: { retention: 604_801 },
    });
    expect(linked[0]!.wait).toBeUndefined();
  });

  it('leaves the request of a task without links as it was', async () => {
    const { client, broker } = setUp();
    await client.enqueue(Unkeyed, { orderId: '7' });
    await client.enqueue(defineTask<Order>('keyed', { key }), { orderId: '7' });
    await client.enqueue(defineTask<Order>('free', { key, after: Capture }), { orderId: '7' }, { after: [] });
    for (const request of broker.requests) {
      expect(Object.keys(request).sort()).toEqual(['madeId', 'message', 'processAt', 'repeat', 'uniqueTtl']);
      expect((request as { repeat?: unknown }).repeat).toBeUndefined();
      expect(request.message.retention).toBe(0);
    }
  });

  it.each<[string, (order: Order) => unknown, RegExp]>([
    ['throws', () => { throw new Error('no order'); }, /key of task "k" threw: no order/], // oxfmt-ignore
    ['returns nothing', () => undefined, /key of task "k" must return a string, not undefined/],
    ['returns a number', () => 7, /must return a string, not 7/],
    ['returns blank text', () => ' ', /key of task "k" returned blank text/],
    ['returns a promise', () => Promise.resolve('7'), /returned a promise; it must return the text at once/],
    ['returns a promise that fails', () => Promise.reject(new Error('x')), /returned a promise/],
    ['returns half a character', () => '\ud800', /half a character/],
    ['returns a novel', () => 'x'.repeat(1001), /returned 1001 characters; a key has at most 1000/],
  ])('refuses a key that %s, before anything is written', async (_, wrong, message) => {
    const { client, broker, linked } = setUp();
    const Keyed = defineTask<Order>('k', { key: wrong as typeof key, rememberFor: '1d' });
    await expect(client.enqueue(Keyed, { orderId: '7' })).rejects.toThrow(message);
    const [one, two] = await client.enqueueMany(Keyed, [{ orderId: '7' }, { orderId: '8' }]);
    expect([one!.error, two!.error]).toEqual([expect.any(InvalidTaskError), expect.any(InvalidTaskError)]);
    const Waiting = defineTask<Order>('w', { after: { task: Capture, key: wrong as typeof key } });
    await expect(client.enqueue(Waiting, { orderId: '7' })).rejects.toThrow(
      /the key of "capture" in after of task "w"/,
    );
    expect([...broker.calls, ...linked]).toEqual([]);
  });

  it.each<[string, object, RegExp]>([
    ['itself', { after: { queue: 'default', id: 'me' }, taskId: 'me' }, /with id "me" cannot wait for itself/],
    ['a blank id', { after: { queue: 'default', id: ' ' } }, /id in after of task "x" is blank/],
    ['an id without a queue', { after: { id: 'a' } }, /queue in after of task "x" must be a string/],
    [
      'a task of a queue of marks',
      { after: { queue: '~x', id: 'a' } },
      /queue in after of task "x" is "~x": .* begins with ~/,
    ],
    ['others in a queue of marks', { after: { queue: 'q', id: 'a' }, queue: '~q' }, /the queue of task "x" is "~q"/],
    ['a queue with a brace', { after: { queue: 'a}', id: 'a' } }, /has a brace/],
    ['nothing, with a policy', { onFailure: 'run' }, /onFailure of task "x" needs after/],
    ['others in a group', { after: { queue: 'default', id: 'a' }, group: 'g' }, /both group and after/],
    ['a definition without its key', { after: Capture }, /which "capture" is meant/],
    ['too many', { after: Array.from({ length: 1001 }, () => ({ queue: 'default', id: 'a' })) }, /more than 1,000/],
    ['others, misspelled', { afte: Capture }, /unknown task option "afte"; did you mean "after"/],
  ])('refuses to wait for %s', async (_, options, message) => {
    const { client, broker, linked } = setUp();
    await expect(client.enqueue('x', {}, options)).rejects.toThrow(message);
    const [result] = await client.enqueueMany([{ type: 'x', payload: {}, options }]);
    expect(result!.error!.message).toMatch(message);
    expect([...broker.calls, ...linked]).toEqual([]);
  });

  it('refuses a promise of what it waits for, and says what to do', async () => {
    const { client } = setUp();
    const after = Promise.resolve({ queue: 'default', id: 'a' });
    await expect(client.enqueue('t', {}, { after: after as never })).rejects.toThrow('not a promise; await it first');
  });

  it('refuses a task that waits for its own key', async () => {
    const { client } = setUp();
    const Chained = defineTask<Order>('capture', { key, after: { task: Capture, key: ({ orderId }) => orderId } });
    await expect(client.enqueue(Chained, { orderId: '7' })).rejects.toThrow('with key "7" cannot wait for itself');
  });

  it('refuses a task of a group, which has no end of its own', async () => {
    const { client, linked } = setUp();
    const member = await client.enqueue('mail', {}, { group: 'user:1' });
    await expect(client.enqueue('x', {}, { after: member })).rejects.toThrow(
      'after of task "x" is in the group "user:1": it becomes part of another task, and has no end of its own; enqueue it',
    );
    expect(linked).toEqual([]);
    const single = await client.enqueue('mail', {});
    expect(single.group).toBe('');
    await client.enqueue('x', {}, { after: single, missing: 'succeeded' });
  });

  it('refuses the handle of a run or a batch, in a list, too, also where what is missing counts as a success', async () => {
    const { client, broker, linked } = setUp();
    const handles = [
      [
        client.run('w', '1'),
        'after of task "x" is a run of a workflow, not a task; give the definition of its last step a key',
      ],
      [client.taskContexts.workflowOf('w/1~a', {} as never), 'is a run of a workflow'],
      [client.batch({ queue: 'q', id: 'b' }), 'after of task "x" is a batch, not a task; use onSuccess'],
    ] as const;
    for (const [after, message] of handles) {
      const call = client.enqueue('x', {}, { after, missing: 'succeeded' });
      await expect(call).rejects.toThrow(InvalidTaskError);
      await expect(call).rejects.toThrow(message);
      await expect(client.enqueue('x', {}, { after: [after] })).rejects.toThrow(message.replace('after', 'after[0]'));
    }
    expect([...broker.calls, ...linked]).toEqual([]);
  });

  it('knows no links among the defaults of a client', () => {
    const defaults = { after: Capture } as TaskOptions;
    expect(() => new AsynqClient(new FakeProducerBroker(), { defaults })).toThrow(/unknown task option "after"/);
  });
});

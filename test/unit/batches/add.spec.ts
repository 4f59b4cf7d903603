import { describe, expect, it, vi } from 'vitest';
import type { AsynqBatch } from '../../../lib/batches/batch.js';
import { AsynqClient } from '../../../lib/client/client.js';
import {
  BatchAddError,
  BatchEndedError,
  BatchNotFoundError,
  BrokerUnavailableError,
  ClosedError,
  DuplicateTaskError,
  InvalidTaskError,
} from '../../../lib/errors.js';
import { AsynqEvents } from '../../../lib/events/events.js';
import { defineTask } from '../../../lib/task/definition.js';
import { FakeBatchesBroker } from '../../support/batches-broker.js';

const Row = defineTask<{ n: number }>('import:row', { queue: 'rows' });
const Known = defineTask<{ id: string }>('known', { key: ({ id }) => id, rememberFor: '1d' });
const Later = defineTask<{ id: string }>('later', { key: ({ id }) => id, after: Known, rememberFor: '1d' });
const rows = (count: number) => Array.from({ length: count }, (_, n) => ({ n }));
const turn = () => new Promise<void>((done) => setImmediate(done));

const setUp = async () => {
  const broker = new FakeBatchesBroker();
  const events = new AsynqEvents();
  const client = new AsynqClient(broker, {}, { events });
  return { broker, events, client, batch: await client.openBatch({ name: 'n', queue: 'home' }) };
};

const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => expect.unreachable('it was added'),
    (error: unknown) => error as BatchAddError,
  );

describe('adding members', () => {
  it('reserves numbers at the home, creates a chunk under them, and confirms it', async () => {
    const { broker, batch } = await setUp();
    expect(await batch.add(Row, rows(3), { maxRetry: 1 })).toBe(3);
    expect(await batch.add(Row, rows(2), { queue: 'other' })).toBe(2);
    expect(broker.reserved).toEqual([
      { home: 'home', counts: [3], byMember: false },
      { home: 'home', counts: [2], byMember: false },
    ]);
    expect(broker.added.map(({ chunk }) => chunk.queue)).toEqual(['rows', 'other']);
    const ids = broker.added.flatMap(({ requests }) => requests.map(({ message }) => message.id));
    expect(ids).toEqual([0, 1, 2, 3, 4].map((n) => `${batch.id}~${n}`));
    expect(broker.added[0]!.requests[2]!.message).toMatchObject({ type: 'import:row', queue: 'rows', maxRetry: 1 });
    expect(broker.confirmed).toEqual([[{ base: 0, created: 3 }], [{ base: 3, created: 2 }]]);
  });

  it('makes chunks of at most 500 tasks or 1 MiB', async () => {
    const { broker, batch } = await setUp();
    expect(await batch.add(Row, rows(1201))).toBe(1201);
    expect(broker.added.map(({ requests }) => requests.length)).toEqual([500, 500, 201]);
    broker.added.length = 0;
    const large = Array.from({ length: 5 }, () => 'x'.repeat(400_000));
    expect(await batch.add('large', large)).toBe(5);
    expect(broker.added.map(({ requests }) => requests.length)).toEqual([2, 2, 1]);
  });

  it('costs two more calls for 2,000 members than a plain bulk does', async () => {
    const { broker, batch } = await setUp();
    await batch.add(Row, rows(20_000));
    const { reserved, added, confirmed } = broker;
    expect(added).toHaveLength(40);
    expect(reserved.length + confirmed.length).toBeLessThanOrEqual(2 * 11);
  });

  it('adds nothing of nothing, without a call', async () => {
    const { broker, batch } = await setUp();
    expect(await batch.add(Row, [])).toBe(0);
    expect(broker.reserved).toEqual([]);
  });

  it('reads a stream as it is written: what is in memory is bounded', async () => {
    const { broker, batch } = await setUp();
    let read = 0;
    let go = (): void => undefined;
    const held = new Promise<void>((resolve) => (go = resolve));
    broker.beforeAdd = () => held;
    async function* source() {
      for (; read < 20_000; read++) yield { n: read };
    }
    const adding = batch.add(Row, source());
    for (let turns = 0; turns < 50; turns++) await turn();
    expect(read).toBeLessThanOrEqual(6_000);
    go();
    expect(await adding).toBe(20_000);
    expect(broker.added.flatMap(({ requests }) => requests)).toHaveLength(20_000);
  });

  it('does not let the first rows of a slow source wait for many', async () => {
    const { broker, batch } = await setUp();
    let more = (): void => undefined;
    async function* source() {
      for (const row of rows(501)) yield row;
      await new Promise<void>((resolve) => (more = resolve));
      yield { n: 501 };
    }
    const adding = batch.add(Row, source());
    await turn();
    expect(broker.added.map(({ requests }) => requests.length)).toEqual([500]);
    more();
    expect(await adding).toBe(502);
  });

  it('takes any iterable', async () => {
    const { batch } = await setUp();
    expect(await batch.add(Row, new Set(rows(3)))).toBe(3);
    expect(await batch.add(Row, new Map(rows(2).map((row) => [row.n, row])).values())).toBe(2);
  });

  it('reports each member as an enqueued task, when somebody listens', async () => {
    const { events, batch } = await setUp();
    const ids: string[] = [];
    events.on('taskEnqueued', ({ task }) => ids.push(task.id));
    await batch.add(Row, rows(2));
    expect(ids).toEqual([`${batch.id}~0`, `${batch.id}~1`]);
  });

  const Grouped = defineTask('grouped', { group: 'g' });
  it('gives members the links of their definition, each by its payload', async () => {
    const { broker, batch } = await setUp();
    expect(await batch.add(Later, [{ id: '1' }, { id: '2' }])).toBe(2);
    const [first, second] = broker.added[0]!.requests;
    expect(first).toMatchObject({
      message: { id: `${batch.id}~0` },
      wait: { prerequisites: [{ type: 'known', key: '1' }], onFailure: 'cancel' },
      mark: { type: 'later', key: '1', rememberFor: 86_400 },
    });
    expect(second).toMatchObject({ wait: { prerequisites: [{ key: '2' }] }, mark: { key: '2' } });
  });

  it('does not add a payload without a key', async () => {
    const { batch } = await setUp();
    const { added, notAdded } = await failureOf(batch.add(Later, [{ id: '1' }, { id: ' ' }]));
    expect(added).toBe(1);
    expect(notAdded).toMatchObject([
      { from: 1, to: 2, error: { message: expect.stringContaining('key of task "later"') } },
    ]);
  });

  it.each<[string, (batch: AsynqBatch) => Promise<number>, RegExp]>([
    [
      'an id',
      (batch) => batch.add('t', [1], { taskId: 'x' } as never),
      /a member of a batch cannot have "taskId": its id is/,
    ],
    [
      'a group',
      (batch) => batch.add('t', [1], { group: 'g' } as never),
      /cannot have "group": a task in a group does not/,
    ],
    [
      'a definition with a group',
      (batch) => batch.add(Grouped, [1]),
      /which the definition of "grouped" .* set: a task in a/,
    ],
    [
      'a mistyped option',
      (batch) => batch.add('t', [1], { queues: 'q' } as never),
      /unknown option .* did you mean "queue"/,
    ],
    [
      'a wait',
      (batch) => batch.add('t', [1], { after: [] } as never),
      /a member of a batch cannot have "after"; leave it out, or define the task with it/,
    ],
    [
      'a queue that is named like marks',
      (batch) => batch.add(Row, rows(1), { queue: '~row' }),
      /queue of a member of a batch is "~row": a name that begins with ~/,
    ],
    ['a blank type', (batch) => batch.add(' ', [1]), /task typename cannot be empty/],
    [
      'one payload',
      (batch) => batch.add('t', { n: 1 } as never),
      /payloads of a batch must be an array, .* not an object/,
    ],
    ['a text', (batch) => batch.add('t', 'rows'), /payloads of a batch must be an array, .* not "rows"/],
  ])('refuses %s, before anything is read or written', async (_, add, text) => {
    const { broker, batch } = await setUp();
    const adding = add(batch);
    await expect(adding).rejects.toThrow(InvalidTaskError);
    await expect(adding).rejects.toThrow(text);
    expect(broker.reserved).toEqual([]);
  });

  it('knows the payloads of a definition', () => {
    const check = (batch: AsynqBatch) => {
      void batch.add(Row, [{ n: 1 }]);
      // @ts-expect-error a row has a number
      void batch.add(Row, [{ n: '1' }]);
      // @ts-expect-error one payload is not several
      void batch.add(Row, { n: 1 });
    };
    expect(check).toBeTypeOf('function');
  });
});

describe('payloads that cannot be added', () => {
  it('are named with their error, and the others are members', async () => {
    const { broker, batch } = await setUp();
    const error = await failureOf(batch.add('t', [0, 1n, 2, 3n, 4]));
    expect(error).toBeInstanceOf(BatchAddError);
    expect(error).toMatchObject({ code: 'ASYNQ_BATCH_ADD', added: 3, read: 5 });
    expect(error.notAdded.map(({ from, to }) => [from, to])).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect(error.message).toContain('3 of 5 payloads are members');
    expect(error.message).toContain('2 are not, from index 1 on: payload of task "t" cannot be encoded');
    expect(broker.confirmed).toEqual([[{ base: 0, created: 3 }]]);
  });

  it('are refused with the plain error when it is one for all', async () => {
    const { batch } = await setUp();
    await expect(batch.add('t', [1n])).rejects.toThrow(InvalidTaskError);
  });

  it('end the reading when there are a thousand of them', async () => {
    const { batch } = await setUp();
    const error = await failureOf(batch.add('t', new Array(5_000).fill(1n)));
    expect(error).toMatchObject({ added: 0, read: 1_000 });
  });

  it('share one error when they are duplicates, and are no members', async () => {
    const { broker, batch } = await setUp();
    broker.memberStatus = ({ message }) =>
      message.id.endsWith('1') || message.id.endsWith('2') ? 'duplicate' : 'enqueued';
    const error = await failureOf(batch.add(Row, rows(4), { unique: '1h' }));
    expect(error).toMatchObject({ added: 2, notAdded: [{ from: 1, to: 3 }] });
    expect(error.notAdded[0]!.error).toBeInstanceOf(DuplicateTaskError);
    expect(broker.confirmed).toEqual([[{ base: 0, created: 2 }]]);
  });

  it('are those of a chunk that failed; the other chunks stand, and nothing more is read', async () => {
    const { broker, events, batch } = await setUp();
    const failed: number[] = [];
    events.on('enqueueFailed', ({ tasks }) => failed.push(tasks));
    broker.beforeAdd = ({ base }) => {
      if (base === 1_000) throw new BrokerUnavailableError('away');
    };
    let returned = false;
    function* source() {
      try {
        yield* rows(50_000);
      } finally {
        returned = true;
      }
    }
    const error = await failureOf(batch.add(Row, source()));
    expect(error.notAdded[0]).toMatchObject({ from: 1_000, to: 1_500, error: { code: 'ASYNQ_BROKER_UNAVAILABLE' } });
    const lost = error.notAdded.reduce((sum, { from, to }) => sum + to - from, 0);
    expect(error.read).toBeLessThan(10_000);
    expect(error.added + lost).toBe(error.read);
    expect(broker.added.flatMap(({ requests }) => requests)).toHaveLength(error.added);
    expect(broker.confirmed.flat().map(({ base }) => base)).not.toContain(1_000);
    expect(returned).toBe(true);
    expect(failed).toEqual([500]);
  });

  it('include those of a chunk that was given up meanwhile', async () => {
    const { broker, batch } = await setUp();
    broker.chunkStatus = () => 'void';
    await expect(batch.add(Row, rows(2))).rejects.toThrow('took more than a minute');
    expect(broker.confirmed).toEqual([]);
  });

  it('are all when the batch has ended, or is not there', async () => {
    const { broker, batch } = await setUp();
    broker.reserveStatus = 'ended';
    await expect(batch.add(Row, rows(2))).rejects.toThrow(BatchEndedError);
    broker.reserveStatus = 'missing';
    await expect(batch.add(Row, rows(2))).rejects.toThrow(BatchNotFoundError);
  });

  it('follow an error of the source; those before it are members', async () => {
    const { batch } = await setUp();
    const cause = new Error('line 3 is no CSV');
    async function* source() {
      yield* rows(2);
      throw cause;
    }
    const error = await failureOf(batch.add(Row, source()));
    expect(error).toBeInstanceOf(BatchAddError);
    expect(error).toMatchObject({ added: 2, read: 2, notAdded: [], cause });
    expect(error.message).toContain('line 3 is no CSV');
  });

  it('are not those of a chunk that could not be confirmed: the batch finds it', async () => {
    const { broker, batch } = await setUp();
    broker.confirmError = new BrokerUnavailableError('away');
    expect(await batch.add(Row, rows(2))).toBe(2);
  });
});

it('reads no more of a source that yields nothing, when the client closes: what was read is added', async () => {
  const { broker, client, batch } = await setUp();
  let source = 'untouched';
  async function* stuck() {
    try {
      yield { n: 0 };
      yield { n: 1 };
      source = 'waited for';
      await new Promise<void>(() => undefined);
    } finally {
      source = 'left';
    }
  }
  const adding = failureOf(batch.add(Row, stuck()));
  await vi.waitFor(() => expect(source).toBe('waited for'));
  await client.close();
  const error = await adding;
  expect(error).toBeInstanceOf(BatchAddError);
  expect(error).toMatchObject({ added: 2, read: 2, notAdded: [], cause: expect.any(ClosedError) });
  expect(error.message).toContain('the client was closed while payloads were read');
  expect(broker.added.flatMap(({ requests }) => requests)).toHaveLength(2);
});

it('leaves a source between two payloads, when the client closes', async () => {
  const { client, batch } = await setUp();
  let left = false;
  let next = (): void => undefined;
  const source = {
    [Symbol.asyncIterator]: () => ({
      next: () =>
        new Promise<IteratorResult<{ n: number }>>(
          (resolve) => (next = () => resolve({ done: false, value: { n: 0 } })),
        ),
      return: () => Promise.resolve({ done: true as const, value: void (left = true) }),
    }),
  };
  const adding = failureOf(batch.add(Row, source));
  await turn();
  await client.close();
  expect(await adding).toMatchObject({ added: 0, read: 0 });
  expect(left).toBe(true);
  next();
});

it('lets what is being added end before the client is closed', async () => {
  const { broker, client, batch } = await setUp();
  let go = (): void => undefined;
  broker.beforeAdd = () => new Promise<void>((resolve) => (go = resolve));
  const adding = batch.add(Row, rows(2));
  await turn();
  let closed = false;
  const closing = client.close().then(() => (closed = true));
  await turn();
  expect(closed).toBe(false);
  go();
  expect(await adding).toBe(2);
  await closing;
});

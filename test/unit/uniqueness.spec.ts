import { describe, expect, it } from 'vitest';
import type { RepeatRequest } from '../../lib/broker/uniqueness.js';
import { AsynqClient } from '../../lib/client/client.js';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { ManualClock } from '../../lib/clock.js';
import { Preparer } from '../../lib/enqueue/preparer.js';
import { InvalidTaskError } from '../../lib/errors.js';
import { defineTask } from '../../lib/task/definition.js';
import type { TaskOptions } from '../../lib/task/options.js';
import { workflow } from '../../lib/workflows/workflow.js';

const NOW = 1_700_000_000_000;
const key = ({ id }: { id: string }): string => id;
const LOCK = 'asynq:{default}:unique:t:';

/** The request of a task of type `t` with this payload. */
function requestOf(options: TaskOptions & { key?: string }, payload: unknown = { id: 'a', n: 1 }): RepeatRequest {
  const preparer = new Preparer('asynq');
  return preparer.prepare(preparer.kindOf('t', options), payload, NOW).request as RepeatRequest;
}

describe('the request of a task', () => {
  it('that is unique by the payload is asynq’s', () => {
    const plain = requestOf({ unique: '1h' });
    const request = requestOf({ unique: { for: '1h' } });
    expect(request.message.uniqueKey).toBe(plain.message.uniqueKey);
    expect([request.uniqueTtl, request.repeat]).toEqual([3600, undefined]);
  });

  it('that is unique by its key has asynq’s lock of another name', () => {
    const request = requestOf({ key: 'order 7', unique: { for: '1h', by: 'key' }, processIn: '10m' });
    expect(request.message.uniqueKey).toBe(`${LOCK}order 7:key`);
    expect([request.uniqueTtl, request.repeat]).toEqual([4200, undefined]);
  });

  it('that is unique by fields compares them as they are in JSON, in any order', () => {
    const unique = { for: '1h' as const, by: ['n', 'id'] };
    const nameOf = (payload: unknown) => requestOf({ unique }, payload).message.uniqueKey;
    const name = nameOf({ id: { x: 1, y: new Date(0) }, n: 1 });
    expect(name).toMatch(/^asynq:\{default\}:unique:t:id,n,[\w-]{43}:fields$/);
    expect(nameOf({ other: 1, n: 1, id: { y: '1970-01-01T00:00:00.000Z', x: 1 } })).toBe(name);
    expect(nameOf({ id: { x: 1, y: new Date(1) }, n: 1 })).not.toBe(name);
    expect(() => nameOf({ id: 1 })).toThrow('unique of task "t" compares "n", which its payload does not have');
    expect(() => nameOf('text')).toThrow('unique of task "t" compares fields of the payload, which is "text"');
  });

  it('that is unique until it starts says so to its server', () => {
    const request = requestOf({ unique: { for: '1h', until: 'started' }, headers: { a: 'b' } });
    expect(request.message.headers).toEqual({ a: 'b', 'asynq-unique-until': 'started' });
    expect(request.message.uniqueKey).not.toBe('');
  });

  it('whose lock only time ends names no lock that a success would free', () => {
    const { message, repeat } = requestOf({ key: 'k', throttle: '1m', processIn: '1h' });
    expect([message.uniqueKey, repeat]).toEqual(['', { policy: 'existing', lock: `${LOCK}k:key`, ttl: 60 }]);
    const expired = requestOf({ unique: { for: '1m', until: 'expired' }, processIn: '1h' });
    expect(expired.repeat).toMatchObject({ policy: 'reject', ttl: 3660 });
    expect(requestOf({ throttle: '1m' }).repeat.lock).toBe(requestOf({ unique: '1h' }).message.uniqueKey);
  });

  it('that is debounced has its times', () => {
    const { message, processAt, repeat } = requestOf({ key: 'k', debounce: { wait: '1500ms', maxWait: '9s' } });
    expect([processAt, repeat.limit]).toEqual([NOW / 1000 + 2, NOW / 1000 + 9]);
    const short = requestOf({ key: 'k', debounce: '1500ms' });
    expect(short.repeat).toEqual(requestOf({ key: 'k', debounce: { wait: '1500ms' } }).repeat);
    expect([short.processAt, short.repeat.limit]).toEqual([NOW / 1000 + 2, undefined]);
    expect([repeat.lock, message.uniqueKey]).toEqual([`${LOCK}k:last`, `${LOCK}k:last`]);
  });

  it('that is to run once has an id of its own, and is kept', () => {
    const { message, repeat, madeId } = requestOf({ key: 'a/b{ü}~=', once: '14d', retention: '1h' });
    expect(message).toMatchObject({ id: 't~once~a=2fb=7b=c3=bc=7d=7e=3d', retention: 14 * 86_400 });
    expect([madeId, repeat.lock]).toEqual([false, '']);
    expect(requestOf({ key: 'k', once: '1h', retention: '2h' }).message.retention).toBe(7200);
  });
});

describe('options of a definition and a call', () => {
  const preparer = new Preparer('asynq');
  const policyOf = (definition: TaskOptions, call?: TaskOptions): string | undefined => {
    const made = preparer.prepare(preparer.kindOf(defineTask('t', { ...definition, key }), call), { id: 'a' }, NOW);
    return made.repeats;
  };

  it('override each other', () => {
    expect(policyOf({ latest: true })).toBe('latest');
    expect(policyOf({ latest: true }, { supersede: true })).toBe('supersede');
    expect(policyOf({ latest: true }, { latest: false })).toBeUndefined();
    expect(policyOf({ latest: true }, { supersede: false })).toBe('latest');
    expect(policyOf({ latest: true }, { unique: '1h' })).toBeUndefined();
    expect(policyOf({ unique: '1h' }, { throttle: '1m' })).toBe('throttle');
  });

  it.each<[keyof TaskOptions, TaskOptions]>([
    ['unique', { unique: '1h' }],
    ['unique', { unique: { for: '1h', by: 'key', onDuplicate: 'existing' } }],
    ['once', { once: '1h' }],
    ['debounce', { debounce: { wait: '5s' } }],
    ['throttle', { throttle: '1m' }],
    ['latest', { latest: true }],
    ['supersede', { supersede: true }],
    ['expiresIn', { expiresIn: '5m' }],
    ['deadline', { deadline: new Date(NOW + 60_000) }],
    ['group', { group: 'g' }],
  ])('%s is turned off by false: %o', (name, options) => {
    const make = (preparer: Preparer, definition: TaskOptions, call?: TaskOptions) => {
      const { request, ...made } = preparer.prepare(
        preparer.kindOf(defineTask('t', { key, ...definition }), { taskId: 'x', ...call } as TaskOptions),
        { id: 'a' },
        NOW,
      );
      return { request, ...made };
    };
    const off = { [name]: false } as TaskOptions;
    const idOf = name === 'unique' || name === 'expiresIn' || name === 'deadline' || name === 'group';
    const plain = make(preparer, {});
    expect(make(preparer, options, off)).toEqual(plain); // of the definition, by the call
    expect(make(new Preparer('asynq', undefined, idOf ? options : {}), off)).toEqual(plain); // of the client, by the definition
    for (const other of ['unique', 'once', 'debounce', 'throttle', 'latest', 'supersede'] as const) {
      if (other === name || !(name in { once: 0, debounce: 0, throttle: 0, latest: 0, supersede: 0 })) continue;
      expect(policyOf(options, { [other]: false })).toBe(name);
    }
  });

  it('take the key of the call in place of that of the definition', () => {
    const kind = preparer.kindOf(defineTask<{ id: string }>('t', { key, latest: true }), { key: 'b' });
    expect((preparer.prepare(kind, { id: 'a' }, NOW).request as RepeatRequest).repeat.lock).toBe(`${LOCK}b:last`);
  });
});

describe('an option is refused', () => {
  it.each<[TaskOptions & { key?: string; after?: never[] }, string]>([
    [{ once: '1h', latest: true }, 'once and latest exclude each other; give one of them'],
    [{ unique: '1h', throttle: '1m' }, 'unique and throttle exclude each other'],
    [{ once: '1h' }, 'once of task "t" needs key: give it in the call, or define the task with key'],
    [{ latest: true }, 'latest of task "t" needs key'],
    [{ unique: { for: '1h', by: 'key' } }, 'unique of task "t" needs key'],
    [{ key: 'k' }, 'key of task "t" is used by nothing'],
    [{ key: 'k', unique: '1h' }, 'key of task "t" is used by nothing'],
    [{ key: ' ', latest: true }, 'key of task "t" is blank'],
    [{ key: 'k'.repeat(1001), latest: true }, 'key of task "t" has 1001 characters'],
    [{ key: 'k', debounce: { wait: '1s' }, processIn: '1m' }, 'has both debounce and processIn: its wait says when'],
    [{ key: 'k', once: '1h', taskId: 'x' }, 'has both once and taskId: its key says which task is meant'],
    [{ key: 'k', latest: true, group: 'g' }, 'has both latest and group'],
    [{ throttle: '1h', group: 'g' }, 'has both throttle and group'],
    [{ unique: { for: '1h', onDuplicate: 'existing' }, group: 'g' }, 'has both unique and group'],
    [{ throttle: '10ms' }, 'throttle must be at least 1 second'],
    [{ once: '0s' }, 'once must be at least 1 second'],
    [{ debounce: { wait: 0 } }, 'wait of debounce must be longer than 0'],
    [{ debounce: { wait: '5s', maxWait: '1s' } }, 'maxWait of debounce, "1s", is shorter than wait, "5s"'],
    [{ debounce: {} as never }, 'debounce needs wait'],
    [{ debounce: 'soon' as never }, 'debounce: "soon" is not a duration'],
    [{ debounce: 0 }, 'debounce must be longer than 0, not 0'],
    [{ debounce: true as never }, "debounce must say for how long, such as debounce: '5s', and not be true"],
    [{ debounce: ['5s'] as never }, 'debounce must be an object'],
    [{ debounce: { wait: '1s', max: 1 } as never }, 'max'],
    [{ latest: 'yes' as never }, 'latest must be true or false, not "yes"'],
    [{ unique: {} as never }, "unique needs for, such as unique: { for: '1h' }"],
    [{ unique: true as never }, 'unique must say for how long'],
    [{ unique: { for: '1h', by: [] } }, 'by of unique is an empty list; name fields of the payload'],
    [
      { unique: { for: '1h', by: 'orderId' as never } },
      "by of unique: \"orderId\" is unknown; give 'payload', 'key' or a list",
    ],
    [{ unique: { for: '1h', by: 'keys' as never } }, 'by of unique: "keys" is unknown; did you mean "key"?'],
    [{ unique: { for: '1h', until: 'success' as never } }, 'until of unique: "success" is unknown; it is one of'],
    [{ unique: { for: '1h', onDuplicate: 'ignore' as never } }, 'onDuplicate of unique: "ignore" is unknown'],
  ])('%o', (options, text) => {
    const refused = (): unknown => requestOf(options);
    expect(refused).toThrow(InvalidTaskError);
    expect(refused).toThrow(text);
  });

  it('where it is defined, when it contradicts another one', () => {
    expect(() => defineTask('t', { latest: true, supersede: true })).toThrow('latest and supersede exclude each other');
    expect(() => defineTask('t', { key, debounce: { wait: '1s' }, processIn: '1m' })).toThrow(
      'task "t" has both debounce and processIn',
    );
    expect(() => defineTask('t', { key, rememberFor: '1d', latest: true })).toThrow('has both latest and rememberFor');
    const First = defineTask('first', { key, rememberFor: '1d' });
    expect(() => defineTask('t', { key, after: First, supersede: true })).toThrow('has both supersede and after');
  });

  it('for tasks that are made with others', async () => {
    const client = new AsynqClient(new MemoryBroker(new ManualClock(NOW)));
    const Sync = defineTask<{ id: string }>('sync', { key, latest: true });
    const Fields = defineTask<{ id: string }>('fields', { unique: { for: '1h', until: 'expired' } });
    const batch = await client.openBatch({ name: 'b' });
    await expect(batch.add(Sync, [{ id: 'a' }])).rejects.toThrow('a member of a batch cannot have latest');
    await expect(batch.add(Fields, [{ id: 'a' }])).rejects.toThrow('a member of a batch cannot have unique');
    await expect(client.openBatch({ name: 'c', onSuccess: [Sync, { id: 'a' }] })).rejects.toThrow(
      'cannot have "latest"',
    );
    const run = workflow('w').add('s', Sync, { id: 'a' });
    await expect(client.start(run, { id: '1' })).rejects.toThrow(/step "s" cannot have latest/);
    await expect(client.start(run, { id: '1' })).rejects.toThrow(InvalidTaskError);
    await client.close();
  });
});

import { runInNewContext } from 'node:vm';
import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { infoOf } from '../../lib/enqueue/prepared-task.js';
import { Preparer } from '../../lib/enqueue/preparer.js';
import { InvalidTaskError } from '../../lib/errors.js';
import { defineTask, type TaskDefinition } from '../../lib/task/definition.js';
import type { TaskOptions } from '../../lib/task/options.js';
import { workflow } from '../../lib/workflows/workflow.js';

const NOW = 1_700_000_000_400;
const preparer = new Preparer('asynq');

const prepare = (task: string | TaskDefinition, payload?: unknown, options?: TaskOptions, by = preparer) =>
  by.prepare(by.kindOf(task, options), payload, NOW);
const messageOf = (options: TaskOptions, task: string | TaskDefinition = 't') =>
  prepare(task, undefined, options).request.message;

describe('defaults', () => {
  it('are those of asynq', () => {
    const { request, state, nextProcessAt } = prepare('t', { a: 1 });
    expect(request.message).toEqual({
      type: 't',
      payload: Buffer.from('{"a":1}'),
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
      queue: 'default',
      maxRetry: 25,
      retried: 0,
      errorMsg: '',
      timeout: 1800,
      deadline: 0,
      uniqueKey: '',
      lastFailedAt: 0,
      retention: 0,
      completedAt: 0,
      groupKey: '',
      headers: undefined,
    });
    expect(request.processAt).toBeUndefined();
    expect(request.uniqueTtl).toBeUndefined();
    expect([state, nextProcessAt]).toEqual(['pending', NOW]);
  });

  it('give every task an id of its own', () => {
    expect(messageOf({}).id).not.toBe(messageOf({}).id);
  });

  it('come from the client, then the definition, then the call; the last wins', () => {
    const client = new Preparer('asynq', undefined, { queue: 'client', maxRetry: 1, retention: '1s' });
    const definition = defineTask('t', { queue: 'definition', maxRetry: 2 });
    const { message } = prepare(definition, undefined, { queue: 'call' }, client).request;
    expect(message).toMatchObject({ queue: 'call', maxRetry: 2, retention: 1 });
    expect(prepare('t', undefined, {}, client).request.message).toMatchObject({ queue: 'client', maxRetry: 1 });
  });

  it('apply when an option of the call is undefined', () => {
    const definition = defineTask('t', { queue: 'low', timeout: '30s' });
    expect(messageOf({ queue: undefined, timeout: undefined }, definition)).toMatchObject({
      queue: 'low',
      timeout: 30,
    });
  });
});

describe('timeout and deadline', () => {
  const deadline = new Date('2024-01-02T03:04:05.900Z');
  const seconds = 1_704_164_645;

  it.each<[string, TaskOptions, { timeout: number; deadline: number }]>([
    ['neither: 30 minutes', {}, { timeout: 1800, deadline: 0 }],
    ['timeout only', { timeout: '30s' }, { timeout: 30, deadline: 0 }],
    ['deadline only, rounded down', { deadline }, { timeout: 0, deadline: seconds }],
    ['both', { deadline, timeout: 1000 }, { timeout: 1, deadline: seconds }],
    ['timeout 0 counts as not given', { timeout: 0 }, { timeout: 1800, deadline: 0 }],
    ['timeout 0 with a deadline', { timeout: 0, deadline }, { timeout: 0, deadline: seconds }],
    ['half a second is rounded up', { timeout: '500ms' }, { timeout: 1, deadline: 0 }],
    ['so is one and a half', { timeout: '1.5s' }, { timeout: 2, deadline: 0 }],
    ['and a nanosecond', { timeout: '1ns' }, { timeout: 1, deadline: 0 }],
  ])('%s', (_, options, expected) => {
    expect(messageOf(options)).toMatchObject(expected);
  });
});

describe('retention and retries', () => {
  it.each<[TaskOptions, object]>([
    [{ retention: '500ms' }, { retention: 1 }],
    [{ retention: '24h' }, { retention: 86_400 }],
    [{ retention: 0 }, { retention: 0 }],
    [{ maxRetry: 0 }, { maxRetry: 0 }],
    [{ maxRetry: 2 ** 31 - 1 }, { maxRetry: 2 ** 31 - 1 }],
  ])('%j', (options, expected) => {
    expect(messageOf(options)).toMatchObject(expected);
  });
});

describe('when', () => {
  it.each<[string, TaskOptions, number | undefined, number]>([
    ['processIn counts from now', { processIn: '10m' }, 1_700_000_601, NOW + 600_000],
    ['processAt is rounded up', { processAt: new Date(NOW + 700) }, 1_700_000_002, NOW + 700],
    ['a whole second stays', { processAt: new Date(1_700_000_005_000) }, 1_700_000_005, 1_700_000_005_000],
    ['one millisecond ahead is scheduled', { processIn: 1 }, 1_700_000_001, NOW + 1],
  ])('%s', (_, options, processAt, nextProcessAt) => {
    const prepared = prepare('t', undefined, options);
    expect(prepared.request.processAt).toBe(processAt);
    expect(prepared).toMatchObject({ state: 'scheduled', nextProcessAt });
    expect(infoOf(prepared).nextProcessAt).toEqual(new Date(nextProcessAt));
  });

  it.each<[string, TaskOptions]>([
    ['now', { processAt: new Date(NOW) }],
    ['the past', { processAt: new Date(0) }],
    ['no wait', { processIn: 0 }],
    ['the difference to a time that has passed', { processIn: -5000 }],
  ])('%s is at once', (_, options) => {
    const prepared = prepare('t', undefined, options);
    expect(prepared.request.processAt).toBeUndefined();
    expect(prepared).toMatchObject({ state: 'pending', nextProcessAt: NOW });
  });

  it('has one value for both options across the layers', () => {
    const waits = defineTask('t', { processIn: '1h' });
    const fixed = defineTask('t', { processAt: new Date(NOW + 3_600_000) });
    expect(prepare(waits, undefined, { processAt: new Date(NOW + 1000) })).toMatchObject({ nextProcessAt: NOW + 1000 });
    expect(prepare(fixed, undefined, { processIn: 2000 })).toMatchObject({ nextProcessAt: NOW + 2000 });
  });
});

describe('group', () => {
  it('collects the task, at once or when it is due', () => {
    const grouped = prepare('t', undefined, { group: 'g' });
    expect(grouped).toMatchObject({ state: 'aggregating', nextProcessAt: undefined });
    expect(grouped.request.message.groupKey).toBe('g');
    const delayed = prepare('t', undefined, { group: 'g', processIn: 1000 });
    expect(delayed.state).toBe('scheduled');
    expect(delayed.request.message.groupKey).toBe('g');
  });
});

describe('unique', () => {
  const unique = '1h';

  it.each<[string, unknown, string]>([
    ['t', undefined, 'asynq:{default}:unique:t:'],
    ['t', Buffer.alloc(0), 'asynq:{default}:unique:t:d41d8cd98f00b204e9800998ecf8427e'],
    ['email:send', { a: 1 }, 'asynq:{default}:unique:email:send:bb6cb5c68df4652941caf652a366f2d8'],
  ])('names the lock as Go does: %s %o', (type, payload, key) => {
    expect(prepare(type, payload, { unique }).request.message.uniqueKey).toBe(key);
  });

  it('names the lock by prefix, queue and bytes', () => {
    const { message } = prepare('t', Buffer.from('x'), { unique, queue: 'low' }, new Preparer('tenant')).request;
    expect(message.uniqueKey).toBe(`tenant:{low}:unique:t:${createHash('md5').update('x').digest('hex')}`);
  });

  it.each<[TaskOptions, number]>([
    [{ unique: '1h' }, 3600],
    [{ unique: 1000 }, 1],
    [{ unique: 1001 }, 2],
    [{ unique: '10s', processIn: '60s' }, 70],
    [{ unique: '10s', processAt: new Date(NOW + 59_999) }, 70],
    [{ unique: '10s', processAt: new Date(NOW - 59_999) }, 10],
    [{ unique: '10s', group: 'g' }, 10],
  ])('holds the lock long enough: %j', (options, ttl) => {
    expect(prepare('t', undefined, options).request.uniqueTtl).toBe(ttl);
  });
});

describe('headers', () => {
  const definition = defineTask('t', { headers: { a: '1', b: '2' } });

  it('merge name by name', () => {
    expect(messageOf({ headers: { b: 'x', c: '3' } }, definition).headers).toEqual({ a: '1', b: 'x', c: '3' });
    expect(messageOf({}, definition).headers).toEqual({ a: '1', b: '2' });
    expect(messageOf({ headers: {} }).headers).toBeUndefined();
  });

  it('are copied, and may have any name', () => {
    const headers: Record<string, string> = JSON.parse('{"__proto__":"odd","":""}');
    const stored = messageOf({ headers }).headers!;
    headers['later'] = 'x';
    expect(Object.entries(stored)).toEqual([
      ['__proto__', 'odd'],
      ['', ''],
    ]);
  });

  it.each([
    ['Map', new Map([['a', '1']])],
    ['Headers', new Headers({ a: '1' })],
    ['Date', new Date(0)],
    ['Promise', Promise.resolve({ a: '1' })],
    ['Object', Object.create({ a: '1' })],
    ['a class', new (class {})()],
  ])('of an instance of %s, whose contents would be lost, are refused', (name, headers) => {
    const refusal = new InvalidTaskError(`headers must be a plain object, not an instance of ${name}`);
    expect(() => messageOf({ headers: headers as never })).toThrow(refusal);
    expect(() => defineTask('t', { headers: headers as never })).toThrow(refusal);
  });

  it('may come from another realm, or have no prototype', () => {
    const foreign = runInNewContext("({ a: '1' })") as Record<string, string>;
    expect(messageOf({ headers: foreign }).headers).toEqual({ a: '1' });
    expect(messageOf({ headers: Object.assign(Object.create(null), { a: '1' }) }).headers).toEqual({ a: '1' });
  });
});

describe('refused before anything is written', () => {
  const refusal = (call: () => unknown): Error => {
    try {
      call();
    } catch (error) {
      expect(error).toBeInstanceOf(InvalidTaskError);
      return error as Error;
    }
    throw new Error('nothing was refused');
  };

  it.each<[object, string]>([
    [{ queue: '' }, 'queue name must contain one or more characters; queue is "": give a text that is not blank'],
    [{ taskId: ' ' }, 'task ID cannot be empty; taskId is " ": give a text that is not blank'],
    [{ group: '\u00a0' }, 'group key cannot be empty; group is "\u00a0": give a text that is not blank'],
    [{ unique: '999ms' }, 'Unique TTL cannot be less than 1s; unique is "999ms": give \'1s\' or more'],
    [{ unique: 0 }, "Unique TTL cannot be less than 1s; unique is 0: give '1s' or more"],
  ])('in the words of asynq, with the value: %j', (options, text) => {
    expect(refusal(() => prepare('t', undefined, options)).message).toBe(text);
  });

  it.each<[string, object, string]>([
    ['unknown', { quue: 'x' }, 'unknown task option "quue"; did you mean "queue"?'],
    ['unknown, undefined', { colour: undefined }, 'unknown task option "colour"; known are queue, maxRetry,'],
    ['inherited by objects', { toString: 1 }, 'unknown task option "toString"'],
    ['queue', { queue: 5 }, 'queue must be a string, not 5'],
    ['queue, half a character', { queue: 'a\ud800' }, 'queue "a\\ud800" contains half a character'],
    ['taskId', { taskId: null }, 'taskId must be a string, not null'],
    ['maxRetry NaN', { maxRetry: Number.NaN }, 'maxRetry must be a whole number from 0 to 2147483647, not NaN'],
    ['maxRetry fraction', { maxRetry: 1.5 }, 'maxRetry must be a whole number from 0 to 2147483647, not 1.5'],
    ['maxRetry beyond int32', { maxRetry: 2 ** 31 }, 'maxRetry must be a whole number'],
    ['maxRetry text', { maxRetry: '3' }, 'maxRetry must be a whole number from 0 to 2147483647, not "3"'],
    [
      'timeout negative',
      { timeout: '-1s' },
      'timeout must not be negative, as "-1s" is; leave it out, or set 0, for 30',
    ],
    ['timeout NaN', { timeout: Number.NaN }, 'timeout: NaN is not a duration'],
    ['timeout Infinity', { timeout: Infinity }, 'timeout: Infinity is not a duration'],
    [
      'timeout Date',
      { timeout: new Date(0) },
      'timeout: 1970-01-01T00:00:00.000Z is not a duration; a Date is a point in time; give a length',
    ],
    ['retention negative', { retention: -1 }, 'retention must not be negative, as -1 is'],
    ['retention text', { retention: 'soon' }, 'retention: "soon" is not a duration'],
    ['unique NaN', { unique: Number.NaN }, 'unique: NaN is not a duration'],
    ['processIn', { processIn: 'later' }, 'processIn: "later" is not a duration'],
    ['processAt number', { processAt: 1_700_000_000_000 }, 'processAt must be a valid Date, not 1700000000000'],
    ['processAt invalid', { processAt: new Date('x') }, 'processAt must be a valid Date, not an invalid Date'],
    ['deadline text', { deadline: '2024-01-01' }, 'deadline must be a valid Date, not "2024-01-01"'],
    ['deadline 0', { deadline: new Date(999) }, 'deadline must be later than 1970-01-01T00:00:01Z'],
    ['both times', { processAt: new Date(), processIn: 5 }, 'processAt and processIn exclude each other'],
    ['headers', { headers: ['a'] }, 'headers must be an object, not an array'],
    ['header value', { headers: { n: 1 } }, 'header "n" must be a string, not 1'],
    ['header undefined', { headers: { n: undefined } }, 'header "n" must be a string, not undefined'],
  ])('in ours: %s', (_, options, text) => {
    expect(refusal(() => prepare('t', undefined, options)).message).toContain(text);
  });

  it.each<[unknown, string]>([
    ['', 'task typename cannot be empty'],
    ['\u2003', 'task typename cannot be empty'],
    ['a\udc00', 'contains half a character'],
    [undefined, 'a task must be a type name or a task definition, not undefined'],
    [null, 'a task must be a type name or a task definition, not null'],
    [() => 1, 'not a function'],
    [{}, 'task typename must be a string, not undefined'],
    [workflow('w').add('a', 't'), 'not a workflow: start it by asynq.start(workflow, { id })'],
    [workflow('empty', { queue: 'q' }), 'not a workflow'],
    [{ type: 't', options: { que: 1 } }, 'unknown task option "que"'],
    [{ type: 't', options: {}, codec: {} }, 'codec of task "t": encode must be a function'],
  ])('an invalid task: %o', (task, text) => {
    expect(refusal(() => prepare(task as string)).message).toContain(text);
  });

  it('invalid options', () => {
    for (const options of [null, 'critical', 5, []]) {
      expect(refusal(() => prepare('t', {}, options as TaskOptions)).message).toContain(
        'task options must be an object',
      );
    }
  });

  it('a payload that cannot be encoded, with the cause', () => {
    const error = refusal(() => prepare('t', { n: 1n }));
    expect(error.message).toBe(
      'payload of task "t" cannot be encoded: $.n is a BigInt, which JSON cannot hold; convert it to a string or a number',
    );
    expect(error.cause).toBeInstanceOf(TypeError);
  });

  it('an invalid codec or default of the client, when it is created', () => {
    expect(refusal(() => new Preparer('asynq', {} as never)).message).toContain(
      'client codec: encode must be a function',
    );
    expect(refusal(() => new Preparer('asynq', undefined, { maxRetry: 0.5 })).message).toContain('maxRetry must be');
  });
});

describe('codec', () => {
  const upper = { encode: (value: unknown) => new TextEncoder().encode(String(value).toUpperCase()), decode: String };

  it('of the definition wins over that of the client', () => {
    const client = new Preparer('asynq', { encode: () => Buffer.from('client'), decode: String });
    const payloadBy = (task: string | TaskDefinition) =>
      prepare(task, 'abc', undefined, client).request.message.payload;
    expect(payloadBy('t').toString()).toBe('client');
    expect(payloadBy(defineTask('t', { codec: upper })).toString()).toBe('ABC');
  });

  it('must return bytes', () => {
    const wrong = defineTask('t', { codec: { encode: () => 'text' as never, decode: String } });
    expect(() => prepare(wrong, 1)).toThrow(
      'codec of task "t" returned "text"; encode() must return bytes or undefined',
    );
  });

  it('may refuse, and its error is the cause', () => {
    const refuses = defineTask('t', {
      codec: {
        encode() {
          throw new RangeError('too tall');
        },
        decode: String,
      },
    });
    expect(() => prepare(refuses, 1)).toThrow(InvalidTaskError);
    expect(() => prepare(refuses, 1)).toThrow('payload of task "t" cannot be encoded: too tall');
  });
});

describe('for any options', () => {
  const ahead = fc.integer({ min: -10_000, max: 10_000_000 });
  const options = fc.record(
    { processIn: ahead, unique: fc.integer({ min: 1000, max: 9_999_999 }) },
    { requiredKeys: [] },
  );

  it('nothing starts early, and a lock lasts its time beyond the wait', () => {
    fc.assert(
      fc.property(options, fc.integer({ min: 1, max: 2_000_000_000_000 }), ({ processIn, unique }, now) => {
        const { request, state } = preparer.prepare(preparer.kindOf('t', { processIn, unique }), undefined, now);
        const wait = Math.max(0, processIn ?? 0);
        expect(state).toBe(wait > 0 ? 'scheduled' : 'pending');
        if (wait > 0) {
          expect(request.processAt! * 1000).toBeGreaterThanOrEqual(now + wait);
          expect(request.processAt! * 1000).toBeLessThan(now + wait + 1000);
        }
        expect(request.uniqueTtl === undefined).toBe(request.message.uniqueKey === '');
        if (unique !== undefined) {
          expect(request.uniqueTtl! * 1000).toBeGreaterThanOrEqual(wait + unique);
          expect(request.uniqueTtl! * 1000).toBeLessThan(wait + unique + 1000);
        }
      }),
    );
  });
});

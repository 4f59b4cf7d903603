import {
  type AsynqClient,
  type AsynqScheduler,
  defineTask,
  duration,
  type Duration,
  type TaskDefinition,
  type TaskInfo,
  type TaskOptions,
  workflow,
} from 'nestjs-asynq';
import type { AsynqTester } from 'nestjs-asynq/testing';
import { describe, expect, expectTypeOf, it } from 'vitest';

const Welcome = defineTask<{ userId: number }, string>('welcome');
const Warm = defineTask<void, number>('warm');
const Optional = defineTask<{ userId: number } | undefined>('optional');

describe('a call with a definition', () => {
  it('has the result of the definition, and takes its payload', () => {
    const calls = (client: AsynqClient, task: string | TaskDefinition) => ({
      welcome: client.enqueue(Welcome, { userId: 1 }),
      delayed: client.enqueue(Welcome, { userId: 1 }, { processIn: '10m' }),
      warm: client.enqueue(Warm),
      optional: client.enqueue(Optional),
      named: client.enqueue('any', { what: 'ever' }, { queue: 'low' }),
      alone: client.enqueue('any'),
      either: client.enqueue(task, 1),
    });
    type Calls = ReturnType<typeof calls>;
    expectTypeOf<Calls['welcome']>().toEqualTypeOf<Promise<TaskInfo<string>>>();
    expectTypeOf<Calls['delayed']>().toEqualTypeOf<Promise<TaskInfo<string>>>();
    expectTypeOf<Calls['warm']>().toEqualTypeOf<Promise<TaskInfo<number>>>();
    expectTypeOf<Calls['named']>().toEqualTypeOf<Promise<TaskInfo>>();
    expectTypeOf<Calls['either']>().toEqualTypeOf<Promise<TaskInfo>>();
    expect(calls).toBeDefined();
  });

  it('does not compile without its payload, or with another', () => {
    const calls = (client: AsynqClient, scheduler: AsynqScheduler, tester: AsynqTester) => [
      // @ts-expect-error no payload
      client.enqueue(Welcome),
      // @ts-expect-error an option in its place
      client.enqueue(Welcome, { queue: 'low' }),
      // @ts-expect-error undefined
      client.enqueue(Welcome, undefined, { queue: 'low' }),
      // @ts-expect-error a text is no number
      client.enqueue(Welcome, { userId: '1' }),
      // @ts-expect-error one field too many
      client.enqueue(Welcome, { userId: 1, name: 'x' }),
      // @ts-expect-error no such option
      client.enqueue(Welcome, { userId: 1 }, { delay: 5 }),
      // @ts-expect-error nor by name
      client.enqueue('welcome', { userId: 1 }, { delay: 5 }),
      // @ts-expect-error many
      client.enqueueMany(Welcome, [{ userId: '1' }]),
      // @ts-expect-error a schedule
      scheduler.register('@daily', Welcome),
      // @ts-expect-error a test
      tester.work(Welcome),
      // @ts-expect-error a step
      workflow('w').add('welcome', Welcome),
    ];
    expect(calls).toBeDefined();
  });
});

describe('a duration', () => {
  it('compiles in the form of this library', () => {
    const good: Duration[] = [
      0,
      1500,
      '0',
      '90s',
      '1.5h',
      '-1s',
      '500ms',
      '100us',
      '7d',
      '1h30m',
      '1d12h',
      '2m30s',
      '1s500ms',
    ];
    const long: Duration[] = ['1d2h3m', '1h30m10s', '1d2h3m4s', duration('5m')];
    expect([...good, ...long]).toHaveLength(17);
  });

  it('does not compile in others', () => {
    const bad: TaskOptions[] = [
      // @ts-expect-error words
      { timeout: '5 minutes' },
      // @ts-expect-error no unit
      { timeout: '10' },
      // @ts-expect-error nothing
      { timeout: '' },
      // @ts-expect-error a unit of another library
      { processIn: '5min' },
      // @ts-expect-error a week is 7d
      { retention: '1w' },
      // @ts-expect-error the smaller one first
      { retention: '30m1h' },
      // @ts-expect-error any text; duration(text) reads it
      { unique: String(process.env['X']) },
    ];
    expect(bad).toHaveLength(7);
  });

  it('may be read from a setting', () => {
    expect(duration('1h30m')).toBe(5_400_000);
    expect(() => duration('5 minutes')).toThrow('duration: "5 minutes" is not a duration; did you mean \'5m\'?');
  });
});

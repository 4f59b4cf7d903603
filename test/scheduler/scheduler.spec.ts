import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { ManualClock } from '../../lib/clock.js';
import {
  BrokerUnavailableError,
  InvalidOptionError,
  InvalidScheduleError,
  InvalidTaskError,
  PeriodicEntryNotFoundError,
  SchedulerStateError,
} from '../../lib/errors.js';
import { AsynqEvents, type AsynqEventMap } from '../../lib/events/events.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import type { PeriodicTaskConfig } from '../../lib/scheduler/source-poller.js';
import { AsynqScheduler } from '../../lib/scheduler/scheduler.js';
import { defineTask } from '../../lib/task/definition.js';

const START = Date.parse('2024-03-01T00:00:00Z');
const MINUTE = 60_000;

let clock: ManualClock;
let broker: MemoryBroker;
let schedulers: AsynqScheduler[];
let emitted: { event: string; payload: unknown }[];

const EVENTS = [
  'periodicTaskEnqueued',
  'periodicTaskSkipped',
  'periodicTaskFailed',
  'periodicTaskAhead',
  'periodicSourceFailed',
  'loopFailed',
];

/** A further process with the same broker, on a clock that differs by `skew` milliseconds; an object may be changed. */
function scheduler(skew: number | { ms: number } = 0): AsynqScheduler {
  const events = new AsynqEvents();
  for (const event of EVENTS as (keyof AsynqEventMap)[]) {
    events.on(event, (payload) => void emitted.push({ event, payload }));
  }
  const skewed = {
    now: () => clock.now() + (typeof skew === 'number' ? skew : skew.ms),
    elapsed: () => clock.elapsed(),
    after: (delay: number, callback: () => void) => clock.after(delay, callback),
  };
  const seen = new Proxy(broker, {
    get: (target, name) => {
      const value: unknown = name === 'clock' ? skewed : Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const made = new AsynqScheduler(seen, events);
  schedulers.push(made);
  return made;
}

/** Timers fire one at a time, and what they begin comes to rest before the next. */
async function pass(milliseconds: number): Promise<void> {
  const end = clock.now() + milliseconds;
  await settle();
  for (let due = clock.nextDue(); due !== undefined && due <= end; due = clock.nextDue()) {
    clock.moveTo(due);
    await settle();
  }
  clock.moveTo(end);
  await settle();
}

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
};

const payloads = (): string[] => broker.tasks().map(({ message }) => message.payload.toString());
const planned = (): string[] =>
  emitted
    .filter(({ event }) => event === 'periodicTaskEnqueued')
    .map(({ payload }) => (payload as AsynqEventMap['periodicTaskEnqueued']).entry.planned.toISOString());
const count = (event: string): number => emitted.filter((one) => one.event === event).length;

beforeEach(() => {
  clock = new ManualClock(START);
  broker = new MemoryBroker(clock);
  schedulers = [];
  emitted = [];
});
afterEach(async () => {
  await Promise.all(schedulers.map((one) => one.stop()));
  await broker.close();
});

describe('a registered task', () => {
  it('is enqueued at its planned times, with its payload and options', async () => {
    const one = scheduler();
    const Report = defineTask<{ region: string }>('report', { queue: 'low' });
    one.register('*/15 * * * *', Report, { region: 'eu' }, { maxRetry: 3 });
    one.start();
    await pass(45 * MINUTE);
    expect(broker.tasks('low').map(({ message }) => message)).toMatchObject(
      Array.from({ length: 3 }, () => ({
        type: 'report',
        queue: 'low',
        maxRetry: 3,
        payload: Buffer.from('{"region":"eu"}'),
      })),
    );
    expect(planned()).toEqual(['2024-03-01T00:15:00.000Z', '2024-03-01T00:30:00.000Z', '2024-03-01T00:45:00.000Z']);
  });

  it('is due in its time zone', async () => {
    const one = scheduler();
    one.register('0 9 * * *', 'a', undefined, { tz: 'Asia/Tokyo' });
    one.register('TZ=Asia/Kathmandu 0 9 * * *', 'b', undefined, { tz: 'Asia/Tokyo' });
    one.start();
    await pass(24 * 60 * MINUTE);
    expect(planned()).toEqual(['2024-03-01T03:15:00.000Z', '2024-03-02T00:00:00.000Z']);
  });

  it('can be registered and unregistered while the scheduler runs', async () => {
    const one = scheduler();
    one.start();
    const id = one.register('@every 10s', 'a');
    await pass(25_000);
    expect(one.list()).toMatchObject([
      { id, spec: '@every 10s', type: 'a', next: new Date(START + 30_000), previous: new Date(START + 20_000) },
    ]);
    expect(one.unregister(id)).toBe(true);
    expect(one.unregister(id)).toBe(false);
    await pass(60_000);
    expect(payloads()).toHaveLength(2);
    expect(one.list()).toEqual([]);
  });

  it('is refused when it is invalid, before anything happens', () => {
    const one = scheduler();
    expect(() => one.register('* * *', 'a')).toThrow(InvalidScheduleError);
    expect(() => one.register('@daily', ' ')).toThrow(InvalidTaskError);
    expect(() => one.register('@daily', 'a', undefined, { tz: 'Mars/Olympus' })).toThrow(/unknown time zone Mars/);
    expect(() => one.register('@daily', 'a', 1n)).toThrow(InvalidTaskError);
    expect(() => one.register('@daily', 'a', undefined, { missed: { all: 0 } })).toThrow(InvalidOptionError);
    expect(() => one.register('@daily', 'a', undefined, { overlap: 'no' as 'skip' })).toThrow(/"allow" or "skip"/);
    expect(() => one.register('@daily', 'a', undefined, { misssed: 'one' } as object)).toThrow(/did you mean "missed"/);
    const First = defineTask<number>('first', { key: (n) => String(n), rememberFor: '1d' });
    expect(() => one.register('@daily', defineTask('bad', { key: () => ' ', rememberFor: '1d' }))).toThrow(
      /blank text/,
    );
    expect(() => one.register('@daily', 'a', undefined, { after: First } as object)).toThrow(/unknown .*"after"/);
    one.register('@daily', 'a');
    expect(() => one.register('@daily', 'a')).toThrow(/registered already/);
    expect(one.register('@daily', 'a', undefined, { id: 'mine' })).toBe('mine');
    expect(one.list()).toHaveLength(2);
  });

  it('waits, and is remembered, as its definition says', async () => {
    const First = defineTask<number>('first', { key: (n) => String(n), rememberFor: '1d' });
    const Second = defineTask<number>('second', { key: (n) => String(n), after: First });
    const one = scheduler();
    one.register('@every 10s', First, 7);
    one.register('@every 10s', Second, 7);
    one.start();
    await pass(10_000);
    expect(
      broker
        .tasks()
        .map(({ message, state }) => `${message.type} ${state}`)
        .toSorted(),
    ).toEqual(['first pending', 'second waiting']);
    const { tasks } = await broker.consumer.exchange('default', { settle: [], take: 9 });
    expect(tasks).toHaveLength(1);
    const { lease } = tasks[0]!;
    await broker.consumer.exchange('default', { settle: [{ kind: 'done', lease, uniqueKey: '' }], take: 0 });
    expect(broker.tasks().map(({ message, state }) => `${message.type} ${state}`)).toEqual(['second pending']);
  });

  it('is published from the first second on, with the options as asynq writes them, until the scheduler stops', async () => {
    const one = scheduler();
    const id = one.register(
      '0 9 * * *',
      'a',
      { n: 1 },
      { queue: 'low', timeout: '90s', headers: { k: 'v' }, tz: 'Asia/Tokyo' },
    );
    one.start();
    await pass(1);
    const entry = {
      id,
      spec: 'TZ=Asia/Tokyo 0 9 * * *',
      taskType: 'a',
      taskPayload: Buffer.from('{"n":1}'),
      enqueueOptions: ['Queue("low")', 'Timeout(1m30s)', 'Header(["k","v"])'],
      nextEnqueueTime: START + 24 * 60 * MINUTE,
      prevEnqueueTime: undefined,
    };
    expect(broker.publishedEntries()).toEqual([entry]);
    await pass(10 * MINUTE);
    expect(broker.publishedEntries()).toEqual([entry]);
    await one.stop();
    expect(broker.publishedEntries()).toEqual([]);
  });

  it('has a history', async () => {
    const one = scheduler();
    const id = one.register('@every 10s', 'a');
    one.start();
    await pass(20_000);
    const ids = broker.tasks().map(({ message }) => message.id);
    expect(broker.publishedEvents(id)).toEqual([
      { taskId: ids[0], enqueueTime: START + 10_000 },
      { taskId: ids[1], enqueueTime: START + 20_000 },
    ]);
  });
});

describe('several processes', () => {
  it('enqueue each planned time once, with clocks that differ', async () => {
    for (const skew of [0, 3_000, -4_000]) {
      const one = scheduler(skew);
      one.register('* * * * *', 'a');
      one.register('@every 7s', 'b');
      one.start();
    }
    await pass(30 * MINUTE);
    const minutes = broker.tasks().filter(({ message }) => message.type === 'a');
    expect(minutes).toHaveLength(30);
    const times = planned();
    expect(new Set(times.filter((time) => time.endsWith(':00.000Z'))).size).toBeGreaterThanOrEqual(30);
    const sevens = emitted
      .filter(({ event }) => event === 'periodicTaskEnqueued')
      .map(({ payload }) => (payload as AsynqEventMap['periodicTaskEnqueued']).entry)
      .filter(({ type }) => type === 'b')
      .map((entry) => entry.planned.getTime());
    expect(sevens.slice(1).map((time, index) => time - sevens[index]!)).toEqual(sevens.slice(1).map(() => 7_000));
  });

  it('go on when one of them stops', async () => {
    const [one, two] = [scheduler(), scheduler()];
    for (const each of [one, two]) each.register('@every 10s', 'a');
    one.start();
    two.start();
    await pass(30_000);
    await one.stop();
    await pass(30_000);
    expect(payloads()).toHaveLength(6);
  });
});

describe('planned times that were missed', () => {
  async function outage(options: object): Promise<void> {
    const before = scheduler();
    before.register('0 * * * *', 'a', undefined, { id: 'e', ...options });
    before.start();
    await pass(90 * MINUTE);
    await before.stop();
    clock.advance(300 * MINUTE); // 02:00 to 06:00 pass
    emitted = [];
    const after = scheduler();
    after.register('0 * * * *', 'a', undefined, { id: 'e', ...options });
    after.start();
    await pass(1);
  }

  it.each([
    ['skip', [], 1],
    ['one', ['06'], 1],
    [{ all: 3 }, ['04', '05', '06'], 1],
    [{ all: 100 }, ['02', '03', '04', '05', '06'], 0],
  ])('are enqueued as the policy says: %o', async (missed, hours, skipped) => {
    await outage({ missed });
    expect(planned()).toEqual(hours.map((hour) => `2024-03-01T${hour}:00:00.000Z`));
    expect(count('periodicTaskSkipped')).toBe(skipped);
    emitted = [];
    await pass(30 * MINUTE); // 07:00
    expect(planned()).toEqual(['2024-03-01T07:00:00.000Z']);
    expect(count('periodicTaskSkipped')).toBe(0);
  });

  it('do not count as missed within half a minute', async () => {
    const before = scheduler();
    before.register('0 * * * *', 'a');
    before.start();
    await pass(59 * MINUTE);
    await before.stop();
    clock.advance(MINUTE + 20_000);
    const after = scheduler();
    after.register('0 * * * *', 'a');
    after.start();
    await pass(1);
    expect(planned()).toEqual(['2024-03-01T01:00:00.000Z']);
  });

  it('of a year of seconds are found quickly', async () => {
    await broker.scheduling.openSchedule('default', 'e', 'UTC @every 1s', 2 * 365 * 86_400);
    clock.advance(365 * 86_400_000);
    const one = scheduler();
    one.register('@every 1s', 'a', undefined, { id: 'e', missed: { all: 2 } });
    const started = performance.now();
    one.start();
    await pass(1);
    expect(performance.now() - started).toBeLessThan(5_000);
    expect(payloads()).toHaveLength(2);
  });
});

describe('a clock that is an hour ahead', () => {
  const HOUR = 60 * MINUTE;
  const start = (skew: number | { ms: number }, spec = '*/10 * * * *') => {
    const one = scheduler(skew);
    one.register(spec, 'a', undefined, { id: 'e' });
    one.start();
    return one;
  };
  const ahead = () => emitted.filter(({ event }) => event === 'periodicTaskAhead').map(({ payload }) => payload);

  it('is reported once by each process that finds an entry enqueued until then', async () => {
    start(0);
    await pass(5 * MINUTE);
    const wrong = start(HOUR);
    await pass(6 * MINUTE); // 01:10 by the wrong clock
    await wrong.stop();
    await pass(30 * MINUTE);
    const entry = {
      id: 'e',
      spec: '*/10 * * * *',
      type: 'a',
      queue: 'default',
      planned: new Date(START + 70 * MINUTE),
    };
    expect(ahead()).toEqual([{ entry, ahead: 50 * MINUTE, key: 'asynq:{default}:periodic:e' }]); // at 00:20
    const before = payloads().length;
    start(0);
    await pass(1);
    expect(ahead()).toHaveLength(2);
    await pass(HOUR);
    expect(payloads()).toHaveLength(before + 3); // 01:20, 01:30, 01:40: from then on as before
    expect(ahead()).toHaveLength(2);
  });

  it('is reported by the process that had it, once it is set right', async () => {
    const skew = { ms: HOUR };
    start(skew, '@every 1s');
    await pass(5_000);
    const before = payloads().length;
    skew.ms = 0;
    await pass(5_000);
    expect(ahead()).toEqual([expect.objectContaining({ ahead: expect.toSatisfy((ms) => ms > 59 * MINUTE) })]);
    expect(payloads()).toHaveLength(before);
  });

  it('ends when the key is deleted: each planned time is enqueued once again', async () => {
    const skew = { ms: HOUR };
    start(0);
    start(skew);
    await pass(10 * MINUTE); // 00:10 and 01:10
    skew.ms = 0;
    await pass(2 * MINUTE);
    expect(ahead()).toHaveLength(2);
    broker.clear();
    await pass(30 * MINUTE);
    expect(payloads()).toHaveLength(3);
    expect(
      planned()
        .slice(-3)
        .map((time) => time.slice(11, 16)),
    ).toEqual(['00:20', '00:30', '00:40']);
    expect(ahead()).toHaveLength(2);
  });

  it('is not reported when clocks differ by seconds', async () => {
    start(0);
    start(50_000);
    await pass(HOUR);
    expect(ahead()).toEqual([]);
    expect(payloads()).toHaveLength(6);
  });
});

describe('overlap', () => {
  it('is avoided with the policy skip', async () => {
    const one = scheduler();
    one.register('@every 10s', 'a', undefined, { overlap: 'skip' });
    one.start();
    await pass(35_000);
    expect(payloads()).toHaveLength(1);
    expect(count('periodicTaskSkipped')).toBe(2);
    const { tasks } = await broker.consumer.exchange('default', { settle: [], take: 1 });
    const { lease, message } = tasks[0]!;
    await broker.consumer.exchange('default', {
      settle: [{ kind: 'done', lease, uniqueKey: message.uniqueKey }],
      take: 0,
    });
    await pass(10_000);
    expect(payloads()).toHaveLength(1);
    expect(planned()).toHaveLength(2);
  });
});

describe('a pause', () => {
  const reasons = (): string[] =>
    emitted.flatMap(({ event, payload }) =>
      event === 'periodicTaskSkipped' ? [(payload as AsynqEventMap['periodicTaskSkipped']).reason] : [],
    );
  const start = (options: object = {}) => {
    const one = scheduler();
    one.register('@every 10s', 'a', undefined, { id: 'e', queue: 'low', ...options });
    one.start();
    return one;
  };

  it('counts for all processes, also those that start later', async () => {
    const inspector = new AsynqInspector(broker);
    start();
    const two = start();
    await pass(25_000);
    expect(await inspector.pauseSchedulerEntry('e')).toBe(true);
    expect(await inspector.pauseSchedulerEntry('e')).toBe(false);
    start();
    await pass(20_000);
    expect(payloads()).toHaveLength(2);
    expect(reasons()).toEqual(['paused', 'paused']);
    expect(two.list()[0]!.previous).toEqual(new Date(START + 20_000));
    expect(await inspector.schedulerEntries()).toMatchObject([
      {
        id: 'e',
        replicas: 3,
        canPause: true,
        pausedAt: new Date(START + 25_000),
        prevEnqueueAt: new Date(START + 20_000),
      },
    ]);
    expect(await inspector.resumeSchedulerEntry('e')).toBe(true);
    await pass(10_000);
    expect(planned().at(-1)).toBe('2024-03-01T00:00:50.000Z');
    expect(await inspector.schedulerEntries()).toMatchObject([{ pausedAt: undefined }]);
  });

  it('is not made up for by a process that was away meanwhile', async () => {
    const inspector = new AsynqInspector(broker);
    const one = start({ missed: { all: 10 } });
    await pass(5_000);
    await inspector.pauseSchedulerEntry('e');
    await one.stop();
    await pass(60_000);
    const two = start({ missed: { all: 10 } });
    await pass(1);
    await inspector.resumeSchedulerEntry('e');
    await two.stop();
    await pass(30_000);
    start({ missed: { all: 10 } });
    await pass(1);
    expect(planned().map((time) => time.slice(14, 19))).toEqual(['01:10', '01:20', '01:30']);
  });

  it('needs an entry of ours that runs', async () => {
    const inspector = new AsynqInspector(broker);
    const go = { id: 'go', spec: '@daily', taskType: 'a', taskPayload: Buffer.alloc(0), enqueueOptions: [] };
    const times = { nextEnqueueTime: undefined, prevEnqueueTime: undefined };
    await broker.scheduling.writeSchedulerEntries('h:1:go', [{ ...go, ...times }], 60);
    await expect(inspector.pauseSchedulerEntry('go')).rejects.toThrow(/Go's asynq, which knows no pause/);
    await expect(inspector.resumeSchedulerEntry('gone')).rejects.toThrow(PeriodicEntryNotFoundError);
    await expect(inspector.pauseSchedulerEntry(' ')).rejects.toThrow(InvalidOptionError);
    expect(await inspector.schedulerEntries()).toMatchObject([{ id: 'go', canPause: false }]);
  });

  it('is of the queue of the defaults, which the entry is published with', async () => {
    const made = new AsynqScheduler(broker, new AsynqEvents(), { defaults: { queue: 'low' } });
    schedulers.push(made);
    made.register('@every 10s', 'a', undefined, { id: 'e' });
    made.start();
    await pass(1);
    const inspector = new AsynqInspector(broker);
    expect(await inspector.pauseSchedulerEntry('e')).toBe(true);
    expect(await inspector.schedulerEntries()).toMatchObject([{ options: ['Queue("low")'], canPause: true }]);
  });
});

describe('failures', () => {
  it('of the broker are reported, and lose no planned time', async () => {
    const fire = vi.spyOn(broker.scheduling, 'fire').mockRejectedValue(new BrokerUnavailableError('away'));
    const one = scheduler();
    one.register('@every 10s', 'a');
    one.start();
    await pass(15_000);
    expect(count('loopFailed')).toBeGreaterThan(1);
    fire.mockRestore();
    await pass(5_000);
    expect(planned()[0]).toBe('2024-03-01T00:00:10.000Z');
  });

  it('include the option of a definition that an entry cannot have, and say how to leave it out', () => {
    const one = scheduler();
    const sync = defineTask<{ id: string }>('sync', { key: ({ id }) => id, latest: true });
    expect(() => one.register('@daily', sync, { id: 'a' })).toThrow(
      'a periodic entry cannot have latest, which task "sync" has; give the entry latest: false, or use a plain unique time',
    );
    one.register('@daily', sync, { id: 'a' }, { latest: false });
    expect(one.list()).toHaveLength(1);
  });

  it('include a duplicate, which does not stop later times', async () => {
    const one = scheduler();
    one.register('@every 10s', 'a', undefined, { unique: '25s' });
    one.start();
    await pass(60_000);
    expect(count('periodicTaskFailed')).toBe(4);
    expect(payloads()).toHaveLength(2);
  });

  it('include starting twice', async () => {
    const one = scheduler();
    one.start();
    expect(() => one.start()).toThrow(new SchedulerStateError('asynq: the scheduler is already running'));
    await one.stop();
    await one.stop();
    expect(() => one.start()).toThrow(new SchedulerStateError('asynq: the scheduler has already been stopped'));
  });
});

describe('a source', () => {
  const specs = (one: AsynqScheduler): string[] => one.list().map(({ spec }) => spec);

  it('is polled, and the entries follow it', async () => {
    let configs: PeriodicTaskConfig[] = [{ spec: '@every 10s', task: 'a' }];
    const one = scheduler();
    one.register('@daily', 'static');
    one.addSource('source', () => configs, '1m');
    one.start();
    await pass(1);
    expect(specs(one)).toEqual(['@daily', '@every 10s']);
    configs = [
      { spec: '@every 20s', task: 'a' },
      { spec: '@every 20s', task: 'a' },
      { spec: '@daily', task: 'static' },
    ];
    await pass(MINUTE);
    expect(specs(one)).toEqual(['@daily', '@every 20s']);
    configs = [];
    await pass(MINUTE);
    expect(specs(one)).toEqual(['@daily']);
    expect(count('periodicSourceFailed')).toBe(0);
  });

  it('changes an entry that keeps its id, and leaves one that is the same', async () => {
    const payload = { text: 'stand up' };
    const options = { id: 'reminder', overlap: 'allow' as 'allow' | 'skip' };
    const same: PeriodicTaskConfig = { spec: '@every 10s', task: 'a', options: { id: 'same' } };
    const other: PeriodicTaskConfig = { spec: '@daily', task: 'b', options: { id: 'static' } };
    const changing = { spec: '@daily', task: 'a', payload, options };
    const one = scheduler();
    one.register('@daily', 'a', undefined, { id: 'static' });
    one.addSource('source', () => [changing, same, other], '1m');
    one.start();
    await pass(25_000);
    const before = one.list().find(({ id }) => id === 'same');
    expect(payloads()).toHaveLength(2);

    changing.spec = '@every 20s';
    await pass(MINUTE); // the poll, and one time of it
    expect(one.list().find(({ id }) => id === 'reminder')).toMatchObject({ spec: '@every 20s' });
    expect(payloads().filter((text) => text.includes('stand up'))).toHaveLength(1);
    expect(
      one
        .list()
        .find(({ id }) => id === 'same')
        ?.previous?.getTime(),
    ).toBeGreaterThan(before!.previous!.getTime());

    payload.text = 'sit down';
    await pass(MINUTE);
    expect(payloads().some((text) => text.includes('sit down'))).toBe(true);
    expect(one.list().map(({ id }) => id)).toEqual(expect.arrayContaining(['static', 'same', 'reminder']));
    expect(one.list()).toHaveLength(3);
    expect(one.list().find(({ id }) => id === 'static')).toMatchObject({ type: 'a' });
  });

  it('that fails leaves the old set; an invalid spec is skipped alone', async () => {
    const good: PeriodicTaskConfig = { spec: '@hourly', task: 'a' };
    const results: (() => unknown)[] = [
      () => [good],
      () => Promise.reject(new Error('database away')),
      () => [undefined],
      () => [{ spec: '', task: 'a' }],
      () => [{ spec: '@daily' }],
      () => [{ ...good, options: { queue: ' ' } }],
      () => 'nothing',
      () => [good, { spec: '61 * * * *', task: 'b' }, { spec: '@daily', task: 'b' }],
    ];
    const one = scheduler();
    one.addSource('source', () => (results.shift() ?? (() => [good]))() as PeriodicTaskConfig[], '1m');
    one.start();
    await pass(6 * MINUTE + 1);
    expect(specs(one)).toEqual(['@hourly']);
    const errors = emitted.map(({ payload }) => ((payload as { error: Error }).error ?? {}).message);
    expect(errors).toEqual([
      'database away',
      'PeriodicTaskConfig cannot be nil',
      'PeriodicTaskConfig.Cronspec cannot be empty',
      'PeriodicTaskConfig.Task cannot be nil',
      'queue name must contain one or more characters; queue is " ": give a text that is not blank',
      expect.stringContaining('must return an array'),
    ]);
    await pass(MINUTE);
    expect(specs(one)).toEqual(['@hourly', '@daily']);
    expect(count('periodicSourceFailed')).toBe(7);
  });

  it('that fails at first is polled again soon', async () => {
    let fails = 3;
    const one = scheduler();
    one.addSource('source', () => {
      if (fails-- > 0) throw new Error('not yet');
      return [{ spec: '@hourly', task: 'a' }];
    });
    one.start();
    await pass(5_000);
    expect(specs(one)).toEqual(['@hourly']);
    expect(() => one.addSource('s', () => [], 10)).toThrow(InvalidOptionError);
  });
});

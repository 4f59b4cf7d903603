import { describe, expect } from 'vitest';
import type { LeasedTask } from '../../lib/broker/broker.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { Relay } from '../../lib/links/relay.js';
import type { ActiveTask } from '../../lib/server/attempt/active-task.js';
import { Server } from '../../lib/server/server.js';
import type { TaskContext } from '../../lib/task/context.js';
import { StepContext, type StepContextDeps } from '../../lib/workflows/step-context.js';
import { it, type RedisDriver } from '../contract/redis-fixture.js';
import { RunSession, step } from '../contract/run-session.js';
import { signal } from './support.js';

const STEPS = [step('a'), step('b'), step('end', { after: ['a', 'b'] })];

function linkOf({ links }: LeasedTask) {
  const link = links![0]!;
  if (link.k !== 'r') throw new Error(`this is not the link of a step: ${JSON.stringify(link)}`);
  return link;
}

const sinceOf = (task: LeasedTask): string => linkOf(task).since!;

/** Ends the task of a step with a result, by default in the process that has claimed it. */
async function succeed(
  session: RunSession,
  driver: RedisDriver,
  name: string,
  result: string | Buffer,
  { consumer } = driver.broker,
): Promise<void> {
  const task = (await session.claim(name))!;
  const settlement = { kind: 'done', lease: task.lease, uniqueKey: '', result: Buffer.from(result as string) } as const;
  const settle = [{ ...settlement, step: linkOf(task) }];
  session.took(await consumer.exchange('default', { settle, take: 0 }));
}

/** How many results a call reads in Redis. */
async function reads({ redis }: RedisDriver, call: () => Promise<unknown>): Promise<number> {
  await redis.config('RESETSTAT');
  await call();
  return Number(/cmdstat_hmget:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0);
}

it('is stored by a server for the next step', async ({ driver }) => {
  const { broker } = driver;
  const { id, workflows } = new RunSession(driver);
  const events = new AsynqEvents();
  const seen: unknown[] = [];
  const ended = signal();
  const handle = async (task: TaskContext): Promise<unknown> => {
    if (task.type === 'do:a') return { n: 1 };
    // Who reads in Redis sees this.
    await driver.redis.hset(driver.keys.run(id), 'v:a', 'read');
    const { since } = (task as ActiveTask).linkOf('r')!;
    seen.push(...(await workflows.results('default', id, ['a'], since)).map(String));
    ended.fire();
    return undefined;
  };
  const relay = new Relay(broker.links, events);
  const server = new Server({ broker, relay, events, handlers: [{ pattern: 'do:', handle }] });
  const steps = [step('a'), step('b', { after: ['a'] })];
  await workflows.start('default', [{ id, name: 'wf', steps, retention: 60, deadline: undefined }]);
  await server.start();
  await ended.fired;
  await server.shutdown();
  await relay.close();
  expect(seen).toEqual(['{"n":1}']);
});

describe('the results of steps that this process has stored', () => {
  it('are not read again by the steps after them', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start(STEPS);
    await succeed(session, driver, 'a', '1');
    await succeed(session, driver, 'b', '2');
    const since = sinceOf((await session.claim('end'))!);
    const { workflows } = session;
    expect(
      await reads(driver, async () => {
        expect(await workflows.results('default', session.id, ['b', 'a'], since)).toEqual([
          Buffer.from('2'),
          Buffer.from('1'),
        ]);
      }),
    ).toBe(0);
    const found = await workflows.resultsBefore({ to: 'default', run: session.id, step: 'end', since });
    expect([...found!]).toEqual([
      ['a', Buffer.from('1')],
      ['b', Buffer.from('2')],
    ]);
    // Whoever has not claimed a step of the run sees what Redis has.
    expect(await reads(driver, () => workflows.results('default', session.id, ['a']))).toBe(1);
  });

  it('are not read again by a handler that names them', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start(STEPS);
    await succeed(session, driver, 'a', '1');
    await succeed(session, driver, 'b', '2');
    const end = (await session.claim('end'))!;
    expect(linkOf(end).before).toEqual(['a', 'b']);
    const deps = { broker: driver.broker } as unknown as StepContextDeps;
    const context = new StepContext(deps, end.lease.id, linkOf(end));
    expect(
      await reads(driver, async () => {
        expect(await context.result('a')).toBe(1);
        expect(await context.results(['b', 'a'])).toEqual({ a: 1, b: 2 });
        expect(Object.entries(await context.results())).toEqual([
          ['a', 1],
          ['b', 2],
        ]);
      }),
    ).toBe(0);
  });

  it('are not all of those before a step when another process has stored one, or one has none', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([...STEPS, step('other'), step('late', { after: ['end', 'other'] })]);
    await succeed(session, driver, 'other', '0');
    await succeed(session, driver, 'b', '2');
    await succeed(session, driver, 'a', '1', driver.open(driver.server.port));
    const end = (await session.claim('end'))!;
    const { workflows } = session;
    expect(await workflows.resultsBefore(linkOf(end))).toEqual(
      new Map([
        ['a', Buffer.from('1')],
        ['b', Buffer.from('2')],
      ]),
    );
    session.took(await driver.exchange([{ kind: 'done', lease: end.lease, uniqueKey: '', step: linkOf(end) }], 0));
    const late = linkOf((await session.claim('late'))!);
    expect(late.before).toEqual(['end', 'other']);
    expect(await workflows.resultsBefore(late)).toEqual(new Map([['other', Buffer.from('0')]]));
  });

  it('are not read again by a step that was added while the run went on, or whose run is gone', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start(STEPS);
    const added = await session.workflows.grow('default', session.id, [step('new', { after: ['a', 'b', 'end'] })]);
    expect(added.status).toBe('added');
    for (const [name, result] of [
      ['b', '2'],
      ['a', '1'],
      ['end', '3'],
    ] as const)
      await succeed(session, driver, name, result);
    const link = linkOf((await session.claim('new'))!);
    expect(link.before).toEqual(['a', 'b', 'end']);
    expect(
      await reads(driver, async () => {
        const found = await session.workflows.resultsBefore(link);
        expect([...found!].map(([name, result]) => `${name}${String(result)}`)).toEqual(['a1', 'b2', 'end3']);
      }),
    ).toBe(0);
    const { workflows } = driver.open(driver.server.port);
    expect([...(await workflows.resultsBefore(link))!.keys()]).toEqual(['a', 'b', 'end']);
    await driver.redis.del(driver.keys.run(session.id));
    expect(await workflows.resultsBefore(link)).toBeUndefined();
  });

  it('leave only those to be read that another process has stored', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start(STEPS);
    await succeed(session, driver, 'a', '1');
    await succeed(session, driver, 'b', '2', driver.open(driver.server.port));
    await driver.redis.hset(driver.keys.run(session.id), 'v:a', 'read');
    const since = sinceOf((await session.claim('end'))!);
    expect(await session.workflows.results('default', session.id, ['a', 'b'], since)).toEqual([
      Buffer.from('1'),
      Buffer.from('2'),
    ]);
  });

  it('are not those of a later run with the same id', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start(STEPS);
    await succeed(session, driver, 'a', 'old');
    await succeed(session, driver, 'b', 'old');
    await session.finish('end');
    expect((await session.workflows.delete('default', session.id)).status).toBe('deleted');
    driver.clock.advance(1);
    await session.start(STEPS);
    const other = driver.open(driver.server.port);
    await succeed(session, driver, 'a', 'new', other);
    await succeed(session, driver, 'b', 'new', other);
    const since = sinceOf((await session.claim('end'))!);
    expect(await session.workflows.results('default', session.id, ['a', 'b'], since)).toEqual([
      Buffer.from('new'),
      Buffer.from('new'),
    ]);
  });

  it('are the last megabytes, and no large ones', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start(STEPS);
    await succeed(session, driver, 'a', 'x'.repeat(5000));
    const small = Buffer.from([0, 10, 127, 128, 200, 255]);
    await succeed(session, driver, 'b', small);
    const since = sinceOf((await session.claim('end'))!);
    const call = (name: string) => session.workflows.results('default', session.id, [name], since);
    expect(await reads(driver, () => call('a'))).toBe(1);
    expect(await reads(driver, () => call('b'))).toBe(0);
    expect(await call('b')).toEqual([small]);
    const other = new RunSession(driver, 'wf:2');
    await other.start(Array.from({ length: 3000 }, (_, n) => step(`s${n}`, {}, other.id)));
    // Each call stores a little less than 4 MB.
    const settleMore = async (): Promise<void> => {
      const { tasks } = other.took(await driver.exchange([], 950));
      expect(tasks).toHaveLength(950);
      const settle = tasks.map((task) => {
        const result = Buffer.alloc(4096, '1');
        return { kind: 'done', lease: task.lease, uniqueKey: '', result, step: linkOf(task) } as const;
      });
      other.took(await driver.exchange(settle, 0));
    };
    await settleMore();
    await settleMore();
    expect(await reads(driver, () => call('b'))).toBe(0);
    await settleMore();
    expect(await reads(driver, () => call('b'))).toBe(1);
    expect(await call('b')).toEqual([small]);
  });
});

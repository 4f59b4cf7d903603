import { describe, expect } from 'vitest';
import type { LinkNews } from '../../../lib/broker/links.js';
import { BatchSession, CALLS, HOME } from '../batch-session.js';
import type { DriverTest } from '../driver.js';
import { LinkSession } from '../link-session.js';
import { RunSession, step } from '../run-session.js';

const A = { queue: 'other', id: 'a' };

export function exerciseLinkNews(it: DriverTest): void {
  describe('a call that ends something among links says so', () => {
    exerciseWaits(it);
    exerciseRuns(it);
    exerciseBatchEnds(it);
  });
}

function exerciseWaits(it: DriverTest): void {
  const news = (id: string, end: string, state: string, reason?: string) => ({
    kind: 'wait',
    queue: 'default',
    id,
    type: `do:${id}`,
    end,
    state,
    ...(reason === undefined ? {} : { reason }),
  });
  const message = (id: string) => ({ type: `do:${id}` });

  it('of waits: released, cancelled, revived', async ({ driver }) => {
    const session = new LinkSession(driver);
    await driver.add({ id: 'a', queue: 'other' });
    for (const id of ['b', 'c']) {
      const processAt = id === 'c' ? driver.now + 60 : undefined;
      await session.enqueueAfter(session.waiting(id, [A], { message: message(id), processAt }));
    }
    await session.relay();
    expect(session.takeNews()).toEqual([]);
    await session.runNext('archive', 'other');
    await session.relay();
    const reason = 'asynq: prerequisite failed: task "a" of queue "other": boom';
    const sorted = (): LinkNews[] => session.takeNews().toSorted((one, other) => (one.id < other.id ? -1 : 1));
    expect(sorted()).toEqual([news('b', 'cancelled', 'archived', reason), news('c', 'cancelled', 'archived', reason)]);
    await session.act('run', 'a', 'other');
    await session.runNext('done', 'other');
    await session.relay(2);
    expect(sorted()).toEqual([news('b', 'revived', 'pending'), news('c', 'revived', 'scheduled')]);
    await driver.add({ id: 'a2' });
    const long = 'x'.repeat(200);
    const prerequisite = { queue: 'default', id: 'a2' };
    await session.enqueueAfter(session.waiting('d', [prerequisite], { message: { type: long } }));
    await session.runNext(); // b
    await session.runNext();
    await session.relay();
    expect(session.takeNews()).toEqual([{ ...news('d', 'released', 'pending'), type: long }]);
  });

  it('of waits whose time is over', async ({ driver }) => {
    const session = new LinkSession(driver);
    await driver.add({ id: 'a', queue: 'other' });
    const deadline = driver.now + 60;
    await session.enqueueAfter(session.waiting('b', [A], { message: message('b'), deadline }));
    await session.enqueueAfter(session.waiting('c', [A], { message: message('c'), deadline, onTimeout: 'run' }));
    await session.relay();
    driver.clock.advance(61_000);
    await session.keep();
    expect(session.takeNews()).toEqual(
      expect.arrayContaining([
        news('b', 'timedOut', 'archived', expect.stringContaining('waited for as long as it may') as never),
        news('c', 'timedOut', 'pending'),
      ]),
    );
    await session.keep();
    expect(session.takeNews()).toEqual([]);
  });
}

function exerciseRuns(it: DriverTest): void {
  it('of runs, each time that one ends', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a'), step('b', { after: ['a'] }), step('c', { message: { queue: 'other' } })]);
    await session.finish('c');
    const startedAt = driver.clock.now();
    driver.clock.advance(2_000);
    expect(session.takeNews()).toEqual([]);
    await session.fail('a');
    const run = { kind: 'run', queue: 'default', id: 'wf:1', name: 'wf', steps: 3, startedAt };
    expect(session.takeNews()).toEqual([{ ...run, state: 'failed', failed: 1, endedAt: driver.clock.now() }]);
    session.took(await session.workflows.retry('default', 'wf:1'));
    await session.relay();
    driver.clock.advance(1_000);
    await session.finish('a', 'b');
    expect(session.takeNews()).toEqual([{ ...run, state: 'succeeded', failed: 0, endedAt: driver.clock.now() }]);
  });

  it('of runs that are cancelled, by hand or by their timeout', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a'), step('b', { after: ['a'] })]);
    session.took(await session.workflows.cancel('default', 'wf:1', 'why'));
    await session.relay();
    expect(session.takeNews()).toMatchObject([{ kind: 'run', id: 'wf:1', state: 'cancelled', steps: 2 }]);
    const late = new RunSession(driver, 'wf:2');
    await late.start([step('a', {}, 'wf:2')], { deadline: driver.now + 60 });
    driver.clock.advance(61_000);
    await late.keep();
    expect(late.takeNews()).toMatchObject([{ kind: 'run', id: 'wf:2', state: 'cancelled' }]);
  });
}

function exerciseBatchEnds(it: DriverTest): void {
  it.for([CALLS, HOME])('of batches, and of each callback once, in queue %s', async (calls, { driver }) => {
    const session = new BatchSession(driver);
    const openedAt = driver.clock.now();
    const id = await session.open({}, HOME, calls);
    await session.add(id, 3);
    await session.run(1, 'archive');
    expect(session.takeNews()).toEqual([]);
    await session.close(id);
    await session.relay();
    const about = { queue: HOME, id, name: 'test' };
    const call = (callback: string) => ({ kind: 'callback', ...about, callback });
    expect(session.takeNews()).toEqual([call('death')]);
    driver.clock.advance(5_000);
    await session.run(2);
    const ended = { kind: 'batch', ...about, total: 3, openedAt };
    const first = { ...ended, state: 'completed', failed: 1, endedAt: driver.clock.now() };
    expect(session.takeNews()).toEqual([first, call('complete')]);
    const { archived } = await driver.queue();
    await session.act('run', archived[0]![0]);
    await session.run(1);
    const second = { ...ended, state: 'succeeded', failed: 0, endedAt: driver.clock.now() };
    expect(session.takeNews()).toEqual([second, call('success')]);
    await session.keep();
    expect(session.takeNews()).toEqual([]);
  });
}

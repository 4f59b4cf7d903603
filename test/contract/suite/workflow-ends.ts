import { describe, expect } from 'vitest';
import type { DriverTest } from '../driver.js';
import { RunSession, step } from '../run-session.js';

const OTHER = { message: { queue: 'other' } };

export function exerciseRunEnds(it: DriverTest): void {
  describe('the end of a run', () => {
    exerciseCancel(it);
    exerciseTimes(it);
    exerciseLate(it);
    exerciseDelete(it);
  });
}

function exerciseCancel(it: DriverTest): void {
  it('by a cancellation ends what waits, and removes what nobody has claimed', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([
      step('a'),
      step('b', OTHER),
      step('c', { after: ['a', 'b'] }),
      step('d'),
      step('e', OTHER),
      step('f', { request: { processAt: driver.now + 60 } }),
    ]);
    const task = await driver.takeOne();
    const there = await driver.takeOne('other');
    const reply = session.took(await session.workflows.cancel('default', 'wf:1', 'no longer wanted'));
    expect(reply.status).toBe('cancelled');
    const ids = [task.lease.id, there.lease.id].toSorted();
    expect(reply.tasks.map(({ id }) => id)).toEqual(expect.arrayContaining(ids));
    await session.relay();
    const { state, reason, graph } = await session.stored();
    expect([state, reason]).toEqual(['cancelled', 'no longer wanted']);
    const ready = graph.filter((one) => one.state === 'ready').map(({ name }) => `wf:1~${name}`);
    expect(ready.toSorted()).toEqual(ids);
    expect((await session.step('c')).error).toBe('no longer wanted');
    expect([...(await driver.take(5)), ...(await driver.take(5, 'other'))]).toEqual([]);
    await session.end(task, 'done');
    await session.end(there, 'archive', 'stopped');
    await session.relay();
    const ended = await session.stored();
    expect([ended.state, ended.open, ended.failed]).toEqual(['cancelled', 0, 0]);
    expect(ended.graph.filter((one) => one.state === 'succeeded')).toHaveLength(1);
    await session.expectNothingLeft();
  });

  it.for(['default', 'other'])(
    'by a cancellation lets a handler undo its steps to the end, in queue %s',
    async (queue, { driver }) => {
      const session = new RunSession(driver);
      await session.start([step('a', { message: { queue } }), step('b', { after: ['a'] })]);
      const { lease } = await driver.takeOne(queue);
      const undo = { error: 'no', outcome: 'archive', at: 1 };
      await driver.broker.checkpoints.write(lease, '!undo', Buffer.from(`${JSON.stringify(undo)}\n`));
      await driver.exchange([{ kind: 'sleep', lease, wakeAt: driver.now + 60 }], 0, queue);
      session.took(await session.workflows.cancel('default', 'wf:1', 'no longer wanted'));
      await session.relay();
      await session.keep();
      expect(await session.states()).toEqual(['cancelled', 'a:ready b:cancelled']);
      driver.clock.advance(60_000);
      await driver.broker.maintenance.forward(queue);
      await session.end(await driver.takeOne(queue), 'archive');
      await session.relay();
      expect(await session.states()).toEqual(['cancelled', 'a:cancelled b:cancelled']);
      await session.expectNothingLeft();
    },
  );

  it('by a cancellation is the error of all that has not run', async ({ driver }) => {
    const session = new RunSession(driver);
    const later = { request: { processAt: driver.now + 60 } };
    await session.start([
      step('a', later),
      step('b', { ...OTHER, ...later }),
      step('c', { after: ['a', 'b'] }),
      step('d'),
      step('e', OTHER),
      step('x', later),
      step('y', { after: ['x', 'a'], onFailure: 'run' }),
      step('z', { after: ['x'] }),
    ]);
    await session.fail('d');
    await session.fail('e');
    session.took(await session.workflows.retry('default', 'wf:1'));
    await session.relay();
    await session.act('archive', 'wf:1~x');
    await session.relay();
    session.took(await session.workflows.cancel('default', 'wf:1', 'no longer wanted'));
    await session.relay();
    const { graph } = await session.stored();
    expect(Object.fromEntries(graph.map(({ name, error }) => [name, error]))).toEqual({
      ...Object.fromEntries(['a', 'b', 'c', 'd', 'e', 'y'].map((name) => [name, 'no longer wanted'])),
      x: 'archived',
      z: '"x" has failed',
    });
    await session.expectNothingLeft();
  });

  it('by a cancellation is the error of a task that is deleted because of it', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a'), step('b', OTHER)]);
    const claimed = [(await session.claim('a'))!, (await session.claim('b'))!];
    session.took(await session.workflows.cancel('default', 'wf:1', 'why'));
    await session.relay();
    for (const { lease } of claimed) {
      await driver.settle({ kind: 'requeue', lease });
      await session.act('delete', lease.id, lease.queue);
    }
    await session.relay();
    expect((await session.stored()).graph.map(({ error }) => error)).toEqual(['why', 'why']);
    await session.expectNothingLeft();
  });

  it('by a cancellation is final', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a'), step('b', { after: ['a'] })]);
    await session.claim('a');
    await session.workflows.cancel('default', 'wf:1', 'why');
    expect(await session.workflows.cancel('default', 'wf:1', 'other')).toMatchObject({ status: 'ended', tasks: [] });
    expect((await session.workflows.retry('default', 'wf:1')).status).toBe('notFailed');
    expect(await session.grow(step('c'))).toBe('ended');
    await session.settle('a');
    expect(await session.states()).toEqual(['cancelled', 'a:succeeded b:cancelled']);
    expect((await session.stored()).reason).toBe('why');
    expect((await session.workflows.cancel('default', 'none', 'why')).status).toBe('missing');
    await session.expectNothingLeft();
  });

  it('by a cancellation takes back what has not left for another queue', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.begin([step('a', OTHER), step('b', { after: ['a'] })]);
    session.took(await session.workflows.cancel('default', 'wf:1', 'why'));
    await session.keep();
    expect(await session.states()).toEqual(['cancelled', 'a:cancelled b:cancelled']);
    expect(await driver.take(5, 'other')).toEqual([]);
    await session.expectNothingLeft();
  });
}

/** Documented: nobody can take back what has left. */
function exerciseLate(it: DriverTest): void {
  it('by a cancellation leaves a run as it is whose task arrives late, and runs, in another queue', async ({
    driver,
  }) => {
    const session = new RunSession(driver);
    await session.begin([step('a', OTHER)]);
    const onTheWay = [...session.sent];
    session.lose();
    session.took(await session.workflows.cancel('default', 'wf:1', 'why'));
    await session.relay();
    for (const parcel of onTheWay) session.took(await session.links.deliver(parcel.to, [parcel]));
    if ((await session.claim('a')) !== undefined) await session.settle('a');
    await session.relay();
    expect(await session.states()).toEqual(['cancelled', 'a:cancelled']);
    await session.expectNothingLeft();
  });

  it('by its deadline comes when a keeper has seen it: until then steps begin', async ({ driver }) => {
    const session = new RunSession(driver);
    const steps = [step('a'), step('b', { after: ['a'] }), step('c', { after: ['b'] })];
    await session.start(steps, { deadline: driver.now + 3600 });
    driver.clock.advance(3_601_000);
    await session.finish('a');
    const task = await session.claim('b');
    await session.keep();
    expect(await session.states()).toEqual(['cancelled', 'a:succeeded b:ready c:cancelled']);
    await session.end(task!, 'done');
    await session.relay();
    expect(await session.states()).toEqual(['cancelled', 'a:succeeded b:succeeded c:cancelled']);
    await session.expectNothingLeft();
  });
}

function exerciseTimes(it: DriverTest): void {
  it('comes at its deadline at the latest', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a'), step('b', { after: ['a'] }), step('c', OTHER)], { deadline: driver.now + 3600 });
    await session.claim('a');
    driver.clock.advance(3_599_000);
    await session.keep();
    expect((await session.stored()).state).toBe('running');
    driver.clock.advance(1_000);
    await session.keep();
    expect((await session.states())[0]).toBe('cancelled');
    expect((await session.stored()).reason).toBe('it did not end in time');
    expect((await session.step('b')).state).toBe('cancelled');
    await session.expectNothingLeft();
  });

  it('is not brought by the deadline to a run that was revived after it', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a'), step('b', { after: ['a'] })], { deadline: driver.now + 3600 });
    await session.fail('a');
    driver.clock.advance(4_000_000);
    await session.keep();
    await session.act('run', 'wf:1~a');
    await session.finish('a');
    for (let hours = 0; hours < 3; hours++) {
      driver.clock.advance(3_600_000);
      await session.keep();
    }
    expect(await session.states()).toEqual(['running', 'a:succeeded b:ready']);
    await session.finish('b');
    expect((await session.stored()).state).toBe('succeeded');
  });

  it('is followed by its deletion when the retention is over', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a'), step('b', OTHER)], { retention: 60 });
    await session.finish('a');
    await session.fail('b');
    driver.clock.advance(59_000);
    await session.keep();
    expect(await session.states()).toEqual(['failed', 'a:succeeded b:failed']);
    driver.clock.advance(1_000);
    await session.keep();
    expect(await session.workflows.run('default', 'wf:1')).toBeUndefined();
    expect(await driver.stateOf('wf:1~b', 'other')).toBeUndefined();
    await session.expectNothingKept();
    // The next run with its id begins anew.
    expect(await session.start([step('a'), step('b', OTHER)])).toBe('started');
    await session.relay();
    expect(await session.states()).toEqual(['running', 'a:ready b:ready']);
  });

  it('starts the retention again after a revival', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a'), step('b', { after: ['a'] })], { retention: 60 });
    await session.fail('a');
    driver.clock.advance(50_000);
    await session.act('run', 'wf:1~a');
    await session.finish('a');
    driver.clock.advance(50_000);
    await session.keep();
    expect((await session.stored()).state).toBe('running');
    await session.finish('b');
    driver.clock.advance(59_000);
    await session.keep();
    expect((await session.stored()).state).toBe('succeeded');
    driver.clock.advance(1_000);
    await session.keep();
    expect(await session.workflows.run('default', 'wf:1')).toBeUndefined();
  });
}

function exerciseDelete(it: DriverTest): void {
  it('allows its deletion, which leaves nothing', async ({ driver }) => {
    const session = new RunSession(driver);
    const { workflows } = session;
    await session.start([step('a'), step('b', OTHER), step('c', { after: ['a', 'b'] })]);
    expect((await workflows.delete('default', 'wf:1')).status).toBe('running');
    expect((await workflows.delete('default', 'none')).status).toBe('missing');
    await session.finish('a');
    await session.fail('b');
    await session.expectNothingLeft();
    expect(await driver.stateOf('wf:1~b', 'other')).toBeUndefined();
    expect(await workflows.runs('default', { offset: 0, size: 5 })).toEqual([]);
    expect(await session.start([step('a')])).toBe('started');
  });

  it('allows its deletion while tasks of a cancelled run go on', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a'), step('b', OTHER)]);
    const [a, b] = [(await session.claim('a'))!, (await session.claim('b'))!];
    session.took(await session.workflows.cancel('default', 'wf:1', 'why'));
    await session.relay();
    expect(session.took(await session.workflows.delete('default', 'wf:1')).status).toBe('deleted');
    await session.relay();
    await session.end(a, 'done');
    await session.end(b, 'archive');
    await session.relay();
    expect(await driver.stateOf('wf:1~b', 'other')).toBe('archived');
    await session.expectNothingKept();
  });
}

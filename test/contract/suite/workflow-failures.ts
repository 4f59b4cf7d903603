import { describe, expect } from 'vitest';
import type { FailurePolicy } from '../../../lib/broker/links.js';
import { taskIdOfStep } from '../../../lib/broker/workflows.js';
import type { DriverTest } from '../driver.js';
import { RunSession, step } from '../run-session.js';

const QUEUES = ['default', 'other'];

export function exerciseRunFailures(it: DriverTest): void {
  describe('a step that fails', () => {
    exercisePolicies(it);
    exerciseRevival(it);
    exerciseRetry(it);
  });
}

/** The policy of the step after the failed one, and what becomes of it and of the one after that. */
const POLICIES: readonly (readonly [FailurePolicy, string])[] = [
  ['cancel', 'a:failed b:cancelled c:cancelled'],
  ['run', 'a:failed b:ready c:waiting'],
  ['wait', 'a:failed b:waiting c:waiting'],
];

function exercisePolicies(it: DriverTest): void {
  it.for(QUEUES.flatMap((queue) => POLICIES.map(([policy, states]) => ({ queue, policy, states }))))(
    'lets those after it do what their policy says: %j',
    async ({ queue, policy, states }, { driver }) => {
      const session = new RunSession(driver);
      const message = { queue };
      await session.start([
        step('a', { message }),
        step('b', { after: ['a'], onFailure: policy }),
        step('c', { after: ['b'] }),
      ]);
      await session.fail('a');
      expect(await session.states()).toEqual([policy === 'run' ? 'running' : 'failed', states]);
      expect((await session.step('a')).error).toBe('boom');
      if (policy === 'cancel') expect((await session.step('c')).error).toBe('"b" was cancelled');
      if (policy === 'run') await session.finish('b', 'c');
      expect((await session.stored()).state).toBe('failed');
      await session.expectNothingLeft();
    },
  );

  it('runs the clean-up when all before it have ended, failed or cancelled', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([
      step('a'),
      step('b', { after: ['a'] }),
      step('c'),
      step('z', { after: ['b', 'c'], onFailure: 'run' }),
    ]);
    await session.fail('a');
    expect(await session.states()).toEqual(['running', 'a:failed b:cancelled c:ready z:waiting']);
    await session.finish('c');
    expect(await session.states()).toEqual(['running', 'a:failed b:cancelled c:succeeded z:ready']);
    await session.finish('z');
    expect((await session.stored()).state).toBe('failed');
  });

  it('counts as done when it is optional, and the run succeeds', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a', { optional: true }), step('b', { after: ['a'] })]);
    await session.fail('a');
    expect(await session.states()).toEqual(['running', 'a:failed b:ready']);
    await session.finish('b');
    expect((await session.stored()).state).toBe('succeeded');
    await session.expectNothingLeft();
  });

  it('passes its failure on through an optional step that was cancelled', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a'), step('b', { after: ['a'], optional: true }), step('c', { after: ['b'] })]);
    await session.fail('a');
    expect(await session.states()).toEqual(['failed', 'a:failed b:cancelled c:cancelled']);
  });

  it('has failed when its task is revoked, or deleted by an operator', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a'), step('b'), step('c', { message: { queue: 'other' } })]);
    await session.settle('a', 'revoke');
    expect(await session.states()).toEqual(['running', 'a:failed b:ready c:ready']);
    for (const [name, queue] of [
      ['b', 'default'],
      ['c', 'other'],
    ] as const) {
      const task = (await session.claim(name))!;
      await driver.settle({
        kind: 'retry',
        lease: task.lease,
        message: task.message,
        retryAt: driver.now,
        countAsFailure: true,
      });
      await session.act('delete', taskIdOfStep('wf:1', name), queue);
    }
    await session.relay();
    expect(await session.states()).toEqual(['failed', 'a:failed b:failed c:failed']);
    await session.expectNothingLeft();
  });

  it.for(QUEUES)(
    'is found by the keeper when Go deletes, archives or completes its task in queue %s',
    async (queue, { driver }) => {
      const session = new RunSession(driver);
      const message = { queue };
      await session.start(['a', 'b', 'c'].map((name) => step(name, { message })));
      const { administration } = driver.broker;
      expect(await administration.moveTasks(queue, 'archive', ['wf:1~b'])).toEqual(['moved']);
      expect(await administration.moveTasks(queue, 'delete', ['wf:1~a'])).toEqual(['moved']);
      await session.keep();
      expect(await session.states()).toEqual(['running', 'a:failed b:failed c:ready']);
      await session.finish('c');
      expect((await session.stored()).state).toBe('failed');
      await session.expectNothingLeft();
    },
  );
}

function exerciseRevival(it: DriverTest): void {
  it.for(QUEUES)(
    'revives what was cancelled for it, when it succeeds after all in queue %s',
    async (queue, { driver }) => {
      const session = new RunSession(driver);
      const message = { queue };
      await session.start([
        step('a', { message }),
        step('x', { message }),
        step('b', { after: ['a'], message }),
        step('c', { after: ['b'] }),
        step('y', { after: ['x', 'c'] }),
      ]);
      await session.fail('a');
      await session.fail('x');
      expect(await session.states()).toEqual(['failed', 'a:failed x:failed b:cancelled c:cancelled y:cancelled']);
      await session.act('run', 'wf:1~a', queue);
      await session.finish('a');
      expect(await session.states()).toEqual(['running', 'a:succeeded x:failed b:ready c:waiting y:cancelled']);
      await session.finish('b', 'c');
      expect(await session.states()).toEqual(['failed', 'a:succeeded x:failed b:succeeded c:succeeded y:cancelled']);
      await session.act('run', 'wf:1~x', queue);
      await session.finish('x', 'y');
      expect((await session.stored()).state).toBe('succeeded');
      expect((await session.step('a')).error).toBeUndefined();
      await session.expectNothingLeft();
    },
  );

  it('does not run the clean-up twice', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a'), step('b', { after: ['a'] }), step('z', { after: ['a', 'b'], onFailure: 'run' })]);
    await session.fail('a');
    await session.finish('z');
    await session.act('run', 'wf:1~a');
    await session.finish('a', 'b');
    expect(await session.states()).toEqual(['succeeded', 'a:succeeded b:succeeded z:succeeded']);
    expect(await driver.take(5)).toEqual([]);
  });

  it('releases what waited for its rerun', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a'), step('b', { after: ['a'], onFailure: 'wait' })]);
    await session.fail('a');
    await session.act('run', 'wf:1~a');
    await session.fail('a', 'again');
    expect(await session.states()).toEqual(['failed', 'a:failed b:waiting']);
    await session.act('run', 'wf:1~a');
    await session.finish('a', 'b');
    expect((await session.stored()).state).toBe('succeeded');
    await session.expectNothingLeft();
  });

  it('that succeeded in the end is not failed by what comes late', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a', { message: { queue: 'other' } }), step('b', { after: ['a'] })]);
    await session.fail('a');
    await session.act('run', 'wf:1~a', 'other');
    await session.finish('a');
    for (const parcel of session.sent.filter(({ to }) => to === 'default')) {
      session.took(await session.links.deliver('default', [parcel]));
    }
    await session.relay();
    expect(await session.states()).toEqual(['running', 'a:succeeded b:ready']);
    await session.finish('b');
    await session.expectNothingLeft();
  });
}

function exerciseRetry(it: DriverTest): void {
  it.for(QUEUES)('is run again by a retry of the run, in queue %s', async (queue, { driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a', { message: { queue } }), step('b', { after: ['a'] })]);
    expect(await session.workflows.retry('default', 'wf:1')).toMatchObject({ status: 'notFailed', steps: 0 });
    await session.fail('a');
    const reply = session.took(await session.workflows.retry('default', 'wf:1'));
    expect([reply.status, reply.steps]).toEqual(['retried', 1]);
    expect(await session.states()).toEqual(['running', 'a:ready b:cancelled']);
    await session.relay();
    driver.clock.advance(1_000);
    await session.fail('a', 'again');
    expect(await session.states()).toEqual(['failed', 'a:failed b:cancelled']);
    expect((await session.step('a')).error).toBe('again');
    session.took(await session.workflows.retry('default', 'wf:1'));
    await session.relay();
    await session.finish('a');
    expect(await session.states()).toEqual(['running', 'a:succeeded b:ready']);
    await session.finish('b');
    expect((await session.stored()).state).toBe('succeeded');
    expect((await session.workflows.retry('default', 'wf:1')).status).toBe('notFailed');
    expect((await session.workflows.retry('default', 'none')).status).toBe('missing');
    await session.expectNothingLeft();
  });

  it.for(QUEUES)('runs once, however often its retry arrives in queue %s', async (queue, { driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a', { message: { queue } })]);
    await session.fail('a');
    session.took(await session.workflows.retry('default', 'wf:1'));
    await session.relay(3);
    await session.keep();
    expect((await driver.take(5, queue)).map(({ lease }) => lease.id)).toEqual(['wf:1~a']);
  });

  it.for(QUEUES)('fails again in the millisecond in which it failed before, in queue %s', async (queue, { driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a', { message: { queue } }), step('b', { after: ['a'] })]);
    await session.fail('a');
    for (const error of ['again', 'and again']) {
      session.took(await session.workflows.retry('default', 'wf:1'));
      await session.relay();
      expect(await session.states()).toEqual(['running', 'a:ready b:cancelled']);
      await session.fail('a', error);
      expect(await session.states()).toEqual(['failed', 'a:failed b:cancelled']);
      expect((await session.step('a')).error).toBe(error);
    }
    session.took(await session.workflows.retry('default', 'wf:1'));
    await session.relay();
    await session.act('delete', 'wf:1~a', queue);
    await session.relay();
    expect(await session.states()).toEqual(['failed', 'a:failed b:cancelled']);
    session.took(await session.workflows.retry('default', 'wf:1'));
    await session.relay();
    await session.finish('a', 'b');
    expect((await session.stored()).state).toBe('succeeded');
    await session.expectNothingLeft();
  });

  it.for(QUEUES)(
    'is refused again in the millisecond in which it was before, in queue %s',
    async (queue, { driver }) => {
      const session = new RunSession(driver);
      const uniqueKey = `asynq:{${queue}}:unique:t:x`;
      await driver.add({ id: 'holder', queue, uniqueKey }, { uniqueTtl: 60, processAt: driver.now + 60 });
      await session.start([step('a', { message: { queue, uniqueKey }, request: { uniqueTtl: 60 } })]);
      for (let attempt = 0; attempt < 2; attempt++) {
        expect(await session.states()).toEqual(['failed', 'a:failed']);
        session.took(await session.workflows.retry('default', 'wf:1'));
        await session.relay();
      }
      await session.act('delete', 'holder', queue);
      session.took(await session.workflows.retry('default', 'wf:1'));
      await session.relay();
      await session.finish('a');
      expect((await session.stored()).state).toBe('succeeded');
    },
  );

  it('is not failed by a failure of an earlier attempt that comes twice', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a', { message: { queue: 'other' } }), step('b', { after: ['a'] })]);
    for (let attempt = 0; attempt < 3; attempt++) {
      await session.fail('a');
      const ends = session.sent.filter(({ key }) => key.startsWith('default step'));
      session.took(await session.workflows.retry('default', 'wf:1'));
      // Before and after its task is made to run again.
      for (let time = 0; time < 2; time++) {
        for (const parcel of ends) session.took(await session.links.deliver(parcel.to, [parcel]));
        expect(await session.states()).toEqual(['running', 'a:ready b:cancelled']);
        await session.relay();
      }
      expect(await session.stateOf('wf:1~a', 'other')).toBe('pending');
    }
    await session.finish('a', 'b');
    expect((await session.stored()).state).toBe('succeeded');
    await session.expectNothingLeft();
  });

  it('stays failed when an earlier retry comes twice', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a', { message: { queue: 'other' } })]);
    await session.fail('a');
    for (let attempt = 0; attempt < 2; attempt++) {
      session.took(await session.workflows.retry('default', 'wf:1'));
      await session.relay();
      await session.fail('a');
      for (const parcel of session.sent.filter(({ key }) => key.startsWith('other release'))) {
        session.took(await session.links.deliver(parcel.to, [parcel]));
      }
      await session.relay();
      expect(await session.stateOf('wf:1~a', 'other')).toBe('archived');
      expect(await session.states()).toEqual(['failed', 'a:failed']);
    }
    session.took(await session.workflows.retry('default', 'wf:1'));
    await session.relay();
    await session.finish('a');
    expect((await session.stored()).state).toBe('succeeded');
    await session.expectNothingLeft();
  });

  it('hears of the end of its task when that of an earlier attempt was carried, and is not acknowledged', async ({
    driver,
  }) => {
    const session = new RunSession(driver);
    await session.start([step('a', { message: { queue: 'other' } })]);
    await session.settle('a', 'archive');
    await session.deliverOnly();
    session.took(await session.workflows.retry('default', 'wf:1'));
    await session.carryOnly();
    await session.fail('a', 'again');
    expect(await session.states()).toEqual(['failed', 'a:failed']);
    expect((await session.step('a')).error).toBe('again');
    await session.keep();
    await session.expectNothingLeft();
  });

  it('is asked for by its run, however often it was run again', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a', { message: { queue: 'other' } }), step('b')]);
    await session.fail('a');
    await session.fail('b');
    session.took(await session.workflows.retry('default', 'wf:1'));
    await session.relay();
    await session.fail('b');
    await session.settle('a', 'archive');
    for (const parcel of session.sent) await session.links.acknowledge(parcel.from, [parcel]); // Redis has lost them
    session.lose();
    driver.clock.advance(600_000);
    await session.keep();
    await session.keep();
    expect(await session.states()).toEqual(['failed', 'a:failed b:failed']);
    await session.expectNothingLeft();
  });

  it.for(QUEUES)('is run by somebody else already when it is retried in queue %s', async (queue, { driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a', { message: { queue } })]);
    await session.fail('a');
    await session.act('run', 'wf:1~a', queue);
    expect(session.took(await session.workflows.retry('default', 'wf:1')).steps).toBe(1);
    await session.relay();
    await session.finish('a');
    expect((await session.stored()).state).toBe('succeeded');
    expect(await driver.take(5, queue)).toEqual([]);
    await session.expectNothingLeft();
  });

  it.for(QUEUES.flatMap((queue) => ['delete', 'revoke'].map((end) => [end, queue] as const)))(
    'gets another task when its own is gone: %s in queue %s',
    async ([end, queue], { driver }) => {
      const session = new RunSession(driver);
      const message = { queue, payload: Buffer.from('again') };
      await session.start([step('a', { message }), step('b', { after: ['a'], message }), step('c', { after: ['b'] })]);
      for (const name of ['a', 'b']) {
        if (end === 'delete') await session.act('delete', `wf:1~${name}`, queue);
        else await session.settle(name, 'revoke');
        await session.relay();
        expect((await session.step(name)).state).toBe('failed');
        expect(await session.stateOf(`wf:1~${name}`, queue)).toBeUndefined();
        driver.clock.advance(1_000);
        expect(session.took(await session.workflows.retry('default', 'wf:1')).steps).toBe(1);
        await session.relay();
        expect((await session.step(name)).state).toBe('ready');
        expect((await session.claim(name))!.message.payload.toString()).toBe('again');
        await session.finish(name);
      }
      await session.finish('c');
      expect((await session.stored()).state).toBe('succeeded');
      await session.expectNothingLeft();
    },
  );

  it('counts all that it retries: archived, deleted, and never created', async ({ driver }) => {
    const session = new RunSession(driver);
    const uniqueKey = 'asynq:{default}:unique:t:x';
    await driver.add({ id: 'holder', uniqueKey }, { uniqueTtl: 60, processAt: driver.now + 60 });
    const unique = { message: { uniqueKey }, request: { uniqueTtl: 60 } };
    await session.start([step('a', { message: { queue: 'other' } }), step('b'), step('c', unique)]);
    await session.act('delete', 'wf:1~b');
    await session.fail('a');
    expect(await session.states()).toEqual(['failed', 'a:failed b:failed c:failed']);
    await session.act('delete', 'holder');
    driver.clock.advance(1_000);
    expect(session.took(await session.workflows.retry('default', 'wf:1')).steps).toBe(3);
    await session.relay();
    await session.finish('a', 'b', 'c');
    expect((await session.stored()).state).toBe('succeeded');
  });
}

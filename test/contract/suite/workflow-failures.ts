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
    expect(await session.workflows.retry('default', 'wf:1')).toMatchObject({ status: 'notFailed', tasks: [] });
    await session.fail('a');
    const reply = session.took(await session.workflows.retry('default', 'wf:1'));
    expect([reply.status, reply.tasks]).toEqual(['retried', [{ queue, id: 'wf:1~a' }]]);
    expect(await session.states()).toEqual(['running', 'a:ready b:cancelled']);
    await session.act('run', 'wf:1~a', queue);
    driver.clock.advance(1_000);
    await session.fail('a', 'again');
    expect(await session.states()).toEqual(['failed', 'a:failed b:cancelled']);
    expect((await session.step('a')).error).toBe('again');
    await session.workflows.retry('default', 'wf:1');
    await session.act('run', 'wf:1~a', queue);
    await session.finish('a');
    expect(await session.states()).toEqual(['running', 'a:succeeded b:ready']);
    await session.finish('b');
    expect((await session.stored()).state).toBe('succeeded');
    expect((await session.workflows.retry('default', 'wf:1')).status).toBe('notFailed');
    expect((await session.workflows.retry('default', 'none')).status).toBe('missing');
    await session.expectNothingLeft();
  });

  it.for(QUEUES)(
    'has failed again a minute after a retry that did not run its task in queue %s',
    async (queue, { driver }) => {
      const session = new RunSession(driver);
      await session.start([step('a', { message: { queue } }), step('b', { after: ['a'] })]);
      await session.fail('a');
      await session.workflows.retry('default', 'wf:1');
      await session.keep();
      expect(await session.states()).toEqual(['running', 'a:ready b:cancelled']);
      driver.clock.advance(61_000);
      await session.keep();
      expect(await session.states()).toEqual(['failed', 'a:failed b:cancelled']);
      await session.expectNothingLeft();
    },
  );

  it('cannot be retried once its task was deleted', async ({ driver }) => {
    const session = new RunSession(driver);
    await session.start([step('a')]);
    await session.act('delete', 'wf:1~a');
    await session.relay();
    expect(await session.states()).toEqual(['failed', 'a:failed']);
    expect((await session.workflows.retry('default', 'wf:1')).status).toBe('notFailed');
    await session.expectNothingLeft();
  });
}

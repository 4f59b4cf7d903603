import { afterEach, describe, expect, it } from 'vitest';
import type { FailurePolicy, LinkedRequest, Prerequisite } from '../../../lib/broker/links.js';
import { NotAMemberError, RevokeTask, SkipRetry } from '../../../lib/errors.js';
import type { TaskContext } from '../../../lib/task/context.js';
import { request } from '../../support/messages.js';
import { closeRigs, gate, manualClock, openRig, type Rig, startRig, turn } from '../../support/server-rig.js';

const START = 1_700_000_000;
const A: Prerequisite = { queue: 'default', id: 'a' };

/** Enqueues `b`, which waits for `a` (default: by its id). */
async function follow(
  { memory: { links } }: Rig,
  { onFailure = 'cancel', prerequisite = A }: { onFailure?: FailurePolicy; prerequisite?: Prerequisite } = {},
): Promise<void> {
  const b: LinkedRequest = {
    ...request({ id: 'b', type: 'b' }),
    wait: { prerequisites: [prerequisite], onFailure, onTimeout: 'archive', deadline: START + 600 },
  };
  await links.enqueue('default', [b]);
  if ('id' in prerequisite) {
    await links.watch(prerequisite.queue, [
      { id: prerequisite.id, waiting: { queue: 'default', id: 'b', n: 0, until: START + 600 } },
    ]);
  }
}

const taskB = async ({ memory }: Rig) => memory.inspection.getTask('default', 'b');

describe('a task that others wait for', () => {
  afterEach(closeRigs);

  it('releases them when it succeeds, in the same run by hand', async () => {
    const rig = openRig({ a: () => undefined, b: () => undefined }, {}, manualClock());
    await rig.add({ id: 'a', type: 'a' });
    await follow(rig);
    expect((await rig.server.runOnce()).map(({ task }) => task.id)).toContain('a');
    await rig.server.runOnce();
    expect(rig.outcomes.map(({ task, outcome }) => `${task.id} ${outcome}`)).toEqual(['a done', 'b done']);
  });

  it.each([
    ['is archived', () => new SkipRetry('no funds'), 'no funds'],
    ['is revoked', () => new RevokeTask('withdrawn'), 'withdrawn'],
  ])('cancels them when it %s, with the reason', async (_, error, reason) => {
    const fail = () => {
      throw error();
    };
    const rig = openRig({ a: fail, b: () => undefined }, {}, manualClock());
    await rig.add({ id: 'a', type: 'a' });
    await follow(rig);
    await rig.server.runOnce();
    const b = await taskB(rig);
    expect(b?.state).toBe('archived');
    expect(b?.message.errorMsg).toContain(reason);
    expect(rig.outcomes.map(({ task }) => task.id)).toEqual(['a']);
  });

  it('lets them run all the same when they say so', async () => {
    const fail = () => {
      throw new SkipRetry('no funds');
    };
    const rig = openRig({ a: fail, b: () => undefined }, {}, manualClock());
    await rig.add({ id: 'a', type: 'a' });
    await follow(rig, { onFailure: 'run' });
    await rig.server.runOnce();
    await rig.server.runOnce();
    expect(rig.outcomes.map(({ task, outcome }) => `${task.id} ${outcome}`)).toEqual(['a archived', 'b done']);
  });

  it('cancels them when its server died with its last attempt', async () => {
    const clock = manualClock();
    const rig = openRig({ b: () => undefined }, {}, clock);
    await rig.add({ id: 'a', type: 'a', maxRetry: 0 });
    await follow(rig);
    await rig.memory.consumer.exchange('default', { settle: [], take: 1 }); // a server that dies
    clock.advance(61_000);
    const recovered = rig.next('tasksRecovered');
    await rig.server.start();
    while ((await taskB(rig))?.state === 'waiting') {
      clock.advance(500);
      await turn(2);
    }
    expect(await recovered).toMatchObject({ archived: 1 });
    const b = await taskB(rig);
    expect(b?.state).toBe('archived');
    expect(b?.message.errorMsg).toContain('lease');
  });

  it('releases one in another queue of its server, which starts it before any notice or poll', async () => {
    const clock = manualClock();
    const { handle, open, entered } = gate();
    const rig = openRig({ a: handle, b: () => undefined }, { queues: { default: 1, other: 1 } }, clock);
    const { memory, server } = rig;
    const { onPending } = server['core'].waker;
    server['core'].waker.onPending = function (name) {
      if (name === 'default') onPending.call(this, name);
    };
    const prerequisites = [{ queue: 'default', id: 'a' }];
    const wait = { prerequisites, onFailure: 'cancel', onTimeout: 'archive', deadline: START + 600 } as const;
    await server.start();
    await rig.add({ id: 'a', type: 'a' });
    await entered;
    await memory.links.enqueue('other', [{ ...request({ id: 'b', type: 'b', queue: 'other' }), wait }]);
    await memory.links.watch('default', [{ id: 'a', waiting: { queue: 'other', id: 'b', n: 0, until: START + 600 } }]);
    await turn();
    open();
    await turn(20);
    expect(rig.outcomes.map(({ task, outcome }) => `${task.id} ${outcome}`)).toEqual(['a done', 'b done']);
  });

  it('may be retried first: they go on waiting', async () => {
    const clock = manualClock();
    let failures = 1;
    const fail = () => {
      if (failures-- > 0) throw new Error('later');
    };
    const rig = openRig({ a: fail, b: () => undefined }, { retryDelay: () => 1_000 }, clock);
    await rig.add({ id: 'a', type: 'a' });
    await follow(rig);
    await rig.server.runOnce();
    expect((await taskB(rig))?.state).toBe('waiting');
    clock.advance(2_000);
    await rig.server.runOnce();
    await rig.server.runOnce();
    expect(rig.outcomes.map(({ task }) => task.id)).toEqual(['a', 'a', 'b']);
  });

  it('is deleted when it succeeds, though it is stored with a retention for Go', async () => {
    const rig = openRig({ a: () => 42, b: () => undefined }, {}, manualClock());
    const mark = { type: 'a', key: 'k', rememberFor: 60 };
    await rig.memory.links.enqueue('default', [{ ...request({ id: 'a', type: 'a' }), mark }]);
    expect((await rig.memory.inspection.getTask('default', 'a'))?.message.retention).toBe(604_801);
    await rig.server.runOnce();
    expect(rig.outcomes[0]?.outcome).toBe('done');
    expect(await rig.memory.inspection.getTask('default', 'a')).toBeUndefined();
    await follow(rig, { prerequisite: { type: 'a', key: 'k' } });
    expect((await taskB(rig))?.state).toBe('pending');
  });
});

describe('the keeper of a started server', () => {
  afterEach(closeRigs);

  it('ends a wait at its deadline', async () => {
    const clock = manualClock();
    const rig = await startRig({ b: () => undefined }, {}, clock);
    await follow(rig, { prerequisite: { type: 'never', key: 'k' } });
    const started = clock.now();
    while ((await taskB(rig))?.state === 'waiting') {
      clock.advance(5_000);
      await turn(2);
    }
    expect((await taskB(rig))?.state).toBe('archived');
    expect(clock.now() - started).toBeGreaterThanOrEqual(600_000);
    expect(rig.events.filter(({ name }) => name === 'loopFailed')).toEqual([]);
  });

  it('shows the deadline of a wait by hand at once', async () => {
    const clock = manualClock();
    const rig = openRig({ b: () => undefined }, {}, clock);
    await follow(rig, { prerequisite: { type: 'never', key: 'k' } });
    clock.advance(599_000);
    await rig.server.runOnce();
    expect((await taskB(rig))?.state).toBe('waiting');
    clock.advance(1_000);
    await rig.server.runOnce();
    expect((await taskB(rig))?.state).toBe('archived');
  });
});

describe('a context', () => {
  it('has no batch when its task is no member', async () => {
    const seen: { isMember?: boolean; error?: unknown } = {};
    const read = (task: TaskContext) => {
      seen.isMember = task.isMember;
      try {
        void task.batch;
      } catch (error) {
        seen.error = error;
      }
    };
    const rig = openRig({ a: read }, {}, manualClock());
    await rig.add({ id: 'a', type: 'a' });
    await rig.server.runOnce();
    expect(seen.isMember).toBe(false);
    expect(seen.error).toBeInstanceOf(NotAMemberError);
    await closeRigs();
  });
});

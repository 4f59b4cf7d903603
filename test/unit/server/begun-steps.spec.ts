import { afterEach, describe, expect, it } from 'vitest';
import { LEASE_SECONDS, RECOVERY_GRACE_SECONDS } from '../../../lib/broker/broker.js';
import { SkipRetry } from '../../../lib/errors.js';
import { Server } from '../../../lib/server/server.js';
import type { TaskContext } from '../../../lib/task/context.js';
import { PostponeTask } from '../../../lib/task/postpone.js';
import type { TaskMessage } from '../../../lib/wire/message.js';
import { closeRigs, manualClock, openRig, type Rig, startRig, turn } from '../../support/server-rig.js';

afterEach(closeRigs);

/** A step that has succeeded and has a compensation, as checkpoint.ts stores it. */
const CAPTURED = Buffer.from('{"n":0,"kind":"run","at":1,"ended":2,"undo":true}\n');
const UNREADABLE = Buffer.from('{');

/** A handler that captures, then fails for good, and has its steps undone. */
function sale() {
  const did: string[] = [];
  const handle = async ({ steps }: TaskContext): Promise<void> => {
    await steps.run('capture', () => void did.push('capture'), { undo: () => void did.push('refund') });
    did.push('sold out');
    throw new SkipRetry('sold out');
  };
  return { did, handlers: { sale: { pattern: 'sale', handle, steps: {} } } };
}

const expiring = ({ memory }: Rig, seconds: number, policy = ''): Partial<TaskMessage> => ({
  type: 'sale',
  headers: { 'asynq-expires-at': `${memory.clock.now() + seconds * 1000}${policy}` },
});

/** Another server begins the task, stores this of its step, and stops. */
async function begin({ memory }: Rig, stored: Buffer): Promise<void> {
  const { tasks } = await memory.consumer.exchange('default', { settle: [], take: 1 });
  const [{ lease }] = tasks as [(typeof tasks)[0]];
  expect(await memory.checkpoints.write(lease, 'capture', stored)).toBe(true);
  const { settled } = await memory.consumer.exchange('default', { settle: [{ kind: 'requeue', lease }], take: 0 });
  expect(settled).toEqual(['settled']);
}

describe('a task that expires, whose handler has steps', () => {
  const setUp = () => {
    const clock = manualClock();
    const { did, handlers } = sale();
    return { clock, did, ...openRig(handlers, {}, clock) };
  };

  it.each(['', ' drop'])('goes on when a step of it is stored, and is undone then (%j)', async (policy) => {
    const made = setUp();
    await made.add(expiring(made, 300, policy));
    await begin(made, CAPTURED);
    made.clock.advance(600_000);
    expect(await made.server.runOnce()).toMatchObject([{ outcome: 'suspended', error: { code: 'ASYNQ_SKIP_RETRY' } }]);
    expect(await made.server.runOnce()).toMatchObject([{ outcome: 'archived', error: { code: 'ASYNQ_TASK_UNDONE' } }]);
    expect(made.did).toEqual(['sold out', 'sold out', 'refund']); // called once more to be undone
  });

  it('goes on when it was postponed behind a step', async () => {
    const clock = manualClock();
    let postponed = 0;
    const handle = async ({ steps }: TaskContext): Promise<void> => {
      await steps.run('capture', () => undefined);
      if (postponed++ === 0) throw new PostponeTask('10m');
    };
    const made = openRig({ sale: { pattern: 'sale', handle, steps: {} } }, {}, clock);
    await made.add(expiring(made, 300, ' drop'));
    expect(await made.server.runOnce()).toMatchObject([{ outcome: 'postponed' }]);
    clock.advance(600_000);
    expect(await made.server.runOnce()).toMatchObject([{ outcome: 'done' }]);
  });

  it('expires when it has got a signal, and has not begun', async () => {
    const made = setUp();
    const { id } = await made.add(expiring(made, 300));
    await made.memory.checkpoints.signal('default', id, 'go', Buffer.alloc(0));
    made.clock.advance(300_001);
    expect(await made.server.runOnce()).toMatchObject([{ outcome: 'archived', error: { code: 'ASYNQ_TASK_EXPIRED' } }]);
    expect(made.did).toEqual([]);
  });

  it('says what is damaged, rather than that it has expired', async () => {
    const made = setUp();
    await made.add(expiring(made, 300));
    await begin(made, UNREADABLE);
    made.clock.advance(300_001);
    const [outcome] = await made.server.runOnce();
    expect(outcome).toMatchObject({ error: { code: 'ASYNQ_INVALID_STEP' } });
  });

  it('waits for the store when that cannot say whether it has begun', async () => {
    const made = setUp();
    await made.add(expiring(made, 300));
    await begin(made, CAPTURED);
    made.clock.advance(300_001);
    made.faults.set('read', 'before');
    expect(await made.server.runOnce()).toMatchObject([{ outcome: 'requeued' }]);
    made.faults.clear();
    expect(await made.server.runOnce()).toMatchObject([{ outcome: 'suspended' }]);
  });
});

describe('a server without the handler of a task', () => {
  const undoBy = async ({ memory }: Rig): Promise<string[]> => {
    const { did, handlers } = sale();
    const server = new Server({ broker: memory, handlers: Object.values(handlers) });
    await server.runOnce();
    await server.shutdown();
    return did;
  };

  it('leaves the steps of its last attempt to one that has it, to be undone', async () => {
    const made = openRig({ other: () => undefined }, {}, manualClock());
    await made.add({ type: 'sale', maxRetry: 0 });
    await begin(made, CAPTURED);
    expect(await made.server.runOnce()).toMatchObject([
      { outcome: 'suspended', error: { code: 'ASYNQ_HANDLER_NOT_FOUND' } },
    ]);
    expect(await undoBy(made)).toEqual(['sold out', 'refund']);
  });

  it('does so when it recovers it', async () => {
    const clock = manualClock();
    const made = await startRig({ other: () => undefined }, {}, clock);
    made.server.pauseFetching();
    await turn();
    await made.add({ type: 'sale', maxRetry: 0 });
    await begin(made, CAPTURED);
    await made.memory.consumer.exchange('default', { settle: [], take: 1 });
    const recovered = made.next('tasksRecovered');
    for (let second = 0; second < LEASE_SECONDS + RECOVERY_GRACE_SECONDS + 10; second++) {
      clock.advance(1_000);
      await turn(3);
    }
    expect(await recovered).toMatchObject({ archived: 0 });
    expect(await undoBy(made)).toEqual(['sold out', 'refund']);
  });

  it('archives one that has nothing to undo', async () => {
    const made = openRig({ other: () => undefined }, {}, manualClock());
    await made.add({ type: 'sale', maxRetry: 0 });
    await begin(made, Buffer.from('{"n":0,"kind":"run","at":1,"ended":2}\n'));
    expect(await made.server.runOnce()).toMatchObject([
      { outcome: 'archived', error: { code: 'ASYNQ_HANDLER_NOT_FOUND' } },
    ]);
  });
});

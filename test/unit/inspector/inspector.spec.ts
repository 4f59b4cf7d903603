import { describe, expect, it } from 'vitest';
import { MemoryBroker } from '../../../lib/broker/memory/memory-broker.js';
import { ManualClock } from '../../../lib/clock.js';
import { InvalidOptionError } from '../../../lib/errors.js';
import { AsynqInspector } from '../../../lib/inspector/inspector.js';
import { request } from '../../support/messages.js';

describe('AsynqInspector', () => {
  const now = 1_700_000_000_000;
  const setUp = async () => {
    const broker = new MemoryBroker(new ManualClock(now));
    return { broker, inspector: new AsynqInspector(broker) };
  };

  it('tells how a task stands, in each state', async () => {
    const { broker, inspector } = await setUp();
    const pending = request({ headers: { k: 'v' }, retention: 60 });
    const later = request();
    await broker.enqueue('default', [pending, { ...later, processAt: now / 1000 + 90 }]);
    const info = await inspector.getTaskInfo('default', pending.message.id);
    expect(info).toMatchObject({
      state: 'pending',
      retention: 60_000,
      headers: { k: 'v' },
      nextProcessAt: new Date(now),
    });
    const scheduled = await inspector.getTaskInfo('default', later.message.id);
    expect(scheduled).toMatchObject({ state: 'scheduled', nextProcessAt: new Date(now + 90_000) });
    expect(await inspector.getTaskInfo('default', 'nobody')).toBeUndefined();
    expect(await inspector.getTaskInfo('elsewhere', pending.message.id)).toBeUndefined();
  });

  it('pauses and unpauses, telling whether it changed anything', async () => {
    const { broker, inspector } = await setUp();
    await broker.enqueue('default', [request()]);
    expect(await inspector.pauseQueue('default')).toBe(true);
    expect(await inspector.pauseQueue('default')).toBe(false);
    expect((await broker.exchange('default', { settle: [], take: 1 })).tasks).toHaveLength(0);
    expect(await inspector.unpauseQueue('default')).toBe(true);
    expect(await inspector.unpauseQueue('default')).toBe(false);
    expect((await broker.exchange('default', { settle: [], take: 1 })).tasks).toHaveLength(1);
    expect(await inspector.queues()).toEqual(['default']);
  });

  it.each([
    ['', 'id'],
    ['q', ' '],
    [undefined, 'id'],
  ])('refuses blank names: %j, %j', async (queue, id) => {
    const { inspector } = await setUp();
    await expect(inspector.getTaskInfo(queue as string, id)).rejects.toThrow(InvalidOptionError);
  });
});

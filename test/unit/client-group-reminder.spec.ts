import { describe, expect, it, vi } from 'vitest';
import { AsynqClient } from '../../lib/client/client.js';
import { FakeProducerBroker } from '../support/producer-broker.js';
import { turn } from '../support/server-rig.js';

function setUp() {
  const broker = new FakeProducerBroker();
  const list = vi.spyOn(broker.groups, 'listDelayedGroups');
  const pass = async (seconds: number): Promise<void> => {
    broker.clock.advance(seconds * 1000);
    await turn();
  };
  return { broker, list, pass, client: new AsynqClient(broker) };
}

const LATER = { group: 'g', processIn: '1m' } as const;

describe('a client', () => {
  it('lists groups that its delayed tasks have joined, six seconds after they are due', async () => {
    const { client, list, pass } = setUp();
    await client.enqueue('t', undefined, { ...LATER, queue: 'low' });
    await client.enqueue('t', undefined, { ...LATER, queue: 'low', processIn: '2m' });
    await pass(65);
    expect(list).not.toHaveBeenCalled();
    await pass(1);
    expect(list.mock.calls).toEqual([['low']]);
    await pass(600);
    expect(list).toHaveBeenCalledTimes(1); // nothing was left
  });

  it('goes on while there are such tasks of any process', async () => {
    const { broker, client, list, pass } = setUp();
    list.mockResolvedValueOnce(broker.clock.now() / 1000 + 600);
    await client.enqueueMany('t', [undefined, undefined], LATER);
    await pass(66);
    await pass(539);
    expect(list).toHaveBeenCalledTimes(1);
    await pass(1);
    expect(list).toHaveBeenCalledTimes(2);
  });

  it('retries after half a minute when Redis is away, or no server has moved the task', async () => {
    const { broker, client, list, pass } = setUp();
    list.mockRejectedValueOnce(new Error('away')).mockResolvedValueOnce(broker.clock.now() / 1000 + 60);
    await client.enqueue('t', undefined, LATER);
    await pass(66);
    await pass(29);
    expect(list).toHaveBeenCalledTimes(1);
    await pass(1);
    await pass(30);
    await pass(600);
    expect(list).toHaveBeenCalledTimes(3);
  });

  it('forgets no task that is enqueued during a listing', async () => {
    const { client, list, pass } = setUp();
    let reply = (): void => {};
    list.mockImplementationOnce(() => new Promise((resolve) => (reply = () => resolve(undefined))));
    await client.enqueue('t', undefined, LATER);
    await pass(66);
    await client.enqueue('t', undefined, LATER);
    reply();
    await pass(66);
    expect(list).toHaveBeenCalledTimes(2);
  });

  it('ignores other tasks, and lists nothing after close', async () => {
    const { client, list, pass } = setUp();
    await client.enqueueMany([
      { type: 't', options: { group: 'g' } },
      { type: 't', options: { processIn: '1m' } },
    ]);
    await pass(600);
    await client.enqueue('t', undefined, LATER);
    await client.close();
    await pass(600);
    expect(list).not.toHaveBeenCalled();
  });
});

import { describe, expect, it, vi } from 'vitest';
import { AsynqClient } from '../../lib/client/client.js';
import { FakeProducerBroker } from '../support/producer-broker.js';
import { turn } from '../support/server-rig.js';

function setUp() {
  const broker = new FakeProducerBroker();
  const look = vi.spyOn(broker.groups, 'listDelayedGroups');
  const pass = async (seconds: number): Promise<void> => {
    broker.clock.advance(seconds * 1000);
    await turn();
  };
  return { broker, look, pass, client: new AsynqClient(broker) };
}

const LATER = { group: 'g', processIn: '1m' };

describe('a client', () => {
  it('has groups listed that its delayed tasks have joined, six seconds after they were due', async () => {
    const { client, look, pass } = setUp();
    await client.enqueue('t', undefined, { ...LATER, queue: 'low' });
    await client.enqueue('t', undefined, { ...LATER, queue: 'low', processIn: '2m' });
    await pass(65);
    expect(look).not.toHaveBeenCalled();
    await pass(1);
    expect(look.mock.calls).toEqual([['low']]);
    await pass(600);
    expect(look).toHaveBeenCalledTimes(1); // nothing was left
  });

  it('goes on as long as there are such tasks, of any process', async () => {
    const { broker, client, look, pass } = setUp();
    look.mockResolvedValueOnce(broker.clock.now() / 1000 + 600);
    await client.enqueueMany('t', [undefined, undefined], LATER);
    await pass(66);
    await pass(539);
    expect(look).toHaveBeenCalledTimes(1);
    await pass(1);
    expect(look).toHaveBeenCalledTimes(2);
  });

  it('tries again half a minute later when Redis is away, or nobody has moved the task', async () => {
    const { broker, client, look, pass } = setUp();
    look.mockRejectedValueOnce(new Error('away')).mockResolvedValueOnce(broker.clock.now() / 1000 + 60);
    await client.enqueue('t', undefined, LATER);
    await pass(66);
    await pass(29);
    expect(look).toHaveBeenCalledTimes(1);
    await pass(1);
    await pass(30);
    await pass(600);
    expect(look).toHaveBeenCalledTimes(3);
  });

  it('forgets nothing that is enqueued while it looks', async () => {
    const { client, look, pass } = setUp();
    let answer = (): void => {};
    look.mockImplementationOnce(() => new Promise((resolve) => (answer = () => resolve(undefined))));
    await client.enqueue('t', undefined, LATER);
    await pass(66);
    await client.enqueue('t', undefined, LATER);
    answer();
    await pass(66);
    expect(look).toHaveBeenCalledTimes(2);
  });

  it('does not care for other tasks, nor after it was closed', async () => {
    const { client, look, pass } = setUp();
    await client.enqueueMany([
      { type: 't', options: { group: 'g' } },
      { type: 't', options: { processIn: '1m' } },
    ]);
    await pass(600);
    await client.enqueue('t', undefined, LATER);
    await client.close();
    await pass(600);
    expect(look).not.toHaveBeenCalled();
  });
});

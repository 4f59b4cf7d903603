import { expect, it, onTestFinished } from 'vitest';
import type { FollowingRole } from '../../../lib/broker/following.js';
import { MemoryBroker } from '../../../lib/broker/memory/memory-broker.js';
import { AsynqEvents } from '../../../lib/events/events.js';
import { Results } from '../../../lib/results/results.js';
import { completion } from '../../contract/driver.js';
import { request } from '../../support/messages.js';
import { manualClock, turn } from '../../support/server-rig.js';

async function arrange() {
  const clock = manualClock();
  const broker = new MemoryBroker(clock);
  const events = new AsynqEvents();
  const armed: string[] = [];
  const following: FollowingRole = {
    read: (tasks) => broker.following.read(tasks),
    follow: (listener) => {
      const source = broker.following.follow(listener);
      return {
        arm: (tasks) => {
          armed.push(...tasks.map(({ id }) => id));
          return source.arm(tasks);
        },
        forget: (task) => source.forget(task),
        close: () => source.close(),
      };
    },
  };
  const { inspection } = broker;
  const results = new Results({ clock, manual: false, inspection, following }, events);
  onTestFinished(() => results.close());
  const wait = async (id: string) => {
    await broker.producer.enqueue('default', [request({ id, retention: 60 })]);
    const settings = { timeout: 60_000, signal: undefined };
    const result = results.of({ queue: 'default', id, known: true, kept: true }, settings);
    await turn();
    return { result };
  };
  /** As a server does it, of this process or of another one. */
  const complete = async (result: unknown, { here }: { here: boolean }) => {
    const { tasks } = await broker.consumer.exchange('default', { settle: [], take: 1 });
    const settle = [completion(tasks[0]!, 1_000, Buffer.from(JSON.stringify(result)))];
    await broker.consumer.exchange('default', { settle, take: 0 });
    if (here) events.emit('taskFinished', { outcome: 'completed', task: tasks[0]!.message, result } as never);
    await turn();
  };
  return { clock, armed, wait, complete };
}

it('a result that a server of this process stores is not read, once one of its queue was not', async () => {
  const { clock, armed, wait, complete } = await arrange();
  const first = await wait('a');
  expect(armed).toEqual(['a']);
  await complete(1, { here: true });
  await expect(first.result).resolves.toBe(1);

  const second = await wait('b');
  await complete(2, { here: true });
  await expect(second.result).resolves.toBe(2);
  clock.advance(2);
  await turn();
  expect(armed).not.toContain('b');
});

it('a result that comes from elsewhere is read a moment later, and the next one at once', async () => {
  const { clock, armed, wait, complete } = await arrange();
  const first = await wait('a');
  await complete(1, { here: true });
  await first.result;

  const second = await wait('b');
  await complete(2, { here: false });
  expect(armed).not.toContain('b');
  clock.advance(2);
  await expect(second.result).resolves.toBe(2);
  expect(armed).toContain('b');

  const third = await wait('c');
  expect(armed).toContain('c');
  await complete(3, { here: false });
  await expect(third.result).resolves.toBe(3);
});

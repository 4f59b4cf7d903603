import { expect, it, onTestFinished, vi } from 'vitest';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqInspector } from '../../lib/inspector/inspector.js';
import { Server } from '../../lib/server/server.js';
import type { TaskContext } from '../../lib/task/context.js';
import { request } from '../support/messages.js';
import { connectionsTo, observe, ownServer, signal } from './support.js';

it('cancels a task even if the subscription is cut when the message is sent', async () => {
  const redis = await ownServer();
  const observer = observe(redis.port);
  await observer.call('ACL', 'SETUSER', 'worker', 'on', '>pw', '~*', '&*', '+@all');
  const worker = new RedisBroker(connectionsTo(`redis://worker:pw@127.0.0.1:${redis.port}`));
  const inspector = new AsynqInspector(new RedisBroker(connectionsTo(redis.url)));
  const began = signal<TaskContext>();
  const handle = (task: TaskContext): Promise<void> => {
    began.fire(task);
    return new Promise((resolve) => task.signal.addEventListener('abort', () => resolve()));
  };
  const server = new Server({ broker: worker, handlers: [{ pattern: 't', handle }] });
  onTestFinished(() => server.shutdown());
  await server.start();
  await worker.producer.enqueue('default', [request({ id: 'a', type: 't' })]);
  const task = await began.fired;
  const listeners = async (): Promise<unknown> => ((await observer.pubsub('NUMSUB', 'asynq:cancel')) as unknown[])[1];
  await vi.waitFor(async () => expect(await listeners()).toBe(1));

  // Redis drops the subscription at once, and refuses every further one.
  await observer.call('ACL', 'SETUSER', 'worker', 'resetchannels');
  expect(await listeners()).toBe(0);
  await inspector.cancelProcessing('a', { reason: 'nobody heard it', outcome: 'archive' });
  expect(await listeners()).toBe(0);

  await vi.waitFor(() => expect(task.signal.aborted).toBe(true));
  expect((task.signal.reason as Error).message).toBe('nobody heard it');
  await vi.waitFor(async () => {
    expect(await inspector.getTaskInfo('default', 'a')).toMatchObject({
      state: 'archived',
      lastErr: 'nobody heard it',
    });
  });
});

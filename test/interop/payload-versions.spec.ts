import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { SystemClock } from '../../lib/clock.js';
import { Server } from '../../lib/server/server.js';
import { defineTask } from '../../lib/task/definition.js';
import { expect, it, onTestFinished } from 'vitest';
import { describeWithGo } from '../support/go.js';
import { useInterop } from './fixture.js';

const HEADER = 'asynq-payload-version';
const Mail = defineTask<{ userId: number }>('mail', { version: 2, upgrade: () => ({ userId: 0 }) });

describeWithGo('versions of payloads beside Go', () => {
  const interop = useInterop();

  const connect = () => {
    const { host, port } = interop.redis;
    const broker = new RedisBroker(new RedisConnections({ host, port }), { clock: new SystemClock() });
    onTestFinished(() => broker.close());
    return broker;
  };

  /** A server that knows this version; resolves with the ids of the tasks it runs. */
  const serve = async (queue: string, version?: number) => {
    const ran: string[] = [];
    const handle = ({ id }: { id: string }) => void ran.push(id);
    const options = { queues: [queue] };
    const server = new Server({ broker: connect(), handlers: [{ pattern: 'mail', handle, version }], options });
    onTestFinished(() => server.shutdown());
    await server.start();
    return { server, ran };
  };

  it('Go sees and gives an ordinary header; a task that waits is one to retry', async () => {
    const queue = interop.queue();
    const client = new AsynqClient(connect());
    onTestFinished(() => client.close());
    const { id: ours } = await client.enqueue(Mail, { userId: 1 }, { queue, maxRetry: 0 });
    const { id: theirs } = await interop.go.enqueue({
      type: 'mail',
      payload: Buffer.from('{"userId":2}'),
      queue,
      headers: { [HEADER]: '2' },
    });
    expect(await interop.go.taskInfo(queue, ours)).toMatchObject({ state: 'pending', headers: { [HEADER]: '2' } });

    const old = await serve(queue);
    for (const id of [ours, theirs]) {
      expect(await interop.untilState(queue, id, 'retry')).toMatchObject({
        retried: 0,
        lastErr: '',
        headers: { [HEADER]: '2' },
      });
    }
    expect(old.ran).toEqual([]);
    await old.server.shutdown();
    const next = await serve(queue, 2);
    await Promise.all([ours, theirs].map((id) => interop.untilGone(queue, id)));
    expect(next.ran.sort()).toEqual([ours, theirs].sort());
  });

  it('a Go server runs a task of any version', async () => {
    const queue = interop.queue();
    const client = new AsynqClient(connect());
    onTestFinished(() => client.close());
    const { id } = await client.enqueue(Mail, { userId: 1 }, { queue });
    await interop.serve(interop.go, queue, { behaviours: { mail: [{ do: 'ok' }] } });
    expect(await interop.go.event('start', { id })).toMatchObject({ headers: { [HEADER]: '2' } });
    await interop.untilGone(queue, id);
  });
});

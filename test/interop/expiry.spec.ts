import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { Server } from '../../lib/server/server.js';
import { expect, it, onTestFinished } from 'vitest';
import { describeWithGo } from '../support/go.js';
import { useInterop } from './fixture.js';

const HEADER = 'asynq-expires-at';

describeWithGo('tasks that expire beside Go', () => {
  const interop = useInterop();

  const connect = () => {
    const { host, port } = interop.redis;
    const broker = new RedisBroker(new RedisConnections({ host, port }));
    onTestFinished(() => broker.close());
    return broker;
  };

  const late = async (queue: string) => {
    const client = new AsynqClient(connect());
    onTestFinished(() => client.close());
    const { id, expiresAt } = await client.enqueue('t', 1, { queue, expiresIn: 1 });
    return { id, header: { [HEADER]: String(expiresAt!.getTime()) } };
  };

  it('a Go server runs one that has expired, and gives it its header', async () => {
    const queue = interop.queue();
    const { id, header } = await late(queue);
    await interop.serve(interop.go, queue, { behaviours: { t: [{ do: 'ok' }] } });
    expect(await interop.go.event('start', { id })).toMatchObject({ headers: header });
    await interop.untilGone(queue, id);
  });

  it('Go shows one that our server has archived, and runs it again', async () => {
    const queue = interop.queue();
    const { id, header } = await late(queue);
    const ran: string[] = [];
    const handlers = [{ pattern: 't', handle: (task: { id: string }) => void ran.push(task.id) }];
    const server = new Server({ broker: connect(), handlers, options: { queues: [queue] } });
    onTestFinished(() => server.shutdown());
    await server.start();
    expect(await interop.untilState(queue, id, 'archived')).toMatchObject({
      retried: 0,
      lastErr: expect.stringContaining('the task has expired') as string,
      headers: header,
    });
    expect(ran).toEqual([]);
    await interop.go.runTask(queue, id);
    await interop.untilGone(queue, id);
    expect(ran).toEqual([id]);
  });
});

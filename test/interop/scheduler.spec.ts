import { expect, it, onTestFinished } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { AsynqScheduler } from '../../lib/scheduler/scheduler.js';
import { describeWithGo } from '../support/go.js';
import { useInterop } from './fixture.js';

describeWithGo('our scheduler, seen by Go', () => {
  const interop = useInterop();

  function start(register: (scheduler: AsynqScheduler) => void): AsynqScheduler {
    const { host, port } = interop.redis;
    const broker = new RedisBroker(new RedisConnections({ host, port }));
    const scheduler = new AsynqScheduler(broker, new AsynqEvents());
    register(scheduler);
    scheduler.start();
    onTestFinished(async () => {
      await scheduler.stop();
      await broker.close();
    });
    return scheduler;
  }

  it('has entries with options, next and previous time from the first second on, and none once it has stopped', async () => {
    let id = '';
    const scheduler = start((one) => {
      id = one.register(
        '30 9 * * 1-5',
        'report',
        { n: 1 },
        {
          tz: 'Europe/Berlin',
          queue: 'low',
          maxRetry: 3,
          timeout: '90s',
          unique: '1h',
          processIn: '5s',
          retention: '24h',
          deadline: new Date(Date.UTC(2050, 0, 2, 3, 4, 5)),
        },
      );
      one.register('0 0 30 2 *', 'never');
    });
    const started = Date.now();
    await interop.until(async () => expect(await interop.go.schedulerEntries()).toHaveLength(2));
    expect(Date.now() - started).toBeLessThan(5_000); // asynq's own come after 10 s
    const entries = await interop.go.schedulerEntries();
    expect(entries.find((entry) => entry.id === id)).toEqual({
      id,
      spec: 'TZ=Europe/Berlin 30 9 * * 1-5',
      type: 'report',
      payload: Buffer.from('{"n":1}').toString('base64'),
      options: [
        'Queue("low")',
        'MaxRetry(3)',
        'Timeout(1m30s)',
        'Deadline(Sun Jan  2 03:04:05 UTC 2050)',
        'Unique(1h0m0s)',
        'ProcessIn(5s)',
        'Retention(24h0m0s)',
      ],
      next: scheduler.list()[0]!.next!.getTime(),
      prev: null,
    });
    expect(entries.find(({ type }) => type === 'never')).toMatchObject({ next: null, prev: null, options: null });
    await scheduler.stop();
    expect(await interop.go.schedulerEntries()).toEqual([]);
  });

  it('has a history that Go lists, and its tasks run on a Go server', async () => {
    const queue = interop.queue();
    await interop.serve(interop.go, queue, { behaviours: { tick: [{ do: 'ok' }] } });
    let id = '';
    start((one) => (id = one.register('@every 1s', 'tick', undefined, { queue })));
    const ran = await interop.go.event('start', { type: 'tick', queue });
    await interop.until(async () => {
      const events = await interop.go.enqueueEvents(id);
      expect(events.map(({ taskId }) => taskId)).toContain(ran.id);
    });
    await interop.until(async () => {
      const [entry] = (await interop.go.schedulerEntries()).filter((one) => one.id === id);
      expect(entry!.next! - entry!.prev!).toBe(1_000);
    });
  });
});

import { afterAll, beforeAll, expect, it } from 'vitest';
import type { LinkedRequest, Prerequisite } from '../../lib/broker/links.js';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { describeWithGo } from '../support/go.js';
import { request } from '../support/messages.js';
import { useInterop } from './fixture.js';

/** A Go server knows no links: what it ends must release what waits within this time, in milliseconds. */
const RELEASED_WITHIN = 5_000;

describeWithGo('Go and tasks that wait for tasks', () => {
  const interop = useInterop();
  let broker!: RedisBroker;

  beforeAll(async () => {
    broker = new RedisBroker(new RedisConnections({ url: interop.redis.url }));
    // A server of ours for another queue keeps the links of all.
    await interop.ours.serve({ queues: { keeping: 1 }, behaviours: { none: [{ do: 'ok' }] } });
  });
  afterAll(() => broker?.close());

  const deadline = Math.floor(Date.now() / 1000) + 86_400;

  const waiting = (id: string, queue: string, prerequisites: Prerequisite[]): LinkedRequest => ({
    ...request({ id, queue }),
    wait: {
      prerequisites,
      onFailure: 'cancel',
      onTimeout: 'archive',
      deadline,
    },
  });

  /** Task `a` in a queue of its own, and `b` in another that waits for it. */
  async function arrange(type: string): Promise<{ from: string; to: string }> {
    const [from, to] = [interop.queue(), interop.queue()];
    await broker.producer.enqueue(from, [request({ id: 'a', type, queue: from, maxRetry: 0 })]);
    await broker.links.watch(from, [{ id: 'a', waiting: { queue: to, id: 'b', n: 0, until: deadline } }]);
    await broker.links.enqueue(to, [waiting('b', to, [{ queue: from, id: 'a' }])]);
    return { from, to };
  }

  const stateOf = async (queue: string, id: string) => (await broker.inspection.getTask(queue, id))?.state;

  async function untilReleased(queue: string, state: string, since = performance.now()): Promise<void> {
    await interop.until(async () => expect(await stateOf(queue, 'b')).toBe(state));
    expect(performance.now() - since).toBeLessThan(RELEASED_WITHIN);
  }

  it('a task that a Go server runs releases what waits for it', async () => {
    const { from, to } = await arrange('ok');
    expect((await interop.go.taskInfo(to, 'b')).state).toBe('aggregating');
    expect((await interop.go.groups(to)) ?? []).toEqual([]);
    await interop.serve(interop.go, from, { behaviours: { ok: [{ do: 'ok' }] } });
    await interop.go.event('end', { id: 'a' });
    await untilReleased(to, 'pending');
    await interop.until(async () => expect(await stateOf(from, 'a')).toBeUndefined());
  });

  it('a task that fails on a Go server, and then succeeds, cancels and revives', async () => {
    const { from, to } = await arrange('flaky');
    const first = await interop.serve(interop.go, from, { behaviours: { flaky: [{ do: 'fail', error: 'boom' }] } });
    await interop.untilState(from, 'a', 'archived');
    await untilReleased(to, 'archived');
    await first.shutdown();
    await interop.serve(interop.go, from, { behaviours: { flaky: [{ do: 'ok' }] } });
    await interop.go.runTask(from, 'a');
    await untilReleased(to, 'pending');
  });

  it.each(['archived', 'deleted'] as const)('a prerequisite that is %s by asynq cancels what waits', async (how) => {
    const { from, to } = await arrange('t');
    if (how === 'archived') await interop.go.archiveTask(from, 'a');
    else await interop.go.deleteTask(from, 'a');
    await untilReleased(to, 'archived');
    expect((await interop.go.taskInfo(to, 'b')).lastErr).toContain('asynq: prerequisite failed: task "a"');
  });

  it('a waiting task is run, archived and deleted by asynq', async () => {
    const [run, archived, deleted] = [await arrange('t'), await arrange('t'), await arrange('t')];
    await interop.go.runTask(run.to, 'b');
    expect(await stateOf(run.to, 'b')).toBe('pending');
    await interop.go.archiveTask(archived.to, 'b');
    expect(await stateOf(archived.to, 'b')).toBe('archived');
    await interop.go.deleteTask(deleted.to, 'b');
    expect(await stateOf(deleted.to, 'b')).toBeUndefined();
    for (const { from, to } of [run, archived, deleted]) {
      const before = await stateOf(to, 'b');
      await interop.go.deleteTask(from, 'a');
      await interop.until(async () => expect(await interop.raw.exists(`asynq:{${from}}:links`)).toBe(0));
      expect(await stateOf(to, 'b')).toBe(before);
    }
  });
});

import { expect, it, onTestFinished } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { AsynqClient } from '../../lib/client/client.js';
import { defineTask } from '../../lib/task/definition.js';
import { workflow } from '../../lib/workflows/workflow.js';
import { describeWithGo } from '../support/go.js';
import type { PeerStep } from '../support/peer.js';
import { useInterop } from './fixture.js';

/** A step that a Go server ended releases what waits within this time. */
const RELEASE_MS = 5_000;

const OK: PeerStep[] = [{ do: 'ok' }];
const Pay = defineTask<string>('pay', { key: (order) => order, rememberFor: '1h' });
const Ship = defineTask<string>('ship', { key: (order) => order, after: Pay, onFailure: 'cancel' });
const Plain = defineTask<string>('plain');

describeWithGo('tasks that a Go server runs', () => {
  const interop = useInterop();

  /** Two queues: Go serves the first, we the second. */
  async function arrange(behaviours: Record<string, PeerStep[]>) {
    const { go, ours, redis } = interop;
    const [theirs, mine] = [interop.queue(), interop.queue()];
    await interop.serve(ours, mine, { behaviours: { ship: OK, plain: OK } });
    const server = await interop.serve(go, theirs, { behaviours });
    const broker = new RedisBroker(new RedisConnections({ host: redis.host, port: redis.port }));
    const client = new AsynqClient(broker);
    onTestFinished(() => client.close().then(() => broker.close()));
    /** Milliseconds from the end of a task on the Go server to the start of another on ours. */
    const gap = async (first: string, second: string): Promise<number> => {
      const [end, start] = await Promise.all([go.event('end', { id: first }), ours.event('start', { id: second })]);
      return start.at - end.at;
    };
    return { theirs, mine, client, server, gap };
  }

  it('release what waits for their key', async () => {
    const { theirs, mine, client, gap } = await arrange({ pay: OK });
    const ship = await client.enqueue(Ship, 'o1', { queue: mine });
    const pay = await client.enqueue(Pay, 'o1', { queue: theirs });
    expect(await gap(pay.id, ship.id)).toBeLessThan(RELEASE_MS);
    await interop.untilGone(theirs, pay.id); // kept for us only
  });

  it('release what waits for them alone', async () => {
    const { theirs, mine, client, gap } = await arrange({ plain: [{ do: 'ok', ms: 300 }] });
    // What Go has begun already would leave no trace of its end.
    const first = await client.enqueue(Plain, '1', { queue: theirs, processIn: '1s' });
    const second = await client.enqueue(Plain, '2', { queue: mine, after: first });
    expect(await gap(first.id, second.id)).toBeLessThan(RELEASE_MS);
  });

  it('leave no trace when Go had begun them before: they count as failed, or as the call says', async () => {
    const { go, ours } = interop;
    const { theirs, mine, client } = await arrange({ plain: [{ do: 'hold' }] });
    const first = await client.enqueue(Plain, '1', { queue: theirs });
    await go.event('start', { id: first.id });
    const [strict, lenient] = await Promise.all([
      client.enqueue(Plain, '2', { queue: mine, after: first }),
      client.enqueue(Plain, '3', { queue: mine, after: first, missing: 'succeeded' }),
    ]);
    await go.release(first.id);
    await ours.event('start', { id: lenient.id });
    expect((await interop.untilState(mine, strict.id, 'archived')).lastErr).toContain('nobody saw its end');
  });

  it('cancel what waits for them when they are archived, and revive it when Go runs them again', async () => {
    const { go } = interop;
    const { theirs, mine, client, server } = await arrange({ pay: [{ do: 'skipRetry', error: 'no funds' }] });
    const ship = await client.enqueue(Ship, 'o2', { queue: mine });
    const pay = await client.enqueue(Pay, 'o2', { queue: theirs });
    await interop.untilState(theirs, pay.id, 'archived');
    const cancelled = await interop.untilState(mine, ship.id, 'archived');
    expect(cancelled.lastErr).toContain('prerequisite failed');
    await server.shutdown();
    await interop.serve(go, theirs, { behaviours: { pay: OK } });
    await go.runTask(theirs, pay.id);
    await interop.ours.event('start', { id: ship.id });
  });

  it('are steps of a run, with their results', async () => {
    const { theirs, mine, client } = await arrange({ plain: [{ do: 'ok', result: Buffer.from('"by Go"') }] });
    const flow = workflow('mixed')
      .add('go', Plain, '1', { options: { queue: theirs } })
      .add('ours', Plain, '2', { after: 'go', options: { queue: mine } });
    const run = await client.start(flow, { id: theirs, queue: mine });
    const { state, steps } = await run.done({ timeout: '20s' });
    expect(state).toBe('succeeded');
    expect(steps.go).toMatchObject({ state: 'succeeded', result: 'by Go' });
  });

  it('may be deleted with its inspector: what waits has an end', async () => {
    const { go } = interop;
    const { theirs, mine, client } = await arrange({ pay: [{ do: 'hold' }] });
    const ship = await client.enqueue(Ship, 'o3', { queue: mine });
    const pay = await client.enqueue(Pay, 'o3', { queue: theirs, processIn: '1h' });
    await go.deleteTask(theirs, pay.id);
    expect((await interop.untilState(mine, ship.id, 'archived')).lastErr).toContain('deleted');
  });

  it('see a waiting task as one of a group, which they may run, archive and delete', async () => {
    const { go, ours } = interop;
    const { mine, client } = await arrange({});
    const [run, archived, deleted] = await Promise.all(
      ['r', 'a', 'd'].map((order) => client.enqueue(Ship, order, { queue: mine })),
    );
    expect((await go.taskInfo(mine, run!.id)).state).toBe('aggregating');
    await go.runTask(mine, run!.id);
    await ours.event('start', { id: run!.id });
    await go.archiveTask(mine, archived!.id);
    await interop.untilState(mine, archived!.id, 'archived');
    await go.deleteTask(mine, deleted!.id);
    await interop.untilGone(mine, deleted!.id);
  });
});

import { expect, it } from 'vitest';

import { describeWithGo } from '../support/go.js';
import type { GoState, GoTask } from '../support/go-peer.js';
import type { Peer, PeerStep } from '../support/peer.js';
import { useInterop } from './fixture.js';

const HOUR = 3_600_000;
const STATES: GoState[] = ['pending', 'active', 'scheduled', 'retry', 'archived', 'completed', 'aggregating'];

const BEHAVIOURS: Record<string, PeerStep[]> = {
  done: [{ do: 'ok' }],
  kept: [{ do: 'ok', result: Buffer.from([0, 200, 10]) }],
  flaky: [{ do: 'fail', error: 'once' }, { do: 'ok' }],
  waiting: [{ do: 'fail', error: 'later' }],
  dead: [{ do: 'fail', error: 'never' }],
  revoked: [{ do: 'revoke', error: 'obsolete' }],
  running: [{ do: 'hold' }],
};

describeWithGo('one history, told by Go and by us', () => {
  const interop = useInterop();

  /** Leaves a task in every state, its id being its type, and some that are gone. All of it is the peer's work. */
  const live = async (peer: Peer, queue: string): Promise<void> => {
    const options = { queue, payload: Buffer.from([255, 0, 1]), headers: { origin: 'here' }, timeout: 2 * HOUR };
    const enqueue = (id: string, more: object) =>
      peer.enqueue({ ...options, ...more, type: id, taskId: `${id} ${queue}` });
    const server = await interop.serve(peer, queue, { retryDelay: 0, behaviours: BEHAVIOURS });
    await enqueue('done', { unique: HOUR });
    await enqueue('kept', { retention: HOUR, unique: HOUR });
    await enqueue('flaky', { retention: 0 });
    await enqueue('dead', { maxRetry: 2, unique: HOUR });
    await enqueue('revoked', { retention: HOUR });
    await interop.untilState(queue, `dead ${queue}`, 'archived');
    await interop.untilState(queue, `kept ${queue}`, 'completed');
    for (const id of ['done', 'flaky', 'revoked']) await interop.untilGone(queue, `${id} ${queue}`);
    await server.shutdown();

    const patient = await interop.serve(peer, queue, { retryDelay: HOUR, behaviours: BEHAVIOURS });
    await enqueue('waiting', { maxRetry: 3 });
    await enqueue('running', {});
    await peer.event('start', { id: `running ${queue}` });
    await interop.untilState(queue, `waiting ${queue}`, 'retry');
    await patient.stop();
    await enqueue('fresh', { unique: HOUR, deadline: Date.UTC(2100, 0) });
    await enqueue('planned', { processIn: HOUR, unique: HOUR });
    await enqueue('grouped', { group: 'g' });
  };

  /** Everything about a task but the time of day. */
  const timeless = (queue: string, task: GoTask) => ({
    ...task,
    id: task.id.replaceAll(queue, 'Q'),
    queue: task.queue.replaceAll(queue, 'Q'),
    lastFailedAt: task.lastFailedAt !== null,
    nextProcessAt: task.nextProcessAt !== null,
    completedAt: task.completedAt !== null,
  });

  const inspect = async (queue: string) => {
    const { memoryUsage, latency, ...counts } = await interop.go.queueInfo(queue);
    expect(memoryUsage).toBeGreaterThan(0);
    expect(latency).toBeGreaterThan(0);
    expect(latency).toBeLessThan(60_000);
    const lists = await Promise.all(STATES.map((state) => interop.go.list(queue, state, 'g')));
    const tasks = lists.flat().map((task) => timeless(queue, task));
    return { counts, tasks, history: await interop.go.history(queue, 2) };
  };

  /** Names, types and expiry of all keys, and the fields of all hashes but those for the history of attempts, which Go does not keep. */
  const keysOf = async (queue: string): Promise<string[]> => {
    const keys = await interop.raw.keys(`asynq:{${queue}}:*`);
    const lines = keys.map(async (key) => {
      const [type, ttl] = [await interop.raw.type(key), await interop.raw.ttl(key)];
      const fields =
        type === 'hash' ? (await interop.raw.hkeys(key)).filter((field) => !field.startsWith('attempt:')).sort() : [];
      return `${key.replaceAll(queue, 'Q')} ${type} ${ttl > 0 ? 'expires' : ''} ${fields}`;
    });
    return (await Promise.all(lines)).sort();
  };

  it('looks the same to the inspector of Go, and in Redis', async () => {
    const [theirs, ours] = [interop.queue(), interop.queue()];
    await Promise.all([live(interop.go, theirs), live(interop.ours, ours)]);
    const expected = await inspect(theirs);
    expect(expected.counts).toMatchObject({ size: 7, processed: 9, failed: 5, processedTotal: 9, failedTotal: 5 });
    expect(expected.tasks.map(({ state }) => state)).toEqual(STATES);
    expect(await inspect(ours)).toEqual(expected);
    expect(await keysOf(ours)).toEqual(await keysOf(theirs));
  });
});

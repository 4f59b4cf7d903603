import { describe, expect, it } from 'vitest';

import { describeWithGo } from '../support/go.js';
import type { PeerStep } from '../support/peer.js';
import { base64, PAIRS, useInterop } from './fixture.js';

const EVERY_BYTE = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));

describeWithGo('one side enqueues, one side runs', () => {
  const interop = useInterop();

  describe.each(PAIRS)('%s to %s', (producer, worker) => {
    const sides = () => ({ client: interop[producer], server: interop[worker], queue: interop.queue() });
    const OK: PeerStep[] = [{ do: 'ok' }];

    it('hands over type, payload and headers as they are', async () => {
      const { client, server, queue } = sides();
      const headers = { 'trace-id': 'é😀', empty: '', 'with:colon': 'a b' };
      const { id } = await client.enqueue({ type: 'email:send', payload: EVERY_BYTE, headers, queue, maxRetry: 7 });
      await interop.serve(server, queue, { behaviours: { 'email:send': OK } });
      const start = await server.event('start', { id });
      expect(start).toMatchObject({ type: 'email:send', queue, headers, retried: 0, maxRetry: 7 });
      expect(start.payload).toBe(EVERY_BYTE.toString('base64'));
      await interop.untilGone(queue, id);
      expect(await interop.go.queueInfo(queue)).toMatchObject({ size: 0, processed: 1, failed: 0 });
    });

    it('hands over a task without payload and headers', async () => {
      const { client, server, queue } = sides();
      const { id } = await client.enqueue({ type: 'bare', queue });
      await interop.serve(server, queue, { behaviours: { bare: OK } });
      const start = await server.event('start', { id });
      expect([start.payload ?? '', start.headers ?? {}]).toEqual(['', {}]);
      await interop.untilGone(queue, id);
    });

    it('gives a task to the longest matching pattern', async () => {
      const { client, server, queue } = sides();
      const { id } = await client.enqueue({ type: 'img:resize:large', queue, retention: 60_000 });
      const result = (text: string): PeerStep[] => [{ do: 'ok', result: Buffer.from(text) }];
      await interop.serve(server, queue, { behaviours: { img: result('img'), 'img:resize': result('img:resize') } });
      expect((await interop.untilState(queue, id, 'completed')).result).toBe(base64('img:resize'));
    });

    it('keeps a task with retention and its result', async () => {
      const { client, server, queue } = sides();
      const before = Math.floor(Date.now() / 1000) * 1000;
      const { id } = await client.enqueue({ type: 'kept', queue, retention: 90_000 });
      await interop.serve(server, queue, { behaviours: { kept: [{ do: 'ok', result: EVERY_BYTE }] } });
      const task = await interop.untilState(queue, id, 'completed');
      expect(task).toMatchObject({ retention: 90_000, result: EVERY_BYTE.toString('base64'), lastErr: '' });
      expect(task.completedAt).toBeGreaterThanOrEqual(before);
      const expiry = Number(await interop.raw.zscore(`asynq:{${queue}}:completed`, id));
      expect(expiry * 1000 - task.completedAt!).toBe(90_000);
    });

    it('runs a scheduled task when it is due', async () => {
      const { client, server, queue } = sides();
      const processAt = Date.now() + 1200;
      const { id, state } = await client.enqueue({ type: 'later', queue, processAt });
      expect(state).toBe('scheduled');
      const [listed] = await interop.go.list(queue, 'scheduled');
      expect(listed).toMatchObject({ id, state: 'scheduled' });
      expect(Math.abs(listed!.nextProcessAt! - processAt)).toBeLessThan(1000);
      await interop.serve(server, queue, { behaviours: { later: OK } });
      expect((await server.event('start', { id })).at).toBeGreaterThanOrEqual(listed!.nextProcessAt!);
      await interop.untilGone(queue, id);
    });

    it('retries, counting, until it succeeds', async () => {
      const { client, server, queue } = sides();
      const { id } = await client.enqueue({ type: 'flaky', queue, maxRetry: 5, retention: 60_000 });
      const fail = (error: string): PeerStep => ({ do: 'fail', error });
      await interop.serve(server, queue, { behaviours: { flaky: [fail('first'), fail('second ü'), { do: 'ok' }] } });
      const task = await interop.untilState(queue, id, 'completed');
      expect(task).toMatchObject({ retried: 2, maxRetry: 5, lastErr: 'second ü' });
      expect(server.seen('start', { id }).map(({ retried }) => retried)).toEqual([0, 1, 2]);
      expect(await interop.go.queueInfo(queue)).toMatchObject({ processed: 3, failed: 2, completed: 1, retry: 0 });
    });

    it('waits for the retry delay, and shows the task meanwhile', async () => {
      const { client, server, queue } = sides();
      const { id } = await client.enqueue({ type: 'wait', queue, payload: EVERY_BYTE, headers: { k: 'v' } });
      const before = Date.now();
      await interop.serve(server, queue, {
        retryDelay: 3_600_000,
        behaviours: { wait: [{ do: 'fail', error: 'no' }] },
      });
      const task = await interop.untilState(queue, id, 'retry');
      expect(task).toMatchObject({
        retried: 1,
        maxRetry: 25,
        lastErr: 'no',
        payload: base64(EVERY_BYTE),
        headers: { k: 'v' },
      });
      expect(task.lastFailedAt).toBeGreaterThanOrEqual(before - 1000);
      expect(Math.abs(task.nextProcessAt! - before - 3_600_000)).toBeLessThan(10_000);
    });

    it('archives a task that has used up its retries', async () => {
      const { client, server, queue } = sides();
      const { id } = await client.enqueue({ type: 'hopeless', queue, maxRetry: 1 });
      await interop.serve(server, queue, { behaviours: { hopeless: [{ do: 'fail', error: 'broken' }] } });
      const task = await interop.untilState(queue, id, 'archived');
      expect(task).toMatchObject({ retried: 1, maxRetry: 1, lastErr: 'broken' });
      expect(await interop.go.queueInfo(queue)).toMatchObject({ processed: 2, failed: 2, archived: 1 });
    });

    it('archives a task at once when the handler says so', async () => {
      const { client, server, queue } = sides();
      const { id } = await client.enqueue({ type: 'refused', queue });
      await interop.serve(server, queue, { behaviours: { refused: [{ do: 'skipRetry', error: 'bad input' }] } });
      const task = await interop.untilState(queue, id, 'archived');
      expect(task).toMatchObject({ retried: 0, maxRetry: 25 });
      expect(task.lastErr).toContain('bad input');
    });

    it('drops a revoked task, even one with retention', async () => {
      const { client, server, queue } = sides();
      const { id } = await client.enqueue({ type: 'revoked', queue, retention: 60_000 });
      await interop.serve(server, queue, { behaviours: { revoked: [{ do: 'revoke', error: 'obsolete' }] } });
      await interop.untilGone(queue, id);
      expect(await interop.go.queueInfo(queue)).toMatchObject({ size: 0, processed: 1, failed: 0 });
    });

    it('survives a handler that blows up', async () => {
      const { client, server, queue } = sides();
      const { id } = await client.enqueue({ type: 'explosive', queue, maxRetry: 0 });
      await interop.serve(server, queue, { behaviours: { explosive: [{ do: 'panic', error: 'boom' }] } });
      expect((await interop.untilState(queue, id, 'archived')).lastErr).toContain('boom');
    });

    it('retries a type nobody handles, with the text of asynq', async () => {
      const { client, server, queue } = sides();
      const { id } = await client.enqueue({ type: 'orphan', queue });
      await interop.serve(server, queue, { retryDelay: 3_600_000, behaviours: { known: OK } });
      const task = await interop.untilState(queue, id, 'retry');
      expect(task).toMatchObject({ retried: 1, lastErr: 'handler not found for task "orphan"' });
    });

    it('ends an attempt at its timeout', async () => {
      const { client, server, queue } = sides();
      const { id } = await client.enqueue({ type: 'slow', queue, timeout: 1000, maxRetry: 0 });
      await interop.serve(server, queue, { behaviours: { slow: [{ do: 'hang' }] } });
      const start = await server.event('start', { id });
      expect(start.deadline! - start.at).toBeGreaterThan(0);
      expect(start.deadline! - start.at).toBeLessThanOrEqual(1000);
      expect(await interop.untilState(queue, id, 'archived')).toMatchObject({
        timeout: 1000,
        lastErr: 'context deadline exceeded',
      });
      expect((await server.event('end', { id })).error).toBe('context deadline exceeded');
    });

    it('keeps to the earlier of timeout and deadline', async () => {
      const { client, server, queue } = sides();
      const deadline = (Math.floor(Date.now() / 1000) + 600) * 1000;
      const { id } = await client.enqueue({ type: 'both', queue, timeout: 3_600_000, deadline });
      expect(await interop.go.taskInfo(queue, id)).toMatchObject({ timeout: 3_600_000, deadline });
      await interop.serve(server, queue, { behaviours: { both: OK } });
      expect((await server.event('start', { id })).deadline).toBe(deadline);
      await interop.untilGone(queue, id);
    });

    it('does not call the handler of a task that is too late', async () => {
      const { client, server, queue } = sides();
      const deadline = (Math.floor(Date.now() / 1000) - 10) * 1000;
      const { id } = await client.enqueue({ type: 'late', queue, deadline, maxRetry: 0 });
      await interop.serve(server, queue, { behaviours: { late: OK } });
      expect((await interop.untilState(queue, id, 'archived')).lastErr).toBe('context deadline exceeded');
      expect(server.seen('start', { id })).toEqual([]);
    });

    it('leaves a group to its aggregator', async () => {
      const { client, server, queue } = sides();
      const { id, state } = await client.enqueue({ type: 'grouped', queue, group: 'g:1', payload: EVERY_BYTE });
      expect(state).toBe('aggregating');
      const next = await client.enqueue({ type: 'ordinary', queue });
      await interop.serve(server, queue, { behaviours: { grouped: OK, ordinary: OK } });
      await interop.untilGone(queue, next.id);
      const [waiting] = await interop.go.list(queue, 'aggregating', 'g:1');
      expect(waiting).toMatchObject({ id, group: 'g:1', state: 'aggregating', payload: base64(EVERY_BYTE) });
      expect(await interop.go.queueInfo(queue)).toMatchObject({ aggregating: 1, groups: 1, size: 1 });
      expect(server.seen('start', { id })).toEqual([]);
    });

    it("runs a group task that was scheduled, too, by itself where Go's client made it, and else sends it to its group", async () => {
      const { client, server, queue } = sides();
      const { id, state } = await client.enqueue({ type: 'both', queue, group: 'g', processIn: 3_600_000 });
      expect(state).toBe('scheduled');
      await interop.makeDue(queue, 'scheduled');
      await interop.serve(server, queue, { behaviours: { both: OK } });
      if (producer === 'go') {
        await server.event('start', { id });
        await interop.untilGone(queue, id);
      } else {
        expect(await interop.untilState(queue, id, 'aggregating')).toMatchObject({ group: 'g' });
      }
    });

    it('gives a group task that was run by hand and failed back to its group', async () => {
      const { client, server, queue } = sides();
      const { id } = await client.enqueue({ type: 'grouped', queue, group: 'g' });
      const { id: other } = await client.enqueue({ type: 'grouped', queue, group: 'g' });
      await interop.go.runTask(queue, id);
      await interop.serve(server, queue, { behaviours: { grouped: [{ do: 'fail', error: 'alone' }] } });
      await server.event('end', { id });
      expect(await interop.untilState(queue, id, 'aggregating')).toMatchObject({ retried: 1, lastErr: 'alone' });
      const waiting = await interop.go.list(queue, 'aggregating', 'g');
      expect(waiting.map((task) => task.id).sort()).toEqual([id, other].sort());
    });
  });
});

import type { InMemoryBroker } from 'nestjs-asynq/testing';
import { describe, expect, it, test } from 'vitest';
import { arrangeEveryState } from '../../../support/every-state.js';
import { request } from '../../../support/messages.js';
import { PLATFORMS, startConsole } from '../../console.js';
import { target } from './attacker.js';

/* Senders without a role, or with too low a role. */

describe('access, attacked', () => {
  describe.each(PLATFORMS)('on %s', (platform) => {
    const attacked = target(platform);
    const { as } = attacked;

    it.each(['/asynq/', '/asynq/assets/x.js', '/asynq/api/queues', '/asynq/api/nothing'])(
      'refuses %s to nobody',
      async (path) => {
        const { status, text } = await attacked.web.raw('GET', path);
        expect([status, text]).toEqual([403, expect.stringContaining('you have no access to this dashboard')]);
      },
    );

    it.each([
      ['view', 'POST', 'queues/default:pause'],
      ['view', 'POST', 'queues/default/archived_tasks/archived:run'],
      ['view', 'POST', 'queues/default/tasks'],
      ['view', 'DELETE', 'queues/default'],
      ['view', 'GET', 'redis_info'],
      ['act', 'DELETE', 'queues/default?force=true'],
      ['act', 'DELETE', 'queues/default/archived_tasks/archived'],
      ['act', 'DELETE', 'queues/default/tasks/archived'],
      ['act', 'DELETE', 'queues/default/archived_tasks:delete_all'],
      ['act', 'POST', 'queues/default/archived_tasks:batch_delete'],
      ['act', 'DELETE', 'queues/default/groups/g/aggregating_tasks:delete_all'],
    ])('the role %s may not %s %s', async (role, method, path) => {
      const { status, headers } = await as(role, method, path);
      expect([status, headers['x-asynq-error']]).toEqual([403, 'FORBIDDEN']);
      expect(await attacked.web.broker.inspection.getTask('default', 'archived')).toMatchObject({ state: 'archived' });
    });

    it('the role act may see the state of Redis', async () => {
      expect(await as('act', 'GET', 'redis_info')).toMatchObject({ status: 200 });
    });

    it('treats a cancellation with the outcome delete as a deletion', async () => {
      const cancel = (outcome: string) => as('act', 'POST', 'queues/default/tasks/active:cancel', { outcome });
      expect(await cancel('delete')).toMatchObject({ status: 403 });
      expect(await cancel('archive')).toMatchObject({ status: 204 });
    });

    it('a role without destroy cannot make the archive delete tasks', async () => {
      const { broker } = attacked.web;
      const junk = (n: number) => Array.from({ length: n }, (_, i) => request({ queue: 'full', id: `junk${i}` }));
      await broker.producer.enqueue('full', [request({ queue: 'full', id: 'evidence' }), ...junk(5_000)]);
      expect(await broker.administration.moveTasks('full', 'archive', ['evidence'])).toEqual(['moved']);
      // None of these tasks is created, because each could fail into the archive.
      const create = [
        ['queues/full/tasks', { type: 'junk', max_retry: 0 }],
        ['queues/default/tasks/archived:clone', { queue: 'full' }],
        ['queues/full/tasks/evidence:clone', {}],
      ] as const;
      for (const [path, body] of create) {
        const { status, text } = await as('act', 'POST', path, body);
        expect([status, text], path).toEqual([403, expect.stringContaining('could make the archive delete tasks')]);
      }
      expect(await as('act', 'POST', 'queues/full/pending_tasks:archive_all')).toMatchObject({
        status: 409,
        headers: { 'x-asynq-error': 'ASYNQ_ARCHIVE_FULL' },
        text: expect.stringContaining('4,999 were archived before that'),
      });
      expect(await as('act', 'POST', 'queues/full/tasks/junk4999:archive')).toMatchObject({ status: 409 });
      const batch = await as('act', 'POST', 'queues/full/pending_tasks:batch_archive', { task_ids: ['junk4999'] });
      expect(JSON.parse(batch.text)).toEqual({ archived_ids: [], error_ids: ['junk4999'] });
      const cancel = { outcome: 'archive' };
      expect(await as('act', 'POST', 'queues/full/tasks/x:cancel', cancel)).toMatchObject({ status: 403 });
      expect(await as('act', 'POST', 'queues/full/active_tasks:cancel_all', cancel)).toMatchObject({ status: 403 });
      expect(await broker.inspection.getTask('full', 'evidence')).toMatchObject({ state: 'archived' });
      expect(await as('destroy', 'POST', 'queues/full/tasks/junk4999:archive')).toMatchObject({ status: 204 });
      expect(await as('destroy', 'POST', 'queues/full/tasks', { type: 'x' })).toMatchObject({ status: 201 });

      // A cancellation reaches the tasks of an id in every queue.
      for (const queue of ['full', 'beside']) {
        await broker.producer.enqueue(queue, [request({ queue, id: 'twin' })]);
        await broker.consumer.exchange(queue, { settle: [], take: 5 });
      }
      const twin = (role: string) => as(role, 'POST', 'queues/beside/tasks/twin:cancel', cancel);
      expect(await twin('act')).toMatchObject({ status: 409, headers: { 'x-asynq-error': 'ELSEWHERE' } });
      expect(await as('act', 'POST', 'queues/beside/tasks/nobody:cancel', cancel)).toMatchObject({ status: 404 });
      expect(await twin('destroy')).toMatchObject({ status: 204 });
    });

    it('a role that may not delete does not trim the archive', async () => {
      const clock = (attacked.web.broker as InMemoryBroker).clock;
      await attacked.web.broker.producer.enqueue(
        'old',
        ['a', 'b', 'c'].map((id) => request({ queue: 'old', id })),
      );
      await as('act', 'POST', 'queues/old/tasks/a:archive');
      clock.advance(91 * 86_400_000);
      expect(await as('act', 'POST', 'queues/old/tasks/b:archive')).toMatchObject({ status: 204 });
      expect(await attacked.web.broker.inspection.getTask('old', 'a')).toMatchObject({ state: 'archived' });
      await as('destroy', 'POST', 'queues/old/tasks/c:archive');
      expect(await attacked.web.broker.inspection.getTask('old', 'a')).toBeUndefined();
    });

    it('denies access when the access function fails or returns something wrong', async () => {
      const { status, text } = await as('broken', 'GET', 'queues');
      expect([status, text]).toEqual([500, "this did not work; the application's log says why\n"]);
    });

    it('offers only what the role may do', async () => {
      const actions = async (role: string) =>
        JSON.parse((await as(role, 'GET', 'queues/default/tasks/archived')).text).actions as string[];
      expect(await actions('view')).toEqual([]);
      expect(await actions('act')).toEqual(['run', 'reschedule', 'edit', 'clone']);
      expect(await actions('destroy')).toEqual(['run', 'delete', 'reschedule', 'edit', 'clone']);
    });
  });

  test('read-only mode refuses every change, whatever the role', async () => {
    const web = await startConsole({ access: 'destroy', readOnly: true });
    await arrangeEveryState(web.broker);
    for (const [method, path] of [
      ['POST', 'queues/default:pause'],
      ['DELETE', 'queues/default'],
      ['POST', 'nothing'],
    ] as const) {
      const { status, text, headers } = await web.api(method, path);
      expect([status, headers['x-asynq-error']]).toEqual([405, 'READ_ONLY']);
      expect(text).toBe(`API Server is running in read-only mode: ${method} request is not allowed\n`);
    }
    expect(await web.get('config')).toMatchObject({ read_only: true });
    expect(await web.get('queues/default/tasks/archived')).toMatchObject({ actions: [] });
    await web.close();
  });
});

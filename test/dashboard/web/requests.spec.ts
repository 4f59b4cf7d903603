import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ApiError } from '../../../lib/dashboard/web/api/client.js';
import { api } from '../../../lib/dashboard/web/api/endpoints.js';

describe('a name of dots', () => {
  const asked: string[] = [];
  beforeEach(() => {
    vi.stubGlobal('fetch', async (url: string) => {
      asked.push(new URL(url, 'http://host/asynq/').pathname);
      return new Response('{}');
    });
  });
  afterEach(() => {
    asked.length = 0;
    vi.unstubAllGlobals();
  });

  it.each([
    ['a task', '.', () => api.task('default', '.')],
    ['a task', '..', () => api.remove({ queue: 'default', id: '..', state: 'pending' })],
    ['a queue', '..', () => api.queue('..', 30)],
    ['a queue', '.', () => api.deleteQueue('.', true)],
    ['a group', '.', () => api.list({ queue: 'default', state: 'aggregating', group: '.' }, { size: 20 })],
  ])('of %s is not sent, as %s is a step in the path', async (_, name, ask) => {
    const refusal = await (ask() as Promise<unknown>).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ApiError);
    expect(refusal).toMatchObject({ status: 400, message: expect.stringContaining(`named “${name}”`) });
    expect(asked).toEqual([]);
  });

  it('is allowed as a part of a segment', async () => {
    await api.task('a.b', '...');
    await api.run({ queue: 'default', id: '..', state: 'archived' });
    await api.list({ queue: 'default', state: 'pending' }, { payload: '/../' });
    expect(asked).toEqual([
      '/asynq/api/queues/a.b/tasks/...',
      '/asynq/api/queues/default/tasks/..:run',
      '/asynq/api/queues/default/pending_tasks',
    ]);
  });
});

import type { AsynqDashboardOptions } from 'nestjs-asynq/dashboard';
import type { InMemoryBroker } from 'nestjs-asynq/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { arrangeAttempts } from '../support/attempts.js';
import { startConsole } from './console.js';

interface Shown {
  readonly attempts: readonly Record<string, unknown>[];
  readonly total: number;
}

const open = async (dashboard: AsynqDashboardOptions = {}) => {
  const web = await startConsole({ access: 'view', ...dashboard });
  onTestFinished(() => web.close());
  return { web, broker: web.broker as InMemoryBroker };
};

describe('the attempts of a task in the REST API', () => {
  it('say when, where and how long each ran, and how it failed', async () => {
    const { web, broker } = await open();
    const now = broker.clock.now();
    const id = await arrangeAttempts(broker);
    const { attempts, total } = await web.get<Shown>(`queues/default/tasks/${id}/attempts`);
    expect(total).toBe(5);
    expect(attempts).toEqual([
      {
        number: 3,
        outcome: 'failed',
        started_at: expect.stringMatching(/Z$/) as string,
        ended_at: expect.stringMatching(/Z$/) as string,
        duration_seconds: 1.5,
        server: 'web-1:4242:018bcfe5-687b-7abc-8abc-0123456789ab',
        error: 'no parcel',
        stack: expect.stringMatching(/^Error: no parcel\nat ship .*\ncaused by: TypeError/) as string,
      },
      expect.objectContaining({ number: 4, duration_seconds: 0, error: 'no <b>box</b>', stack: null }),
      expect.objectContaining({ number: 5, outcome: 'crashed', started_at: null, duration_seconds: null }),
    ]);
    expect(Date.parse(attempts[0]!['started_at'] as string)).toBe(Math.floor(now) - 61_500);
    const task = await web.get<{ enqueued_at: string }>(`queues/default/tasks/${id}`);
    expect(Date.parse(task.enqueued_at)).toBe(Math.floor(now));
    const { tasks } = await web.get<{ tasks: { enqueued_at: string }[] }>('queues/default/retry_tasks');
    expect(tasks.map(({ enqueued_at }) => enqueued_at)).toEqual([task.enqueued_at]);
  });

  it('are none of a task that has not failed, and not found for no task', async () => {
    const { web } = await open();
    await web.client.enqueue('order', {}, { taskId: 'order-17' });
    expect(await web.get('queues/default/tasks/order-17/attempts')).toEqual({ attempts: [], total: 0 });
    expect(await web.get('queues/default/tasks/order-17')).toMatchObject({ enqueued_at: null });
    expect(await web.api('GET', 'queues/default/tasks/none/attempts')).toMatchObject({ status: 404 });
    expect(await web.api('GET', 'queues/nowhere/tasks/order-17/attempts')).toMatchObject({ status: 404 });
  });

  it('show neither error nor stack where the rules hide errors', async () => {
    const { web, broker } = await open({ redact: [{ type: 'user:', fields: ['password'] }] });
    const secret = await arrangeAttempts(broker, { type: 'user:created' });
    const hidden = await web.get<Shown>(`queues/default/tasks/${secret}/attempts`);
    expect(hidden.attempts.map(({ error, stack }) => [error, stack])).toEqual([
      ['[redacted]', null],
      ['[redacted]', null],
      ['[redacted]', null],
    ]);
    expect(JSON.stringify(hidden)).not.toContain('parcel');
    const plain = await arrangeAttempts(broker, { id: 'other' });
    const shown = await web.get<Shown>(`queues/default/tasks/${plain}/attempts`);
    expect(shown.attempts[0]).toMatchObject({ error: 'no parcel' });
  });
});

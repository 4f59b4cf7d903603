import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { InMemoryBroker } from 'nestjs-asynq/testing';
import type { LeasedTask } from '../../lib/broker/broker.js';
import { defineTask } from '../../lib/task/definition.js';
import { arrangeWaiting } from '../support/every-state.js';
import { startConsole, type TestConsole } from './console.js';

interface Order {
  orderId: string;
  card?: string;
}

const key = ({ orderId }: Order): string => orderId;
const Capture = defineTask<Order>('payment:capture', { key, rememberFor: '1d', processIn: '1h', queue: 'payments' });
const Ship = defineTask<Order>('order:ship', { key, after: Capture, waitAtMost: '2h' });

interface ShownTask {
  state: string;
  error_message: string;
  waits: {
    until: string | null;
    cancelled: boolean;
    prerequisites: { reason: string; key: string | null; state: string }[];
  } | null;
  actions: string[];
}

describe('a waiting task in the API', () => {
  let web: TestConsole;
  const show = (id: string): Promise<ShownTask> => web.get<ShownTask>(`queues/default/tasks/${id}`);

  beforeAll(async () => {
    web = await startConsole({ access: 'destroy' });
  });
  beforeEach(() => (web.broker as InMemoryBroker).clear());
  afterAll(() => web.close());

  it('is counted and listed, with the end of its wait', async () => {
    await arrangeWaiting(web.broker);
    expect(await web.get('queues/default')).toMatchObject({ current: { waiting: 1, aggregating: 0, size: 1 } });
    expect(await web.get('queues/default/waiting_tasks')).toMatchObject({
      tasks: [{ id: 'waiting', state: 'waiting', group: '', next_process_at: expect.any(String) as string }],
      stats: { waiting: 1 },
    });
  });

  it('shows what it waits for, and what it was cancelled for', async () => {
    const ship = await web.client.enqueue(Ship, { orderId: '7' });
    const waiting = await show(ship.id);
    expect(waiting).toMatchObject({
      state: 'waiting',
      actions: ['run', 'archive', 'delete', 'edit', 'clone'],
      waits: {
        prerequisites: [
          { queue: null, id: null, type: 'payment:capture', key: '7', state: 'waiting', reason: '', paused: false },
        ],
        on_failure: 'cancel',
        on_timeout: 'archive',
        until: ship.nextProcessAt!.toISOString().replace('.000Z', 'Z'),
        cancelled: false,
      },
    });
    const capture = await web.client.enqueue(Capture, { orderId: '7' });
    const archived = await web.api('POST', `queues/payments/tasks/${capture.id}:archive`);
    expect(archived.status).toBeLessThan(300);
    const cancelled = await show(ship.id);
    expect(cancelled).toMatchObject({
      state: 'archived',
      waits: { cancelled: true, until: null, prerequisites: [{ state: 'failed', key: '7' }] },
    });
    expect(cancelled.waits!.prerequisites[0]!.reason).not.toBe('');
    expect(cancelled.error_message).toContain('payment:capture "7"');
    expect((await web.get<ShownTask>(`queues/payments/tasks/${capture.id}`)).waits).toBeNull();
  });
});

describe('a waiting task of others with hidden errors', () => {
  it('quotes no error, and no key of a hidden payload', async () => {
    const redact = [{ type: 'payment:' }, { type: 'order:ship', errors: 'show' as const }];
    const web = await startConsole({ access: 'destroy', redact });
    onTestFinished(() => web.close());
    const { broker, client } = web;
    const ship = await client.enqueue(Ship, { orderId: '7' });
    const { id } = await client.enqueue(Capture, { orderId: '7' }, { processIn: 0, maxRetry: 0 });
    const { tasks } = await broker.consumer.exchange('payments', { settle: [], take: 1 });
    expect(tasks[0]!.lease.id).toBe(id);
    const [{ lease, message }] = tasks as [LeasedTask];
    const failed = { ...message, errorMsg: 'card 4242 refused' };
    await broker.consumer.exchange('payments', { settle: [{ kind: 'archive', lease, message: failed }], take: 0 });
    const text = JSON.stringify(await web.get(`queues/default/tasks/${ship.id}`));
    expect(text).not.toContain('4242');
    const shown = JSON.parse(text) as ShownTask;
    expect(shown.error_message).toBe('asynq: prerequisite failed: payment:capture "7": [redacted]');
    expect(shown.waits).toMatchObject({ cancelled: true, prerequisites: [{ key: null, reason: '[redacted]' }] });
    expect(JSON.stringify(await web.get('queues/default/archived_tasks'))).not.toContain('4242');
    expect(JSON.stringify(await web.get('queues/default/failures'))).not.toContain('4242');
  });
});

import type { InMemoryBroker } from 'nestjs-asynq/testing';
import type { AsynqDashboardOptions } from 'nestjs-asynq/dashboard';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startConsole } from './console.js';
import { arrangeSteps, arrangeSuspended } from '../support/handler-steps.js';

interface Shown {
  readonly steps: readonly Record<string, unknown>[];
  readonly total: number;
  readonly signals: readonly object[];
  readonly undoing: object | null;
}

const open = async (dashboard: AsynqDashboardOptions = {}) => {
  const web = await startConsole({ access: 'act', ...dashboard });
  onTestFinished(() => web.close());
  const broker = web.broker as InMemoryBroker;
  const steps = (query = '', headers = {}): Promise<Shown> => {
    broker.clock.advance(5_000); // the reply is cached
    return web.get<Shown>(`queues/default/tasks/order-17/steps${query}`, headers);
  };
  const send = (body: unknown, headers = {}, id = 'order-17', queue = 'default') =>
    web.api('POST', `queues/${queue}/tasks/${id}:signal`, body, headers);
  return { web, broker, steps, send };
};

describe('the steps of a task in the REST API', () => {
  it('are shown with their states, and page by page', async () => {
    const { broker, steps } = await open();
    await arrangeSteps(broker);
    const { steps: found, ...rest } = await steps();
    expect(found).toHaveLength(6);
    expect(found.slice(0, 3)).toEqual([
      {
        name: 'capture',
        kind: 'run',
        state: 'undone',
        started_at: expect.stringMatching(/Z$/) as string,
        ended_at: expect.stringMatching(/Z$/) as string,
        wake_at: null,
        signal: null,
        child: null,
        tries: 0,
        done: null,
        error: '',
        result: { captureId: 'c-7' },
        result_size: 19,
        result_redacted: false,
      },
      expect.objectContaining({ name: 'approved', state: 'waiting', signal: 'approval', result: null, result_size: 0 }),
      expect.objectContaining({ name: 'invoice', kind: 'call', child: { queue: 'render', id: 'invoice-17' } }),
    ]);
    expect(found.slice(3)).toMatchObject([
      { name: 'ship', state: 'retrying', tries: 2, error: 'no parcel' },
      { name: 'rows', kind: 'each', state: 'running', done: 40 },
      { name: 'undo:capture', kind: 'undo', state: 'done' },
    ]);
    expect(rest).toEqual({ total: 6, signals: [], undoing: { error: 'no parcel', over: false } });
    const page = await steps('?size=2&page=2');
    expect(page.steps.map(({ name }) => name)).toEqual(['invoice', 'ship']);
    expect(page.total).toBe(6);
  });

  it('are none for a task without steps, and not found for no task', async () => {
    const { web, steps } = await open();
    await web.client.enqueue('order', {}, { taskId: 'order-17' });
    expect(await steps()).toEqual({ steps: [], total: 0, signals: [], undoing: null });
    expect(await web.api('GET', 'queues/default/tasks/none/steps')).toMatchObject({ status: 404 });
    expect(await web.api('GET', 'queues/nowhere/tasks/order-17/steps')).toMatchObject({ status: 404 });
  });

  it('hide what is hidden of the result, and of errors', async () => {
    const { web, broker, steps } = await open({ redact: [{ type: 'order:', fields: ['captureId', 'by'] }] });
    await arrangeSteps(broker);
    await web.client.signal({ queue: 'default', id: 'order-17' }, { name: 'approval' }, { by: 'anna' } as never);
    const shown = await steps();
    expect(shown.steps[0]).toMatchObject({ result: { captureId: '[redacted]' }, result_redacted: true });
    expect(shown.steps[1]).toMatchObject({ state: 'done', result: { by: '[redacted]' }, result_redacted: true });
    expect(shown.steps[3]).toMatchObject({ error: '[redacted]' });
    expect(shown.undoing).toMatchObject({ error: '[redacted]' });
    expect(JSON.stringify(shown)).not.toMatch(/anna|c-7|no parcel/);
  });

  it('do not name tasks of queues that the sender may not see', async () => {
    const { broker, steps } = await open({ access: { queues: { default: 'view' } } });
    await arrangeSteps(broker);
    expect((await steps()).steps[2]).toMatchObject({ name: 'invoice', child: null });
  });
});

it('the explanation of a suspended task leads to the task that it waits for, if the sender may see it', async () => {
  for (const access of ['view', { queues: { default: 'view' } }] as const) {
    const { web, broker } = await open({ access });
    await arrangeSuspended(broker);
    const { reasons } = await web.get<{ reasons: { kind: string; text: string; tasks: object[] }[] }>(
      'queues/default/tasks/order-17/explanation',
    );
    const [reason] = reasons;
    expect(reason).toMatchObject({ kind: 'suspended', until: expect.stringMatching(/Z$/) as string });
    expect(reason!.text).toContain('waits for the signal "approval" in step "approved"');
    expect(reason!.tasks).toEqual(access === 'view' ? [{ queue: 'render', id: 'invoice-17' }] : []);
    expect(reason!.text.includes('invoice-17')).toBe(access === 'view');
  }
});

describe('a signal through the REST API', () => {
  it('reaches the handler, and is in the audit trail without its payload', async () => {
    const { web, broker, steps, send } = await open();
    await arrangeSteps(broker);
    expect(await send({ name: 'approval', payload: { by: 'anna' } })).toMatchObject({ status: 204 });
    const { steps: found, signals } = await steps();
    expect(found[1]).toMatchObject({ state: 'done', result: { by: 'anna' } });
    expect(signals).toEqual([{ name: 'approval', count: 1, taken: 1 }]);
    expect(await send({ name: 'approval' })).toMatchObject({ status: 204 });
    expect((await broker.checkpoints.read('default', 'order-17')).signals.get('approval')!.map(String)).toEqual([
      '{"by":"anna"}',
      '',
    ]);
    const { entries } = await web.get<{ entries: object[] }>('audit');
    expect(entries).toHaveLength(2);
    expect(entries[1]).toMatchObject({ action: 'signal', detail: 'approval', task_id: 'order-17', outcome: 'done' });
    expect(JSON.stringify(entries)).not.toContain('anna');
  });

  it('is refused with a reason', async () => {
    const { web, broker, send } = await open({ access: ({ headers }) => (headers['x-role'] as 'act') ?? 'act' });
    await arrangeSteps(broker);
    expect(await send({ name: 'approval' }, { 'x-role': 'view' })).toMatchObject({ status: 403 });
    expect(await send({ payload: 1 })).toMatchObject({ status: 400 });
    expect(await send({ name: '' })).toMatchObject({ status: 400 });
    expect(await send({ name: 'approval', paylaod: 1 })).toMatchObject({ status: 400 });
    expect(await send({ name: 'approval' }, {}, 'none')).toMatchObject({ status: 404 });
    expect(await send({ name: 'approval' }, {}, 'order-17', 'nowhere')).toMatchObject({ status: 404 });
    await web.client.enqueue('order', {}, { taskId: 'over', queue: 'other' });
    await web.api('POST', 'queues/other/tasks/over:archive');
    expect(await send({ name: 'approval' }, {}, 'over', 'other')).toMatchObject({
      status: 409,
      text: expect.stringContaining('it has succeeded, or is archived') as string,
    });
    expect((await broker.checkpoints.read('default', 'order-17')).signals.size).toBe(0);
  });
});

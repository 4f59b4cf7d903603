import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { InMemoryBroker } from 'nestjs-asynq/testing';
import { floorSeconds } from '../../lib/clock.js';
import { request } from '../support/messages.js';
import { startConsole, type TestConsole } from './console.js';

interface Reason {
  kind: string;
  text: string;
  until: string | null;
  tasks: object[];
  queues: string[];
}

describe('the explanation of a task in the API', () => {
  let web: TestConsole;
  let broker: InMemoryBroker;
  const now = () => floorSeconds(broker.clock.now());
  const explain = (id: string) =>
    web.get<{ state: string; summary: string; reasons: Reason[] }>(`queues/default/tasks/${id}/explanation`);
  const add = (partial: Parameters<typeof request>[0], options = {}) =>
    broker.producer.enqueue('default', [request(partial, options)]);

  beforeAll(async () => {
    web = await startConsole({
      access: () => ({ queues: { default: 'view', seen: 'view' } }),
      redact: [{ type: 'medical:' }],
    });
    broker = web.broker as InMemoryBroker;
  });
  beforeEach(() => broker.clear());
  afterAll(() => web.close());

  it('has each reason in words, and when it may change', async () => {
    await add({ id: 'later' }, { processAt: now() + 3_600 });
    const { state, summary, reasons } = await explain('later');
    expect([state, summary]).toEqual(['scheduled', reasons[0]!.text]);
    expect(reasons).toMatchObject([
      { kind: 'scheduled', text: expect.stringContaining('It is scheduled for'), until: expect.stringMatching(/Z$/) },
      { kind: 'notServed', text: 'No server runs.', until: null, tasks: [], queues: [] },
    ]);
  });

  it('has no reason for a task that is not there', async () => {
    const { status } = await web.api('GET', 'queues/default/tasks/none/explanation');
    expect(status).toBe(404);
  });

  it('hides errors and keys as the task itself does', async () => {
    await add({ id: 'secret', type: 'medical:record' });
    const { tasks } = await broker.consumer.exchange('default', { settle: [], take: 1 });
    const { lease, message } = tasks[0]!;
    const failed = { ...message, retried: 1, errorMsg: 'no bed for Zoë', lastFailedAt: now() };
    const settle = { kind: 'retry', lease, message: failed, retryAt: now() + 60, countAsFailure: true } as const;
    await broker.consumer.exchange('default', { settle: [settle], take: 0 });
    const [retry] = (await explain('secret')).reasons;
    expect(retry!.kind).toBe('retry');
    expect(retry!.text).toContain('[redacted]');
    expect(JSON.stringify(await explain('secret'))).not.toContain('Zoë');
    const wait = { onFailure: 'cancel', onTimeout: 'archive', deadline: now() + 60 } as const;
    const prerequisites = [{ type: 'medical:record', key: 'Zoë' }];
    await broker.links.enqueue('default', [
      { ...request({ id: 'waits', type: 'medical:x' }), wait: { ...wait, prerequisites } },
    ]);
    expect(JSON.stringify(await explain('waits'))).not.toContain('Zoë');
  });

  it('links to those that hold a limit, and names no queue that the sender may not see', async () => {
    const server = { host: 'h', pid: 1, serverId: 's', concurrency: 9, strictPriority: true, status: 'active' };
    const queues = { default: 1, seen: 2, hidden: 3 };
    const handlers = [{ pattern: 't', scope: 'scope', globalConcurrency: 1 }];
    await broker.monitoring.writeServerState({ ...server, queues, startTime: 0, activeWorkerCount: 0 }, [], 60);
    await broker.monitoring.writeServerProfile(server, { handlers, queues: {}, aggregates: false }, 60);
    await broker.limiting.acquireTokens('scope', 9, now() + 60, ['{default}:a', '{hidden}:b']);
    for (const queue of ['seen', 'hidden']) await broker.producer.enqueue(queue, [request({ queue })]);
    await add({ id: 'next', type: 't' });
    const explanation = await explain('next');
    expect(explanation.reasons).toMatchObject([
      { kind: 'handlerLimit', tasks: [{ queue: 'default', id: 'a' }], text: expect.stringContaining('and 1 more') },
      { kind: 'priority', queues: ['seen'] },
    ]);
    expect(JSON.stringify(explanation)).not.toContain('hidden');
  });
});

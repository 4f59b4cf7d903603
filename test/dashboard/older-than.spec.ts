import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InMemoryBroker } from 'nestjs-asynq/testing';
import { request } from '../support/messages.js';
import { startConsole, type TestConsole } from './console.js';

let web: TestConsole;
beforeAll(async () => {
  web = await startConsole({ access: 'view' });
});
afterAll(() => web.close());

const idsOf = async (query: string): Promise<string[]> => {
  const { tasks } = await web.get<{ tasks: { id: string }[] }>(`queues/default/pending_tasks?${query}`);
  return tasks.map(({ id }) => id);
};

it('a list finds tasks that are in their state for long', async () => {
  const broker = web.broker as InMemoryBroker;
  await broker.producer.enqueue('default', [request({ id: 'old', type: 'x' })]);
  broker.clock.advance(3_600_000);
  await broker.producer.enqueue('default', [request({ id: 'new', type: 'x' })]);
  expect(await idsOf('older_than=1h')).toEqual(['old']);
  expect(await idsOf('older_than=1h&type=y')).toEqual([]);
  expect(await idsOf('older_than=0s&type=x')).toEqual(['old', 'new']);
  const refused = await web.api('GET', 'queues/default/pending_tasks?older_than=soon');
  expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('olderThan')]);
  expect((await web.api('GET', 'queues/default/scheduled_tasks?older_than=1h')).status).toBe(400);
});

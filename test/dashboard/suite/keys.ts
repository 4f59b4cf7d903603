import { ASYNQ_BROKER } from 'nestjs-asynq';
import { InMemoryBroker } from 'nestjs-asynq/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { AsynqDashboardOptions } from 'nestjs-asynq/dashboard';
import { fairHeader, request } from '../../support/messages.js';
import { startConsole } from '../console.js';

/* The list of the keys of a fair queue, and of the tasks of one. */

interface KeyRow {
  readonly key: string;
  readonly waiting: number;
  readonly running: number | null;
  readonly held: { readonly by: string[]; readonly until: string } | null;
}

interface KeysReply {
  readonly keys: KeyRow[];
  readonly next_cursor: string | null;
  readonly redacted: boolean;
}

async function open(options: AsynqDashboardOptions = {}) {
  const web = await startConsole(
    { access: 'view', ...options },
    { override: (builder) => builder.overrideProvider(ASYNQ_BROKER).useClass(InMemoryBroker) },
  );
  onTestFinished(() => web.close());
  const broker = web.broker as InMemoryBroker;
  broker.fairQueues.add('default');
  const tasks = (key: string, count: number, share = {}) =>
    Array.from({ length: count }, (_, index) =>
      request({ id: `${key}-${index + 1}`, headers: fairHeader(key, share) }),
    );
  await broker.producer.enqueue('default', [
    ...tasks('acme', 4, { concurrency: 1 }),
    ...tasks('beta', 2),
    ...tasks('zeta', 3, { rate: 1, window: 16_000 }),
  ]);
  await broker.consumer.exchange('default', { settle: [], take: 9 });
  return { web, broker };
}

describe('keys in the REST API', () => {
  it('are listed with what waits, runs and holds them, page by page', async () => {
    const { web } = await open();
    const first = await web.get<KeysReply>('queues/default/keys?size=1');
    expect(first).toMatchObject({
      keys: [
        {
          key: 'acme',
          waiting: 3,
          running: 1,
          weight: 1,
          concurrency: 1,
          rate: null,
          held: {
            by: ['concurrency'],
            until: expect.stringMatching(/Z$/) as string,
          },
        },
      ],
      redacted: false,
    });
    const second = await web.get<KeysReply>(`queues/default/keys?size=1&cursor=${first.next_cursor}`);
    expect(second.keys).toMatchObject([
      { key: 'zeta', waiting: 2, rate: { max: 1, per_ms: 16_000 }, held: { by: ['rate'] } },
    ]);
    const named = await web.get<KeysReply>('queues/default/keys?sort=name&search=eta');
    expect(named.keys.map(({ key }) => key)).toEqual(['beta', 'zeta']);
    const held = await web.get<KeysReply>('queues/default/keys?held=true&sort=name');
    expect(held.keys.map(({ key }) => key)).toEqual(['acme', 'zeta']);
    await expect(web.get('queues/default/keys?sort=age')).rejects.toThrow('waiting or name');
    await expect(web.get('queues/none/keys')).rejects.toThrow('404');
  });

  it('choose the pending tasks of a list', async () => {
    const { web } = await open();
    const list = async (query: string) =>
      (await web.get<{ tasks: { id: string }[] }>(`queues/default/pending_tasks?${query}`)).tasks.map(({ id }) => id);
    expect(await list('key=acme')).toEqual(['acme-2', 'acme-3', 'acme-4']);
    expect(await list('key=nobody')).toEqual([]);
    await expect(web.get('queues/default/pending_tasks?key=acme&type=x')).rejects.toThrow('not for a search');
  });

  it('are named where a task is explained', async () => {
    const { web } = await open();
    const { summary, reasons } = await web.get<{ summary: string; reasons: { kind: string; tasks: unknown[] }[] }>(
      'queues/default/tasks/acme-2/explanation',
    );
    expect(summary).toContain('No server runs.');
    expect(reasons[1]).toMatchObject({ kind: 'keyLimit', tasks: [{ queue: 'default', id: 'acme-1' }] });
  });

  it('are hidden by a rule that hides their header', async () => {
    const { web } = await open({ redact: [{ type: '', headers: ['asynq-fairness'] }] });
    expect(await web.get('queues/default/keys?search=acme')).toEqual({ keys: [], next_cursor: null, redacted: true });
    await expect(web.get('queues/default/pending_tasks?key=acme')).rejects.toThrow('hidden');
    const explained = JSON.stringify(await web.get('queues/default/tasks/acme-3/explanation'));
    expect(explained).toContain('(hidden)');
    expect(explained).not.toContain('"acme"');
  });
});

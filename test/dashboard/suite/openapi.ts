import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, expect, it, describe } from 'vitest';
import type { InMemoryBroker } from 'nestjs-asynq/testing';
import {
  arrangeEveryState,
  arrangeHeld,
  arrangeRunsAndBatches,
  arrangeWaiting,
  batchFor,
  runFor,
} from '../../support/every-state.js';
import { OutboxFile } from '../../support/outbox-file.js';
import { startConsole, type TestConsole } from '../console.js';

/*
 * Calls every route of the document once, with tasks in every state, and checks the reply against
 * its own schema.
 */

describe('the OpenAPI document', () => {
  interface Operation {
    readonly operationId: string;
    readonly requestBody?: { readonly required: boolean };
    readonly responses: Readonly<Record<string, { readonly content?: Record<string, { readonly schema: object }> }>>;
  }

  interface Document {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
    readonly components: { readonly schemas: Readonly<Record<string, object>> };
  }

  /** Bodies for the routes that need one. */
  const BODIES: Readonly<Record<string, unknown>> = {
    'POST /queues/{queue}/tasks': { type: 'new', payload: { a: 1 }, headers: { a: 'b' }, process_in_seconds: 60 },
    'POST /queues/{queue}/tasks/{id}:edit_payload': {
      payload_text: 'new',
      replaces: createHash('sha256').update('{"id":"retry"}').digest('hex'),
    },
    'POST /queues/{queue}/tasks/{id}:release_lock': { name: 'charge:order-7:key' },
    'POST /queues/{queue}/tasks/{id}:signal': { name: 'approval', payload: { by: 'anna' } },
    'POST /queues/{queue}/tasks/{id}:reschedule': { process_at: '2100-01-01T00:00:00Z' },
  };
  /** The task for a route without a state in its path, by verb. */
  const IDS: Readonly<Record<string, string>> = {
    archive: 'pending',
    cancel: 'active',
    edit_payload: 'retry',
    release_lock: 'unique',
    signal: 'scheduled',
  };

  const SERVER = { host: 'h', pid: 1, serverId: 's', strictPriority: false, status: 'active', concurrency: 2 };

  /** One of everything. */
  async function arrange(broker: InMemoryBroker): Promise<void> {
    broker.clear();
    broker.clock.advance(60_000);
    await arrangeHeld(broker);
    await arrangeEveryState(broker);
    await arrangeWaiting(broker);
    await arrangeRunsAndBatches(broker);
    await web.client.enqueue('charge', {}, { taskId: 'unique', unique: { for: '1h', by: 'key' }, key: 'order-7' });
    const [startTime, deadline] = [broker.clock.now(), broker.clock.now() + 60_000];
    const task = { taskId: 'active', taskType: 'email:active', taskPayload: Buffer.from('{}'), queue: 'default' };
    const worker = { host: 'h', pid: 1, serverId: 's', ...task, startTime, deadline };
    await broker.monitoring.writeServerState(
      { ...SERVER, queues: { default: 1 }, startTime, activeWorkerCount: 1 },
      [worker],
      60,
    );
    const entry = { id: 'nightly', spec: '@daily', taskType: 'report', taskPayload: Buffer.from('{}') };
    const times = { nextEnqueueTime: deadline, prevEnqueueTime: startTime };
    await broker.scheduling.writeSchedulerEntries(
      'scheduler',
      [{ ...entry, enqueueOptions: ['MaxRetry(3)'], ...times }],
      60,
    );
    await broker.scheduling.openSchedule('default', 'nightly', '@daily', 60);
    await broker.scheduling.recordEnqueueEvent('nightly', { taskId: 'x', enqueueTime: startTime });
    const who = { actor: 'alice', at: startTime, process: 'h:1', missing: 2 };
    const what = {
      action: 'delete',
      queue: 'default',
      scope: 'matching',
      criteria: 'type a',
      state: 'archived',
      group: 'g',
      count: 1,
      failed: 1,
    };
    const change = {
      ...who,
      ...what,
      outcome: 'failed',
      code: 'X',
      taskId: 'a',
      newTaskId: 'b',
      schedule: 's',
      workflow: 'w/1',
      batch: 'batch-1',
      row: '7',
      toQueue: 'q',
    };
    await broker.events.appendEvents('audit', [Buffer.from(JSON.stringify(change))], { most: 100 });
  }

  function addressOf(path: string): string {
    const verb = /:(\w+)$/.exec(path)?.[1] ?? '';
    const state = /(\w+)_tasks/.exec(path)?.[1];
    const values: Record<string, string> = { queue: 'default', group: 'g', entry: 'nightly', row: '7' };
    Object.assign(values, { run: runFor(path), batch: batchFor(path) });
    values['id'] = state ?? IDS[verb] ?? (path.endsWith('/result') ? 'completed' : 'archived');
    const query = verb === 'count' ? '?id=a' : '';
    return `${path.slice(1).replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name]!)}${query}`;
  }

  let outbox: OutboxFile;
  let web: TestConsole;
  let document: Document;
  let prometheus: Server;
  let validator: Ajv2020;

  beforeAll(async () => {
    prometheus = createServer((_, response) => response.end('{"status":"success"}'));
    await new Promise<void>((resolve) => prometheus.listen(0, '127.0.0.1', resolve));
    const { port } = prometheus.address() as AddressInfo;
    outbox = await OutboxFile.create();
    web = await startConsole(
      { access: 'destroy', prometheus: `http://127.0.0.1:${port}` },
      { metadata: { imports: [outbox.module] } },
    );
    document = await web.get<Document>('openapi.json');
    validator = new Ajv2020({
      allErrors: true,
      strict: true,
      strictTypes: false,
      validateFormats: false,
      allowUnionTypes: true,
    });
    validator.addKeyword('components').addSchema({ $id: 'api', components: document.components });
  });
  afterAll(async () => {
    await web.close();
    prometheus.close();
    outbox.close();
  });

  const operations = () =>
    Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
    );

  it('names every operation once', () => {
    const ids = operations().map(({ operation }) => operation.operationId);
    expect(ids.length).toBeGreaterThan(60);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('describes the replies of every operation', async () => {
    for (const { method, path, operation } of operations()) {
      await arrange(web.broker as InMemoryBroker);
      outbox.poison(7, 'default');
      const name = `${method} ${path}`;
      const batch = path.includes(':batch_') ? { task_ids: [/(\w+)_tasks/.exec(path)![1], 'nobody'] } : undefined;
      const matching = path.endsWith('_matching') ? { id: 'a' } : undefined;
      const address = name === 'DELETE /queues/{queue}' ? 'queues/empty' : addressOf(path);
      if (address === 'queues/empty') await web.client.enqueue('x', {}, { queue: 'empty', taskId: 'x' });
      if (address === 'queues/empty') await web.api('DELETE', 'queues/empty/tasks/x');
      const { status, text, headers } = await web.api(method, address, BODIES[name] ?? batch ?? matching);
      const described = operation.responses[status];
      expect(described, `${name} returned ${status} ${text}`).toBeDefined();
      const schema = described!.content?.['application/json']?.schema;
      if (described!.content?.['application/octet-stream']) {
        expect(headers['content-type'], name).toBe('application/octet-stream');
        continue;
      }
      if (!schema) {
        expect(text, name).toBe('');
        continue;
      }
      expect(headers['content-type'], name).toBe('application/json; charset=utf-8');
      const fits = validator.compile(rebase(schema));
      expect([name, fits(JSON.parse(text)), fits.errors]).toEqual([name, true, null]);
    }
  });

  /** References point into the document, so it needs an address. */
  const rebase = (schema: object): object => JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"api#/')) as object;
});

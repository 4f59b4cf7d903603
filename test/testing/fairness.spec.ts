import { Injectable } from '@nestjs/common';
import { AsynqClient, AsynqInspector, defineTask, Payload, TaskHandler } from 'nestjs-asynq';
import type { AsynqTester } from 'nestjs-asynq/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { testApp } from '../nest/support.js';

interface Row {
  readonly tenant: string;
}

const ImportRow = defineTask<Row>('import:row', {
  queue: 'imports',
  fairness: { key: ({ tenant }) => tenant, rate: (tenant) => (tenant === 'slow' ? { max: 2, per: '1m' } : undefined) },
});

@Injectable()
class Imports {
  readonly order: string[] = [];

  @TaskHandler(ImportRow)
  run(@Payload() { tenant }: Row) {
    this.order.push(tenant);
  }
}

describe('a test of a fair queue', () => {
  let tasks: AsynqTester;
  let client: AsynqClient;
  let inspector: AsynqInspector;
  let imports: Imports;

  beforeEach(async () => {
    const options = { queues: { imports: { fairness: true } }, server: { queues: { imports: 1 }, concurrency: 1 } };
    const made = await testApp({ providers: [Imports] }, options);
    tasks = made.tasks;
    client = made.app.get(AsynqClient);
    inspector = made.app.get(AsynqInspector);
    imports = made.app.get(Imports);
  });

  const rows = (tenant: string, count: number) => Array.from({ length: count }, () => ({ tenant }));

  it('runs tasks turn by turn', async () => {
    await client.enqueueMany(ImportRow, [...rows('large', 6), ...rows('small', 2)]);
    expect(await tasks.drain()).toMatchObject({ done: 8, left: [] });
    expect(imports.order.slice(0, 5).filter((tenant) => tenant === 'small')).toHaveLength(2);
  });

  it('keeps the rate of a key, and advances to when it lets more start', async () => {
    await client.enqueueMany(ImportRow, [...rows('slow', 5), ...rows('quick', 3)]);
    expect(await tasks.drain()).toMatchObject({ done: 5, left: [{ queue: 'imports', count: 3, reason: 'limited' }] });
    expect(tasks.enqueued(ImportRow, { payload: { tenant: 'slow' } })).toHaveLength(3);
    expect((await inspector.fairnessKeys('imports')).keys).toMatchObject([
      { key: 'slow', waiting: 3, held: { by: ['rate'] } },
    ]);
    expect(await tasks.advance('5m')).toMatchObject({ done: 3, left: [] });
    expect(imports.order.filter((tenant) => tenant === 'slow')).toHaveLength(5);
  });
});

import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { AsynqClient, AsynqInspector, AsynqModule, type GroupedTask, TaskAggregator, TaskHandler } from 'nestjs-asynq';
import { expect, it, vi } from 'vitest';
import { slotOf } from '../../lib/broker/redis/connection/slot.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { useCluster } from '../contract/cluster-fixture.js';

const QUEUES = Array.from({ length: 9 }, (_, n) => `q${n}`);

@Injectable()
class Digests {
  readonly sent: string[] = [];

  @TaskAggregator('user:')
  collect(group: string, tasks: readonly GroupedTask<string>[]) {
    const lines = tasks.map(({ payload }) => payload).sort();
    return { type: 'digest', payload: { group, lines } };
  }

  @TaskHandler('digest')
  send({ group, lines }: { group: string; lines: string[] }) {
    this.sent.push(`${group}: ${lines.join()}`);
  }
}

const cluster = useCluster();

it('an application aggregates groups of queues on every node of a cluster', async () => {
  const keyspace = new Keyspace();
  const nodes = new Set(QUEUES.map((queue) => Math.floor((slotOf(keyspace.queue(queue).groups) * 3) / 16_384)));
  expect(nodes.size).toBe(3);

  @Module({
    imports: [
      AsynqModule.forRoot({
        connection: { cluster: cluster.nodes },
        server: { queues: QUEUES, groupGracePeriod: '1s', groupMaxSize: 3 },
      }),
    ],
    providers: [Digests],
  })
  class AppModule {}
  const app = await Test.createTestingModule({ imports: [AppModule] }).compile();
  const client = app.get(AsynqClient);
  for (const queue of QUEUES) {
    for (const line of ['1', '2', '3']) {
      await client.enqueue('part', line, { queue, group: `user:${queue}`, unique: '1h', headers: { line } });
    }
    await client.enqueue('part', 'later', { queue, group: 'user:later', processIn: '1s', unique: '1h' });
  }
  await app.init();
  const { sent } = app.get(Digests);
  await vi.waitFor(() => expect(sent).toHaveLength(2 * QUEUES.length));
  expect(sent.toSorted()).toEqual(QUEUES.flatMap((queue) => [`user:${queue}: 1,2,3`, 'user:later: later']).sort());

  const inspector = app.get(AsynqInspector);
  for (const queue of QUEUES) {
    await vi.waitFor(async () => expect((await inspector.getQueueInfo(queue)).size).toBe(0));
    expect(await inspector.groups(queue)).toEqual([]);
  }
  await app.close();
  // Sets, locks and notes are gone, too.
  const left = (await Promise.all(cluster.backdoor.nodes.map((node) => node.keys('asynq:{q*')))).flat();
  expect(left.filter((key) => !/:processed(:|$)/.test(key))).toEqual([]);
});

import { describe, expect } from 'vitest';
import type { BatchCallback } from '../../lib/broker/batches.js';
import { slotOf } from '../../lib/broker/redis/connection/slot.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { request } from '../support/messages.js';
import { BatchSession } from './batch-session.js';
import { useCluster } from './cluster-fixture.js';
import { done } from './driver.js';
import { driverTest } from './exercise-broker.js';
import { step } from './run-session.js';

const NODES = [0, 1, 2] as const;
const HOUR = 3_600;
const keyspace = new Keyspace();
const cluster = useCluster();
const it = driverTest((clock) => cluster.backdoor.world(clock));

/** The name of a queue that the node at this index of three holds. */
function queueOn(index: number): string {
  for (let number = 0; ; number++) {
    const slot = slotOf(keyspace.queue(`q${number}`).pending);
    if (Math.min(2, Math.floor((slot * 3) / 16_384)) === index) return `q${number}`;
  }
}

const QUEUES = NODES.map(queueOn);
const PAIRS = QUEUES.flatMap((from) => QUEUES.map((to) => [from, to] as const));

/** Runs, waits and batches between all pairs of queues. Servers run what is pending, and a keeper keeps the places. */
class Loss extends BatchSession {
  async arrange(): Promise<void> {
    for (const [from, to] of PAIRS) {
      const id = `${from}-${to}`;
      const until = { deadline: this.driver.now + HOUR };
      await this.driver.enqueue([request({ id: `a ${id}`, queue: from }, { processAt: this.driver.now + 60 })], from);
      const after = { queue: from, id: `a ${id}` };
      await this.enqueueAfter(this.waiting(`b ${id}`, [after], { message: { queue: to }, ...until }));
      await this.enqueue(this.waiting(`c ${id}`, [{ type: 'pay', key: id }], { message: { queue: to }, ...until }));
      await this.enqueue(this.marked(`d ${id}`, id, { queue: from }));
      const run = `wf:${id}`;
      const later = { request: { processAt: this.driver.now + 60 } };
      const steps = [
        step('a', { message: { queue: from }, ...later }, run),
        step('b', { message: { queue: to }, after: ['a'] }, run),
        step('c', { message: { queue: from }, after: ['b'], onFailure: 'run' }, run),
      ];
      const started = { id: run, name: 'wf', steps, retention: 2 * HOUR, deadline: undefined };
      this.took(await this.driver.broker.workflows.start(from, [started]));
      await this.openBatch(from, to);
    }
    await this.relay();
  }

  /** `passes` times: a minute later, what is due is forwarded, all that is pending succeeds, and the keepers have a pass. */
  async live(passes: number): Promise<void> {
    for (let pass = 0; pass < passes; pass++) {
      this.driver.clock.advance(60_000);
      for (const queue of QUEUES) {
        await this.driver.broker.maintenance.forward(queue);
        for (const task of await this.driver.take(100, queue))
          this.took(await this.driver.exchange([done(task)], 0, queue));
      }
      await this.relay();
      await this.keep();
    }
  }

  /** What has not ended. */
  async unended(): Promise<string[]> {
    const { inspection, workflows, batches } = this.driver.broker;
    const left: string[] = [];
    const page = { offset: 0, size: 100 };
    for (const queue of QUEUES) {
      const { waiting, pending, scheduled, active } = await inspection.describeQueue(queue);
      if (waiting + pending + scheduled + active > 0)
        left.push(`${queue}: ${waiting} ${pending} ${scheduled} ${active}`);
      for (const run of await workflows.runs(queue, page)) if (run.state === 'running') left.push(`run ${run.id}`);
      for (const { id, state } of await batches.batches(queue, page))
        if (state === 'open' || state === 'closed') left.push(`batch ${id}: ${state}`);
    }
    return left;
  }

  /** The keys about links that Redis would keep for ever. */
  async keysOfLinks(): Promise<string[]> {
    const found: string[] = [];
    for (const node of cluster.backdoor.nodes) {
      for (const key of await node.keys('*')) {
        const isAboutLinks = keyspace.queue(/\{(.*?)\}/.exec(key)?.[1] ?? '').isAboutLinks(key);
        if (isAboutLinks && (await node.ttl(key)) < 0) found.push(key);
      }
    }
    return found;
  }

  private async openBatch(home: string, to: string): Promise<void> {
    const id = `batch-${home}-${to}`;
    const callback = (name: BatchCallback) => request({ id: `${id}~${name}`, queue: to });
    const callbacks = { success: callback('success'), complete: callback('complete'), death: callback('death') };
    const closeBy = this.driver.now + HOUR;
    const { batches } = this.driver.broker;
    this.took(await batches.open(home, { id, name: 'test', callbacks, closeBy, retention: 2 * HOUR }));
    const { chunks } = await batches.reserve(home, id, [{ queue: to, count: 3 }]);
    const { statuses } = this.took(
      await batches.add(chunks[0]!, this.members(chunks[0]!, { processAt: this.driver.now + 60 })),
    );
    expect(statuses).toEqual(['enqueued', 'enqueued', 'enqueued']);
    this.took(await batches.confirm(home, id, [{ base: chunks[0]!.base, created: 3 }]));
    this.took(await batches.close(home, id));
  }
}

describe('a node of a cluster that loses all it has', () => {
  it.for(NODES)('leaves no wait without an end on the others: node %d', async (index, { driver }) => {
    const session = new Loss(driver);
    await session.arrange();
    await cluster.backdoor.nodes[index]!.flushall();
    await session.live(70); // beyond the deadline of each wait
    expect(await session.unended()).toEqual([]);
    expect((await session.keysOfLinks()).length).toBeGreaterThan(0); // runs and batches that are kept
    driver.clock.advance(2 * 86_400_000);
    await session.live(3);
    expect(await session.keysOfLinks()).toEqual([]);
  });

  it.for(NODES)('in the middle of their work: node %d', async (index, { driver }) => {
    const session = new Loss(driver);
    await session.arrange();
    await session.live(1);
    await cluster.backdoor.nodes[index]!.flushall();
    await session.live(70);
    expect(await session.unended()).toEqual([]);
  });
});

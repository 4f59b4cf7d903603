import { Cluster, Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ConnectionInput } from '../../lib/broker/redis/connection/connection-options.js';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { describeWithGo } from '../support/go.js';
import { startCluster, startRedis } from '../support/redis.js';
import { last, PATIENCE, repeatUntil, SECONDS, sleep, TIMEOUT_MS } from './chaos.js';
import { Fleet } from './linked-fleet.js';
import { Judge } from './linked-judge.js';

/** On three masters of a cluster. */
const QUEUES = ['alpha', 'beta', 'delta'] as const;

class Chaos {
  readonly fleet: Fleet;
  readonly judge: Judge;
  private until = 0;

  constructor(connection: ConnectionInput, redis: Redis | Cluster) {
    const broker = new RedisBroker(new RedisConnections(connection));
    this.fleet = new Fleet({ connection, queues: QUEUES, patience: 5 * PATIENCE, loops: 2 + 2 * PATIENCE });
    this.judge = new Judge(broker, redis, this.fleet, QUEUES);
    onTestFinished(() => this.fleet.kill().then(() => broker.close()));
  }

  async start(): Promise<void> {
    const roles = ['server', 'server', 'server', 'client', 'client'] as const;
    await Promise.all(roles.map((role) => this.fleet.start(role)));
    this.until = Date.now() + SECONDS * 1000;
  }

  /** Does something again and again until the end. */
  repeat(interval: number, what: () => Promise<void>): Promise<void> {
    return repeatUntil(this.until, interval, what);
  }

  /** A server hangs until its tasks are those of others. */
  async freeze(): Promise<void> {
    const thaw = this.fleet.freeze('server');
    await sleep(7_000);
    await this.judge.hurry();
    await sleep(1_000);
    thaw();
  }

  /** Waits for the end of all that was begun. Returns all that is wrong. */
  async end(): Promise<string[]> {
    const { fleet, judge } = this;
    const open = await this.untilEnded();
    fleet.listenToGo();
    return open.length > 0 ? open : [...(await judge.faults()), ...(await this.clear())];
  }

  /** The same where Redis may have lost what it had accepted: then all that is left has an end. */
  async endAfterLoss(): Promise<string[]> {
    const open = await this.untilEnded(true);
    return open.length > 0 ? open : [...this.fleet.crashes, ...(await this.clear())];
  }

  private async untilEnded(probes = false): Promise<string[]> {
    await this.fleet.stop('client');
    return last(async () => {
      await this.judge.hurry(probes);
      return this.judge.open();
    }, 90_000);
  }

  private async clear(): Promise<string[]> {
    await this.judge.clear();
    const left = await last(() => this.judge.left(), 60_000);
    this.report();
    await this.fleet.stop('server');
    return left;
  }

  /** The figures of a long run. */
  private report(): void {
    if (SECONDS < 60) return;
    const { accepted, ran, added, deeds } = this.fleet;
    const refused = Object.fromEntries(Object.entries(this.fleet.refused).map(([code, { length }]) => [code, length]));
    const { task, run, batch } = accepted;
    const members = [...added.values()].reduce((sum, count) => sum + count, 0);
    console.log({
      tasks: task.length,
      runs: run.length,
      batches: batch.length,
      members,
      ran: ran.size,
      ...deeds,
      refused,
    });
  }
}

describeWithGo('chaos', () => {
  it(
    'gives all linked tasks an end while servers, clients, Go and Redis are killed',
    async () => {
      const server = await startRedis({ appendOnly: true });
      onTestFinished(() => server.stop());
      const { host, port } = server;
      const redis = new Redis(port, { maxRetriesPerRequest: null, retryStrategy: () => 50 });
      redis.on('error', () => undefined);
      onTestFinished(() => redis.disconnect());
      const chaos = new Chaos({ host, port }, redis);
      const { fleet } = chaos;
      await Promise.all([chaos.start(), fleet.startGo(server, 'delta')]);
      await Promise.all([
        chaos.repeat(1_000 * PATIENCE, () => fleet.replace('server')),
        chaos.repeat(2_000 * PATIENCE, () => fleet.replace('client')),
        chaos.repeat(4_000, () => fleet.startGo(server, 'delta')),
        chaos.repeat(4_000 * PATIENCE, () => server.restart().then(() => fleet.count('killed Redis'))),
        chaos.freeze(),
        chaos.repeat(20_000, () => chaos.freeze()),
      ]);
      expect(await chaos.end()).toEqual([]);
    },
    TIMEOUT_MS,
  );
});

describe('chaos in a cluster', () => {
  async function arrange() {
    const cluster = await startCluster(3, { replicas: 1 });
    onTestFinished(() => cluster.stop());
    const redis = new Cluster(cluster.nodes);
    onTestFinished(() => redis.disconnect());
    const chaos = new Chaos({ cluster: cluster.nodes }, redis);
    await chaos.start();
    let part = 0;
    return { cluster, chaos, fleet: chaos.fleet, nextPart: () => part++ % 3 };
  }

  it(
    'gives all linked tasks an end while servers and clients are killed and replicas take over',
    async () => {
      const { cluster, chaos, fleet, nextPart } = await arrange();
      await Promise.all([
        chaos.repeat(1_000 * PATIENCE, () => fleet.replace('server')),
        chaos.repeat(2_000 * PATIENCE, () => fleet.replace('client')),
        chaos.repeat(2_000, () => cluster.failOver(nextPart()).then(() => fleet.count('failover'))),
        chaos.freeze(),
        chaos.repeat(20_000, () => chaos.freeze()),
      ]);
      expect(await chaos.end()).toEqual([]);
    },
    TIMEOUT_MS,
  );

  it(
    'leaves nothing that waits when masters are killed and writes are lost',
    async () => {
      const { cluster, chaos, fleet, nextPart } = await arrange();
      await Promise.all([
        chaos.repeat(3_000 * PATIENCE, () => fleet.replace('server')),
        chaos.repeat(2_000, () => cluster.killMaster(nextPart()).then(() => fleet.count('killed master'))),
      ]);
      expect(await chaos.endAfterLoss()).toEqual([]);
    },
    TIMEOUT_MS,
  );
});

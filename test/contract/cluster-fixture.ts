import { afterAll, beforeAll } from 'vitest';
import { type RedisCluster, startCluster } from '../support/redis.js';
import { RedisBackdoor } from './redis-world.js';

/** A cluster of three nodes for the tests of a file, and plain connections to each. */
export class ClusterFixture {
  backdoor!: RedisBackdoor;
  private cluster!: RedisCluster;

  get nodes(): RedisCluster['nodes'] {
    return this.cluster.nodes;
  }

  async start(): Promise<void> {
    this.cluster = await startCluster(3);
    this.backdoor = new RedisBackdoor(this.cluster.nodes);
  }

  async stop(): Promise<void> {
    this.backdoor.close();
    await this.cluster.stop();
  }
}

export function useCluster(): ClusterFixture {
  const fixture = new ClusterFixture();
  beforeAll(() => fixture.start());
  afterAll(() => fixture.stop());
  return fixture;
}

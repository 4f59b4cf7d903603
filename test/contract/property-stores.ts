import { afterAll, beforeAll } from 'vitest';
import { startCluster, startRedis } from '../support/redis.js';
import { RedisBackdoor } from './redis-world.js';

/** Set FC_SEED and FC_PATH to run a failed history again: the report of the failure names them. FC_RUNS: how many there are. */
const { FC_SEED, FC_PATH, FC_RUNS } = process.env;

/** How many histories are tried. */
export const historyCount = (usual: number): number => Number(FC_RUNS ?? usual);

/** What fast-check is asked for. */
export const parameters = (runs: number) => ({
  numRuns: runs,
  ...(FC_SEED === undefined ? {} : { seed: Number(FC_SEED) }),
  ...(FC_PATH === undefined ? {} : { path: FC_PATH, endOnFailure: true }),
});

type Servers = { readonly nodes: ConstructorParameters<typeof RedisBackdoor>[0]; stop(): Promise<void> };

const single = async (): Promise<Servers> => {
  const redis = await startRedis();
  return { nodes: [redis], stop: () => redis.stop() };
};

/** Name, start and number of runs of each store on which random histories are tried. */
export const redisStores = (runs: number) =>
  [
    ['Redis', single, runs],
    ['a cluster of three', (): Promise<Servers> => startCluster(3), Math.ceil(runs / 4)],
  ] as const;

/** Starts the servers before the tests of a `describe`, and stops them after. Returns the backdoor, for use in tests. */
export function useBackdoor(start: () => Promise<Servers>): () => RedisBackdoor {
  let servers: Servers;
  let backdoor: RedisBackdoor;
  beforeAll(async () => {
    servers = await start();
    backdoor = new RedisBackdoor(servers.nodes);
  });
  afterAll(async () => {
    backdoor.close();
    await servers.stop();
  });
  return () => backdoor;
}

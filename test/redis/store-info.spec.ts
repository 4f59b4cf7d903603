import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../lib/clock.js';
import { toBrokerError } from '../../lib/broker/redis/connection/broker-error.js';
import type { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { readStoreInfo } from '../../lib/broker/redis/store-info.js';

const connections = (run: () => Promise<string>) =>
  ({ target: 'a:1', isCluster: false, run, ready: async () => undefined }) as unknown as RedisConnections;

/** Connections to a server that replies to INFO with an error. */
const answering = (message: string) => {
  const error = Object.assign(new Error(message), { name: 'ReplyError' });
  return connections(() => Promise.reject(toBrokerError(error, 'INFO')));
};

describe('the information of Redis', () => {
  it.each([
    "NOPERM User x has no permissions to run the 'info' command",
    "ERR unknown command 'INFO', with args beginning with: ",
    "ERR unsupported command 'info'", // what proxies say
    'invalid request',
  ])('is empty when it replies %j', async (message) => {
    expect(await readStoreInfo(answering(message), new ManualClock())).toEqual([]);
  });

  it.each(['LOADING Redis is loading the dataset in memory', 'NOAUTH Authentication required.', 'BUSY Redis is busy'])(
    'is requested again after %j',
    async (message) => {
      await expect(readStoreInfo(answering(message), new ManualClock())).rejects.toThrow(message);
    },
  );

  it.each([
    ['an hour behind ours', 1_000_000 - 3_600_000, 3_600_000],
    ['an hour ahead of ours', 1_000_000 + 3_600_000, 20 - 3_600_000],
    ['what ours was while it answered', 1_000_010, 0],
    ['what ours was when it was asked', 1_000_000, 0],
    ['not told', undefined, undefined],
  ])('has a time that is %s', async (_, time, ahead) => {
    const clock = new ManualClock(1_000_000);
    const info = time === undefined ? '' : `server_time_usec:${time * 1000}\r\n`;
    const run = async () => {
      clock.advance(20);
      return `redis_version:7.0.0\r\n${info}`;
    };
    expect(await readStoreInfo(connections(run), clock)).toMatchObject([{ version: '7.0.0', ahead }]);
  });
});

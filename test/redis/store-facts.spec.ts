import { describe, expect, it } from 'vitest';
import { toBrokerError } from '../../lib/broker/redis/broker-error.js';
import type { RedisConnections } from '../../lib/broker/redis/connections.js';
import { readStoreFacts } from '../../lib/broker/redis/store-facts.js';

/** Connections to something that answers INFO with an error. */
const answering = (message: string) => {
  const error = Object.assign(new Error(message), { name: 'ReplyError' });
  const run = () => Promise.reject(toBrokerError(error, 'INFO'));
  return { target: 'a:1', isCluster: false, run } as unknown as RedisConnections;
};

describe('what Redis tells of itself', () => {
  it.each([
    "NOPERM User x has no permissions to run the 'info' command",
    "ERR unknown command 'INFO', with args beginning with: ",
    "ERR unsupported command 'info'", // what proxies say
    'invalid request',
  ])('is nothing when it answers %j', async (message) => {
    expect(await readStoreFacts(answering(message))).toEqual([]);
  });

  it.each(['LOADING Redis is loading the dataset in memory', 'NOAUTH Authentication required.', 'BUSY Redis is busy'])(
    'is asked again after %j',
    async (message) => {
      await expect(readStoreFacts(answering(message))).rejects.toThrow(message);
    },
  );
});

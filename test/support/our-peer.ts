import { fileURLToPath } from 'node:url';

import { Peer } from './peer.js';

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

/** Our side as a process of its own: see test/interop/our-peer.ts. */
export class OurPeer extends Peer {
  /** Tasks without payload; answers their ids. */
  enqueueMany(count: number, type: string, queue: string): Promise<string[]> {
    return this.call('enqueueMany', { count, type, queue });
  }
}

/** Starts it from the sources against a Redis server. @param clockAhead milliseconds */
export const startOurPeer = async (redis: { host: string; port: number }, clockAhead = 0): Promise<OurPeer> => {
  const peer = new OurPeer(process.execPath, [
    path('./run-ts.mjs'),
    path('../interop/our-peer.ts'),
    String(clockAhead),
    redis.host,
    String(redis.port),
  ]);
  await peer.event('ready');
  return peer;
};

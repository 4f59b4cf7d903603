import { Peer } from './peer.js';
import { compiled } from './programs.js';

/** Our side as a process of its own: see test/interop/our-peer-process.ts. */
export class OurPeer extends Peer {
  /** Tasks without payload; answers their ids. */
  enqueueMany(count: number, type: string, queue: string): Promise<string[]> {
    return this.call('enqueueMany', { count, type, queue });
  }
}

/** Starts it against a Redis server. @param clockAhead milliseconds */
export const startOurPeer = async (redis: { host: string; port: number }, clockAhead = 0): Promise<OurPeer> => {
  const program = await compiled(new URL('../interop/our-peer-process.ts', import.meta.url));
  const peer = new OurPeer(process.execPath, [program, String(clockAhead), redis.host, String(redis.port)]);
  await peer.event('ready');
  return peer;
};

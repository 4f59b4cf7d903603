import { describe, expect, it } from 'vitest';
import type { ObservedServer } from '../../../lib/broker/obstacles.js';
import { FairQueues } from '../../../lib/broker/fair-queues.js';
import { ManualClock } from '../../../lib/clock.js';
import { TurnFiller } from '../../../lib/server/loops/turn-filler.js';

const server = (queues: readonly string[], profile?: object): ObservedServer =>
  ({ info: { queues: Object.fromEntries(queues.map((name) => [name, 1])) }, profile }) as unknown as ObservedServer;

/** Replies to each call as told; by default all turns that were asked for are given. */
function arrange(servers: ObservedServer[], fair: readonly string[]) {
  const clock = new ManualClock(0);
  const calls: string[] = [];
  const replies: { before: number; filled: number }[] = [];
  const fairQueues = new FairQueues();
  for (const name of fair) fairQueues.add(name);
  const observeServers = () => {
    calls.push('look');
    return Promise.resolve(servers);
  };
  const fillTurns = (queue: string, most: number) => {
    calls.push(`${queue} ${most}`);
    return Promise.resolve(replies.shift() ?? { before: 0, filled: most });
  };
  const broker = { fairQueues, obstacles: { observeServers }, maintenance: { fillTurns } };
  return { clock, calls, replies, filler: new TurnFiller({ broker, clock } as never) };
}

describe('TurnFiller', () => {
  it('asks nobody when no queue is fair', async () => {
    const { filler, calls } = arrange([server(['a'])], []);
    expect(await filler.runOnce()).toBe(5_000);
    expect(calls).toEqual([]);
  });

  it('gives turns only in fair queues that servers without a profile serve, and looks for those every 5 s', async () => {
    const { filler, calls, clock } = arrange([server(['a', 'x']), server(['b'], {})], ['a', 'b']);
    expect(await filler.runOnce()).toBe(100);
    clock.advance(4_999);
    await filler.runOnce();
    clock.advance(1);
    await filler.runOnce();
    expect(calls).toEqual(['look', 'a 32', 'a 64', 'look', 'a 128']);
  });

  it('leaves all to servers of ours', async () => {
    const { filler, calls } = arrange([server(['a'], {})], ['a']);
    expect(await filler.runOnce()).toBe(5_000);
    expect(calls).toEqual(['look']);
  });

  it('gives up to 512 turns while they are taken at once, and fewer when many are left', async () => {
    const { filler, calls, replies } = arrange([server(['a'])], ['a']);
    for (let pass = 0; pass < 6; pass++) await filler.runOnce();
    expect(calls.at(-1)).toBe('a 512');
    replies.push({ before: 400, filled: 0 }, { before: 60, filled: 196 });
    expect(await filler.runOnce()).toBe(1_000);
    await filler.runOnce();
    await filler.runOnce();
    expect(calls.slice(-2)).toEqual(['a 256', 'a 256']);
  });
});

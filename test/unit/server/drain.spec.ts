import { once } from 'node:events';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { StoreInfo } from '../../../lib/broker/operations.js';
import { InvalidOptionError } from '../../../lib/errors.js';
import { AsynqEvents } from '../../../lib/events/events.js';
import { StoreCheck } from '../../../lib/server/loops/store-check.js';
import { closeRigs, gate, manualClock, openRig, startRig, turn } from '../../support/server-rig.js';

afterEach(closeRigs);

describe('drain', () => {
  it('claims nothing any more, lets running tasks end, and makes the shutdown quick', async () => {
    const held = gate();
    const { add, server, memory, outcomes } = await startRig({ t: held.handle }, { concurrency: 2 });
    const drained = vi.fn();
    server.events.on('serverDrained', drained);
    await add({ type: 't' });
    await held.entered;
    const draining = server.drain();
    expect(server.status).toBe('stopped');
    const { id } = await add({ type: 't' });
    await turn();
    expect(drained).not.toHaveBeenCalled();
    held.open();
    expect(await Promise.all([draining, server.drain(), server.drain(0)])).toEqual([true, true, expect.any(Boolean)]);
    expect(drained).toHaveBeenCalledTimes(1);
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['done']);
    expect((await memory.inspection.getTask('default', id))?.state).toBe('pending');
    await server.shutdown();
    expect(await server.drain()).toBe(true);
    expect(drained).toHaveBeenCalledTimes(1);
  });

  it('forwards no due tasks and claims no groups any more', async () => {
    const clock = manualClock();
    const aggregate = { pattern: '', aggregate: async () => undefined } as never;
    const { add, server, memory } = await startRig({ t: () => undefined }, { groupGracePeriod: '1s' }, clock, [
      aggregate,
    ]);
    clock.advance(0);
    await turn();
    const later = await add({ type: 't' }, { processAt: clock.now() / 1000 + 3 });
    const grouped = await add({ type: 't', groupKey: 'g' });
    expect(await server.drain()).toBe(true);
    for (let step = 0; step < 10; step++) {
      clock.advance(10_000);
      await turn();
    }
    expect((await memory.inspection.getTask('default', later.id))?.state).toBe('scheduled');
    expect((await memory.inspection.getTask('default', grouped.id))?.state).toBe('aggregating');
  });

  it('stops waiting after its timeout, or when the server is shut down', async () => {
    const clock = manualClock();
    const held = gate();
    const { add, server } = await startRig({ t: held.handle }, { shutdownTimeout: '1s' }, clock);
    clock.advance(0);
    await add({ type: 't' });
    await held.entered;
    const short = server.drain(500);
    clock.advance(500);
    expect(await short).toBe(false);
    expect(server.active).toBe(1);
    const long = server.drain();
    const closing = server.shutdown();
    for (let step = 0; step < 20; step++) {
      clock.advance(500);
      await turn(2);
    }
    await closing;
    expect(await long).toBe(false);
    held.open();
  });

  it('returns at once for a server that was not started', async () => {
    const { server } = openRig({ t: () => undefined });
    expect(await server.drain()).toBe(true);
    expect(server.status).toBe('new');
  });

  it('begins at the configured signal, until the server is shut down', async () => {
    const { server } = await startRig({ t: () => undefined }, { drainSignal: 'SIGTSTP' });
    const drained = new Promise((resolve) => server.events.on('serverDrained', resolve));
    const received = once(process, 'SIGTSTP');
    process.kill(process.pid, 'SIGTSTP');
    await received;
    await drained;
    expect(server.status).toBe('stopped');
    await server.shutdown();
  });

  it('is not stopped by that signal even when it comes late; one listener serves all servers', async () => {
    const servers = await Promise.all(
      [1, 2].map(async () => (await startRig({ t: () => undefined }, { drainSignal: 'SIGTSTP' })).server),
    );
    const listening = process.listenerCount('SIGTSTP');
    for (const server of servers) await server.shutdown();
    expect(process.listenerCount('SIGTSTP')).toBe(listening);
    expect(listening).toBe(1);
  });

  it.each([
    ['SIGTSPT', 'did you mean "SIGTSTP"'],
    ['SIGKILL', 'take "SIGTSTP"'],
    ['SIGTERM', 'take "SIGTSTP"'],
    ['SIGUSR2', 'enableShutdownHooks'],
    [20, 'must name a signal'],
  ])('refuses the signal %o', (drainSignal, text) => {
    const start = () => openRig({ t: () => undefined }, { drainSignal: drainSignal as NodeJS.Signals });
    expect(start).toThrow(InvalidOptionError);
    expect(start).toThrow(text);
  });
});

describe('the check of Redis at the start', () => {
  const node = (partial: Partial<StoreInfo>): StoreInfo => ({
    address: 'a:1',
    version: '7.2.4',
    evictionPolicy: 'noeviction',
    ahead: 0,
    ...partial,
  });

  it.each<[string, StoreInfo[], unknown[]]>([
    ['no Redis', [], []],
    ['one that is well', [node({}), node({ version: '6.2.0' })], []],
    ['one that reports nothing', [node({ version: undefined, evictionPolicy: undefined, ahead: undefined })], []],
    ['one with nearly our time', [node({ ahead: 10_000 }), node({ ahead: -10_000 })], []],
    [
      'one with a later time',
      [node({}), node({ address: 'b:2', ahead: -10_001 })],
      [{ address: 'b:2', ahead: -10_001 }],
    ],
    ['one with an earlier time', [node({ ahead: 3_600_000 })], [{ address: 'a:1', ahead: 3_600_000 }]],
    [
      'one that evicts',
      [node({}), node({ address: 'b:2', evictionPolicy: 'allkeys-lru' })],
      [{ address: 'b:2', policy: 'allkeys-lru' }],
    ],
    [
      'an old one',
      [node({ version: '6.0.16' }), node({ version: '5.0.7' })],
      [{ address: 'a:1', version: '6.0.16', needed: '6.2' }],
    ],
  ])('of %s', async (_, infos, expected) => {
    const events = new AsynqEvents();
    const received: unknown[] = [];
    events.on('storeEvicts', (event) => received.push(event));
    events.on('storeOutdated', (event) => received.push(event));
    events.on('storeClockDiffers', (event) => received.push(event));
    const check = new StoreCheck({ broker: { operations: { storeInfo: async () => infos } }, events });
    expect(await check.runOnce()).toBe(Infinity);
    expect(received).toEqual(expected);
  });
});

import { afterEach, describe, expect, it, vi } from 'vitest';
import { MemoryBroker } from '../../../lib/broker/memory/memory-broker.js';
import type { ManualClock } from '../../../lib/clock.js';
import { Server } from '../../../lib/server/server.js';
import { request } from '../../support/messages.js';
import { manualClock, turn } from '../../support/server-rig.js';

const open: { server: Server; clock: ManualClock }[] = [];

/** A fleet on one broker. */
function fleet() {
  const clock = manualClock();
  const broker = new MemoryBroker(clock);
  const ran: string[] = [];
  const server = (name: string, version?: number) => {
    const handle = ({ id }: { id: string }) => void ran.push(`${name} ${id}`);
    const made = new Server({ broker, handlers: [{ pattern: 'mail', handle, version }], options: { concurrency: 4 } });
    open.push({ server: made, clock });
    return made;
  };
  const add = async (version: number, count = 1, type = 'mail') => {
    const headers = { 'asynq-payload-version': String(version) };
    const requests = Array.from({ length: count }, (_, n) => request({ id: `${type} ${version} ${n}`, type, headers }));
    await broker.producer.enqueue('default', requests);
  };
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      clock.advance(1_000);
      await turn(200);
    }
  };
  const waiting = () => broker.tasks().filter(({ state }) => state === 'held').length;
  return { broker, clock, ran, server, add, pass, waiting };
}

afterEach(async () => {
  for (const { server, clock } of open.splice(0)) {
    let closed = false;
    void server.shutdown().then(() => (closed = true));
    while (!closed) {
      clock.advance(500);
      await turn(2);
    }
  }
});

describe('tasks with a newer payload than their handler knows', () => {
  it('wait for a server that knows it, however many they are', async () => {
    const { ran, server, add, pass, waiting } = fleet();
    const old = server('old');
    await old.start();
    await add(2, 1_000);
    await pass(20);
    expect([ran, waiting()]).toEqual([[], 1_000]);
    await server('new', 2).start();
    await pass(60);
    expect(ran).toHaveLength(1_000);
    expect(new Set(ran).size).toBe(1_000);
    expect(ran.every((line) => line.startsWith('new '))).toBe(true);
  });

  it('are not woken by servers that do not know them, but may run again after their time', async () => {
    const { broker, ran, server, add, pass, waiting } = fleet();
    const events: unknown[] = [];
    for (const one of [server('first'), server('second', 2)]) {
      one.events.on('payloadTooNew', ({ version, known }) => events.push([version, known]));
      await one.start();
    }
    const wake = vi.spyOn(broker.limiting, 'wakeWaiting');
    await add(3, 20);
    await pass(30);
    expect(waiting()).toBe(20);
    const results = await Promise.all(wake.mock.results.map(({ value }) => value as Promise<{ woken: number }>));
    expect(results.reduce((sum, { woken }) => sum + woken, 0)).toBeLessThanOrEqual(20);
    const before = events.length;
    expect(before).toBeLessThanOrEqual(40);
    await pass(90);
    expect(events.length).toBeGreaterThan(before);
    expect(ran).toEqual([]);
    await server('third', 3).start();
    // One that another server has claimed, and put back, waits for its time again.
    for (let tries = 0; ran.length < 20 && tries < 20; tries++) await pass(20);
    expect(ran.filter((line) => line.startsWith('third '))).toHaveLength(20);
  });

  it('run where their version is known, or they have none', async () => {
    const { ran, server, add, pass } = fleet();
    await server('only', 2).start();
    await add(1);
    await add(2);
    await add(1, 1, 'mail:other'); // of the same handler, by its prefix
    await pass(3);
    expect(ran.sort()).toEqual(['only mail 1 0', 'only mail 2 0', 'only mail:other 1 0']);
  });

  it('are searched for less and less often, until some are found', async () => {
    const { broker, clock, server, add, pass } = fleet();
    const times: number[] = [];
    const { usedWaitlists } = broker.limiting;
    vi.spyOn(broker.limiting, 'usedWaitlists').mockImplementation((...args) => {
      times.push((clock.now() - 1_700_000_000_000) / 1_000);
      return usedWaitlists.apply(broker.limiting, args);
    });
    const [old, next] = [server('old'), server('new', 2)];
    await next.start();
    await pass(100);
    const gaps = () => times.slice(1).map((time, index) => time - times[index]!);
    const near = (seconds: number) => expect.toSatisfy((gap: number) => Math.abs(gap - seconds) <= 1);
    expect(gaps()).toEqual([4, 8, 16, 30, 30].map(near));
    next.pauseFetching();
    await old.start();
    await add(2);
    await pass(40);
    expect(gaps().slice(5, 7)).toEqual([30, 2].map(near));
  });

  it('cost nothing where no handler has versions', async () => {
    const { server } = fleet();
    const loops = (one: Server) => one.stats().loops.map(({ loop }) => loop);
    expect(loops(server('plain'))).not.toContain('payload search');
    expect(loops(server('first', 1))).not.toContain('payload search');
    expect(loops(server('second', 2))).toContain('payload search');
  });
});

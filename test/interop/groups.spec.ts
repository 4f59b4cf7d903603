import { expect, it, vi } from 'vitest';

import { describeWithGo } from '../support/go.js';
import type { Peer, PeerServe } from '../support/peer.js';
import { type Interop, PAIRS, useInterop } from './fixture.js';

const AGGREGATE: PeerServe = {
  aggregateTo: 'whole',
  groupGracePeriod: 1_000,
  behaviours: { whole: [{ do: 'ok' }] },
};

/** The lines of every aggregate of the queue that a peer has run. */
const ranBy = (peer: Peer, queue: string): string[][] =>
  peer.seen('start', { queue, type: 'whole' }).map(({ payload }) =>
    Buffer.from(payload ?? '', 'base64')
      .toString()
      .split('\n'),
  );

/** Resolves when nothing is left of the groups and tasks of the queue. */
const untilEmpty = (interop: Interop, queue: string): Promise<void> =>
  interop.until(async () => {
    const keys = await interop.raw.keys(`asynq:{${queue}}:*`);
    expect(keys.filter((key) => /:(t:|g:|groups$|aggregation_sets$|pending$|active$)/.test(key))).toEqual([]);
  });

/** Enqueues a task of ours that joins its group in a second, and waits until somebody has moved it there. */
const untilJoined = async (interop: Interop, queue: string): Promise<void> => {
  const later = { type: 'part', queue, group: 'g:h', payload: Buffer.from('1'), processIn: 1_000 };
  const { id } = await interop.ours.enqueue(later);
  await interop.untilState(queue, id, 'aggregating');
};

describeWithGo('groups', () => {
  const interop = useInterop();

  it.each(PAIRS)('%s enqueues them, %s aggregates', async (from, by) => {
    const queue = interop.queue();
    const server = await interop.serve(interop[by], queue, AGGREGATE);
    for (const [group, line] of [
      ['a', '1'],
      ['a', '2'],
      ['b:c', '3'],
      ['a', '4'],
    ] as const) {
      const made = { type: 'part', queue, group, payload: Buffer.from(line), unique: 60_000 };
      expect(await interop[from].enqueue(made)).toMatchObject({ state: 'aggregating' });
    }
    await untilEmpty(interop, queue);
    await server.shutdown();
    const aggregates = ranBy(interop[by], queue).map((lines) => lines.sort());
    expect(aggregates.sort()).toEqual([['1', '2', '4'], ['3']]);
    // Ours gives the locks of the parts back, Go's leaves them to their time.
    expect(await interop.raw.keys(`asynq:{${queue}}:unique:part:*`)).toHaveLength(by === 'ours' ? 0 : 4);
  });

  it('has each task in one aggregate where both look for them, and Redis reports to ours which of many groups change', async () => {
    const queue = interop.queue();
    const fill = async (round: number): Promise<string[]> => {
      const lines = Array.from({ length: 300 }, (_, n) => `${round}:${n}`);
      const add = (line: string, n: number) =>
        interop[n % 2 ? 'go' : 'ours'].enqueue({
          type: 'part',
          queue,
          group: `user:${line.split(':')[1]}`,
          payload: Buffer.from(line),
        });
      await Promise.all(lines.map(add));
      return lines;
    };
    const lines = await fill(0);
    await interop.serve(interop.ours, queue, { ...AGGREGATE, groupGracePeriod: 3_000 });
    await interop.until(async () => expect(await interop.raw.call('CLIENT', 'LIST')).toMatch(/ flags=\S*B/));
    await interop.serve(interop.go, queue, { ...AGGREGATE, groupGracePeriod: 2_000 });
    for (let round = 1; round <= 4; round++) lines.push(...(await fill(round)));
    await untilEmpty(interop, queue);
    const all = [...ranBy(interop.go, queue), ...ranBy(interop.ours, queue)];
    expect(all.flat().sort()).toEqual(lines.sort());
  });

  it('keeps to the same greatest size on both sides', async () => {
    for (const by of ['go', 'ours'] as const) {
      const queue = interop.queue();
      await Promise.all(
        Array.from({ length: 7 }, (_, n) =>
          interop.go.enqueue({ type: 'part', queue, group: 'g', payload: Buffer.from(`${n}`) }),
        ),
      );
      await interop.serve(interop[by], queue, { ...AGGREGATE, groupMaxSize: 3 });
      await untilEmpty(interop, queue);
      expect(
        ranBy(interop[by], queue)
          .map(({ length }) => length)
          .sort((a, b) => a - b),
      ).toEqual([1, 3, 3]); // they run side by side
    }
  });

  it('puts every task into exactly one aggregate where both sides aggregate one queue', async () => {
    const { go, ours } = interop;
    const queue = interop.queue();
    const both = [go, ours];
    const servers = await Promise.all(
      both.map((peer) => interop.serve(peer, queue, { ...AGGREGATE, groupMaxSize: 5 })),
    );
    const lines = Array.from({ length: 1_000 }, (_, n) => `${n}`);
    await Promise.all(
      lines.map((line, n) =>
        both[n % 2]!.enqueue({ type: 'part', queue, group: `g${n % 20}`, payload: Buffer.from(line) }),
      ),
    );
    await untilEmpty(interop, queue);
    await Promise.all(servers.map((server) => server.shutdown()));
    const all = [...ranBy(go, queue), ...ranBy(ours, queue)];
    expect(all.flat().sort()).toEqual(lines.sort());
    expect(Math.max(...all.map(({ length }) => length))).toBeLessThanOrEqual(5);
  });

  it('hears of what Go adds to one of many groups, old and new', async () => {
    const { go, ours, raw } = interop;
    const queue = interop.queue();
    const server = await interop.serve(ours, queue, { ...AGGREGATE, groupGracePeriod: 600_000, groupMaxSize: 3 });
    const add = (peer: Peer, group: string, line: string) =>
      peer.enqueue({ type: 'part', queue, group, payload: Buffer.from(line) });
    await Promise.all(Array.from({ length: 150 }, (_, n) => add(ours, `g${n}`, 'ours')));
    // From here on our server does not look at all groups any more.
    await interop.until(async () => expect(await raw.call('CLIENT', 'LIST')).toMatch(/ flags=\S*B/));
    for (const line of ['1', '2']) await add(go, 'g7', line);
    for (const line of ['3', '4', '5']) await add(go, 'new', line);
    const whole = (): string[] => ranBy(ours, queue).map((lines) => lines.sort().join());
    await interop.until(async () => expect(whole().sort()).toEqual(['1,2,ours', '3,4,5']));
    await server.shutdown();
  });

  it('lets Go see and move a task that joins its group later', async () => {
    const { go, ours } = interop;
    const queue = interop.queue();
    const later = { type: 'part', queue, group: 'g:h', processIn: 3_600_000 };
    const ids = await Promise.all(['run', 'archive', 'delete'].map(async () => (await ours.enqueue(later)).id));
    const [run, archive, gone] = ids as [string, string, string];
    expect(await go.taskInfo(queue, run)).toMatchObject({ state: 'scheduled', group: 'g:h' });
    expect((await go.list(queue, 'scheduled')).map(({ id }) => id).sort()).toEqual(ids.toSorted());
    expect(await go.queueInfo(queue)).toMatchObject({ scheduled: 3, groups: 0, aggregating: 0 });
    await go.runTask(queue, run);
    await go.archiveTask(queue, archive);
    await go.deleteTask(queue, gone);
    // What is run by hand runs alone, with either.
    await interop.serve(go, queue, { behaviours: { part: [{ do: 'ok' }] } });
    await go.event('end', { id: run });
    expect((await go.taskInfo(queue, archive)).state).toBe('archived');
    await expect(go.taskInfo(queue, gone)).rejects.toMatchObject({ kind: 'task not found' });
  });

  it('aggregates a task that joins its group later, though Go moves it there', async () => {
    const { go, ours } = interop;
    const queue = interop.queue();
    const forwarder = await interop.serve(go, queue, { behaviours: { part: [{ do: 'ok' }] } });
    await untilJoined(interop, queue);
    expect(await interop.raw.exists(`asynq:{${queue}}:groups`)).toBe(0); // nobody would find it
    await forwarder.shutdown();
    await interop.serve(ours, queue, AGGREGATE);
    // Long before the janitor searches.
    await vi.waitFor(() => expect(ranBy(ours, queue)).toEqual([['1']]), { interval: 10 });
    expect(go.seen('start', { queue, type: 'part' })).toEqual([]);
  });

  it('has Go alone aggregate a task that joins its group later', async () => {
    const { go } = interop;
    const queue = interop.queue();
    await interop.serve(go, queue, AGGREGATE);
    await untilJoined(interop, queue);
    // Some seconds later the process that has enqueued it lists the group.
    await vi.waitFor(() => expect(ranBy(go, queue)).toEqual([['1']]), { interval: 50 });
  });

  it('leaves it to Go to aggregate a task that joins its group later', async () => {
    const { go, ours } = interop;
    const queue = interop.queue();
    await interop.serve(ours, queue, { behaviours: AGGREGATE.behaviours });
    await interop.serve(go, queue, AGGREGATE);
    for (const line of ['1', '2', '3']) {
      await ours.enqueue({ type: 'part', queue, group: `g${line}`, payload: Buffer.from(line), processIn: 1_000 });
    }
    await interop.until(async () =>
      expect([...ranBy(go, queue), ...ranBy(ours, queue)].flat().sort()).toEqual(['1', '2', '3']),
    );
  });

  it('lets Go give back the lock of a unique task of ours that it deletes', async () => {
    const { go, ours } = interop;
    const queue = interop.queue();
    const part = { type: 'part', queue, group: 'g', payload: Buffer.from('1'), unique: 60_000 };
    const { id } = await ours.enqueue(part);
    await go.deleteTask(queue, id);
    expect(await interop.raw.keys(`asynq:{${queue}}:unique:*`)).toEqual([]);
    await go.enqueue(part);
  });

  it('takes back what Go claimed and did not finish, though Go leaves the group unlisted', async () => {
    const queue = interop.queue();
    const prefix = `asynq:{${queue}}:`;
    await interop.go.enqueue({ type: 'part', queue, group: 'g:h', payload: Buffer.from('1') });
    // As a Go server leaves it that was killed two minutes ago.
    await interop.raw.rename(`${prefix}g:g:h`, `${prefix}g:g:h:set`);
    await interop.raw.del(`${prefix}groups`);
    await interop.raw.zadd(
      `${prefix}aggregation_sets`,
      String(Math.floor(Date.now() / 1000) - 1),
      `${prefix}g:g:h:set`,
    );
    await interop.serve(interop.ours, queue, AGGREGATE);
    await untilEmpty(interop, queue);
    expect(ranBy(interop.ours, queue)).toEqual([['1']]);
  });
});

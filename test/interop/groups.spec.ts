import { expect, it } from 'vitest';

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
      expect(ranBy(interop[by], queue).map(({ length }) => length)).toEqual([3, 3, 1]);
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

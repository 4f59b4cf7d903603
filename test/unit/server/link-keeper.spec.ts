import { beforeEach, describe, expect, it } from 'vitest';
import type { Caused, LinksRole, Parcel, PassReply } from '../../../lib/broker/links.js';
import type { MaintenanceRole } from '../../../lib/broker/maintenance.js';
import { BrokerUnavailableError, UndecodableMessageError, WakeUpRefusedError } from '../../../lib/errors.js';
import { AsynqEvents } from '../../../lib/events/events.js';
import { LinkKeeper } from '../../../lib/server/loops/link-keeper.js';
import { manualClock, turn } from '../../support/server-rig.js';

const NOTHING: PassReply = { settled: 0, late: 0, parcels: [], empty: false };
const parcel: Parcel = { from: 'a', to: 'b', key: 'k', body: '{}', data: Buffer.alloc(0) };

/** A store whose places and findings the test decides. */
class Store implements Pick<LinksRole, 'places' | 'lease' | 'keep'> {
  known: string[] = [];
  reads = 0;
  readonly calls: string[] = [];
  readonly owners = new Map<string, string>();
  readonly found = new Map<string, PassReply[]>();
  readonly broken = new Set<string>();
  readonly hanging = new Set<string>();
  away = false;

  async places(): Promise<string[]> {
    this.reads += 1;
    if (this.away) throw new BrokerUnavailableError('away');
    return this.known;
  }

  async lease(place: string, owner: string, ttl: number): Promise<boolean> {
    if (this.hanging.has(place)) await new Promise(() => undefined);
    if (this.broken.has(place)) throw new BrokerUnavailableError('away');
    if ((this.owners.get(place) ?? owner) !== owner) return false;
    if (ttl > 1) this.owners.set(place, owner);
    else this.owners.delete(place);
    return true;
  }

  readonly searched: string[] = [];
  async deleteLateResults(place: string): Promise<number> {
    this.searched.push(place);
    if (this.broken.has(`search ${place}`)) throw new BrokerUnavailableError('away');
    return 0;
  }

  async keep(place: string, age: number): Promise<PassReply> {
    this.calls.push(`${place} ${age}`);
    return this.found.get(place)?.shift() ?? NOTHING;
  }
}

describe('the link keeper', () => {
  const clock = manualClock();
  let store: Store;
  let carried: Parcel[];
  let kept: object[];
  let errors: unknown[];
  let keeper: LinkKeeper;
  let refuses = false;

  const make = (): LinkKeeper => {
    const events = new AsynqEvents();
    events.on('linksKept', (event) => kept.push(event));
    events.on('loopFailed', ({ error }) => errors.push(error));
    const relay = {
      carry: ({ parcels = [] }: Partial<Caused>) => void carried.push(...parcels),
      idle: async () => undefined,
    };
    const source = {
      armPlaces: async () => {
        if (refuses) throw new WakeUpRefusedError('no notices here');
        return store.places();
      },
    };
    const links = store as unknown as LinksRole;
    const maintenance = store as unknown as MaintenanceRole;
    return new LinkKeeper({ broker: { links, maintenance }, source, relay, clock, events });
  };

  beforeEach(() => {
    store = new Store();
    [carried, kept, errors, refuses] = [[], [], [], false];
    keeper = make();
  });

  it('reads one key, rarely, while nothing is linked', async () => {
    const delay = await keeper.runOnce();
    expect(delay).toBeGreaterThan(20_000);
    expect([store.reads, store.calls]).toEqual([1, []]);
  });

  it('is asked for a pass when this process has made a link, and only until it knows a place', async () => {
    await keeper.runOnce();
    expect(keeper.notice()).toBe(500);
    store.known = ['q'];
    clock.advance(500);
    expect(await keeper.runOnce()).toBeLessThan(3_000);
    expect(store.calls).toEqual(['q 2']);
    expect(keeper.notice()).toBeUndefined();
  });

  it('does not miss a link that is made during a pass', async () => {
    const pass = keeper.runOnce();
    keeper.notice();
    expect(await pass).toBe(500);
  });

  it('searches each place that it keeps for late results, once an hour', async () => {
    store.known = ['p', 'q', 'theirs'];
    store.owners.set('theirs', 'another server');
    store.broken.add('search p');
    for (let minute = 0; minute < 5 * 60; minute++) {
      await keeper.runOnce();
      clock.advance(60_000);
    }
    expect(store.searched.length).toBeGreaterThanOrEqual(6);
    expect(store.searched.length).toBeLessThanOrEqual(16);
    expect(new Set(store.searched)).toEqual(new Set(['p', 'q']));
    expect(errors).toHaveLength(store.searched.filter((place) => place === 'p').length);
  });

  it('goes on until a place has nothing more to do, carries what it finds, and says so', async () => {
    store.known = ['q'];
    store.found.set('q', [
      { settled: 3, late: 1, parcels: [parcel], empty: false },
      { settled: 1, late: 0, parcels: [], empty: false },
    ]);
    await keeper.runOnce();
    expect(store.calls).toHaveLength(3);
    expect(carried).toEqual([parcel]);
    expect(kept).toEqual([
      { place: 'q', settled: 3, parcels: 1 },
      { place: 'q', settled: 1, parcels: 0 },
    ]);
  });

  it('tries a message that cannot be carried once per pass', async () => {
    store.known = ['q'];
    store.found.set(
      'q',
      Array.from({ length: 50 }, () => ({ settled: 0, late: 1, parcels: [parcel], empty: false })),
    );
    await keeper.runOnce();
    expect(store.calls).toHaveLength(2);
  });

  it('keeps a place every two seconds or so', async () => {
    store.known = ['q'];
    const delay = await keeper.runOnce();
    expect(delay).toBeGreaterThan(1_400);
    clock.advance(delay - 50);
    await keeper.runOnce();
    expect(store.calls).toHaveLength(1);
    clock.advance(50);
    await keeper.runOnce();
    expect(store.calls).toHaveLength(2);
  });

  it('leaves a place to the server that has its lease, and takes it over when that one closes', async () => {
    store.known = ['q'];
    const other = make();
    await other.runOnce();
    await keeper.runOnce();
    expect(store.calls).toHaveLength(1);
    await other.close();
    clock.advance(6_500);
    await keeper.runOnce();
    expect(store.calls).toHaveLength(2);
  });

  it('is not held up by a place that fails or hangs, and tries it again', async () => {
    store.known = ['good', 'bad', 'hung'];
    store.broken.add('bad');
    store.hanging.add('hung');
    const first = keeper.runOnce();
    await turn();
    clock.advance(1_000);
    expect(await first).toBeGreaterThanOrEqual(100);
    expect(store.calls).toEqual(['good 2']);
    expect(errors).toHaveLength(1);
    store.broken.clear();
    clock.advance(3_000);
    await keeper.runOnce();
    expect(store.calls.toSorted()).toEqual(['bad 2', 'good 2', 'good 2']);
  });

  it('reports what is damaged, and does the rest', async () => {
    store.known = ['one'];
    const damage = new UndecodableMessageError('a record is damaged');
    store.found.set('one', [{ ...NOTHING, parcels: [parcel], damage }]);
    await keeper.runOnce();
    expect(errors).toEqual([damage]);
    expect(carried).toEqual([parcel]);
  });

  it('goes on with the places it knows when they cannot be read', async () => {
    store.known = ['q'];
    await keeper.runOnce();
    store.away = true;
    clock.advance(3_000);
    await keeper.runOnce();
    expect(store.calls).toHaveLength(2);
    expect(errors).toHaveLength(1);
  });

  it('fails, and so backs off, when nothing can be read at all', async () => {
    store.away = true;
    await expect(keeper.runOnce()).rejects.toThrow('away');
  });

  it('reads more often where Redis sends no notices', async () => {
    refuses = true;
    expect(await keeper.runOnce()).toBeLessThan(4_000);
    expect(store.reads).toBe(1);
  });

  it('forgets a place that is gone', async () => {
    store.known = ['q'];
    await keeper.runOnce();
    store.known = [];
    clock.advance(3_000);
    await keeper.runOnce();
    expect(store.calls).toHaveLength(1);
    clock.advance(3_000);
    expect(await keeper.runOnce()).toBeGreaterThan(20_000);
  });

  it('by hand does everything there is at once, whoever has the lease', async () => {
    store.known = ['q', 'r'];
    store.owners.set('q', 'another');
    store.found.set('q', [{ settled: 1, late: 0, parcels: [], empty: false }]);
    await keeper.runByHand();
    expect(store.calls).toEqual(['q 0', 'q 0', 'r 0']);
  });
});

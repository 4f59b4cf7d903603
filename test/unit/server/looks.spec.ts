import { describe, expect, it } from 'vitest';
import { type Claimant, HeldClaims } from '../../../lib/server/attempt/held-claims.js';
import { type Looker, Looks } from '../../../lib/server/attempt/looks.js';
import { manualClock, turn } from '../../support/server-rig.js';

function setup({ freeSlots = 1_000, isBehind = false, wanted = 0 } = {}) {
  const clock = manualClock();
  const listener = { freeSlots, isBehind };
  const held = { wanted };
  const looks = new Looks(clock, listener, held);
  const looked: string[] = [];
  const looker = (name: string, needsSlot: boolean, look: () => boolean | Promise<boolean> = () => false): Looker => ({
    needsSlot,
    look: async () => {
      looked.push(name);
      return look();
    },
  });
  const pass = async (milliseconds: number): Promise<void> => {
    for (let left = milliseconds; left > 0; left -= 10) {
      clock.advance(10);
      await turn();
    }
  };
  return { clock, listener, held, looks, looked, looker, pass };
}

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `k${index}`);

describe('Looks', () => {
  it.each([true, false])(
    'lets some hundred look in vain each second, in their order (needs a slot: %s)',
    async (needs) => {
      const { looks, looked, looker, pass } = setup();
      for (const name of names(1_000)) looks.add(looker(name, needs));
      await turn();
      expect(looked).toHaveLength(200);
      await pass(1_000);
      expect(looked.length).toBeGreaterThan(380);
      expect(looked.length).toBeLessThanOrEqual(400);
      await pass(4_000);
      expect(looked).toEqual(names(1_000));
    },
  );

  it('lets all look at once that find something', async () => {
    const { looks, looked, looker } = setup();
    for (const name of names(1_000)) {
      looks.add(looker(name, true, () => true));
      if (looked.length % 100 === 0) await turn();
    }
    expect(looked).toEqual(names(1_000));
  });

  it('looks for as many as there are slots for which none is wanted, and goes on when there are more', async () => {
    const { looks, looked, looker, listener, held, clock } = setup({ freeSlots: 5, wanted: 2 });
    let end = (): void => undefined;
    const ended = new Promise<boolean>((resolve) => (end = () => resolve(true)));
    for (const name of names(9)) looks.add(looker(name, true, () => looks.whileReserved(1, () => ended)));
    expect(looked).toEqual(names(3));
    expect(looks.room).toBe(0);
    held.wanted = 1;
    looks.go();
    expect(looked).toEqual(names(4));
    listener.freeSlots = 0;
    end();
    await turn();
    clock.advance(1_000);
    await turn();
    expect(looked).toEqual(names(4));
    listener.freeSlots = 4;
    clock.advance(50);
    await turn();
    expect(looked.length).toBeGreaterThanOrEqual(7);
  });

  it('looks for one at a time when all slots are taken, so that pending tasks do not take each of them for ever', async () => {
    const { looks, looked, looker, held, pass } = setup({ freeSlots: 0 });
    const rooms: number[] = [];
    for (const name of names(9)) {
      looks.add(
        looker(name, true, () => {
          rooms.push(looks.room);
          held.wanted = 1;
          return true;
        }),
      );
    }
    expect(looked).toEqual([]);
    await pass(500);
    expect(looked).toEqual(['k0']);
    expect(rooms).toEqual([1]);
    held.wanted = 0;
    await pass(50);
    expect(looked).toEqual(['k0', 'k1']);
  });

  it('has slots again when a look has failed', async () => {
    const { looks } = setup({ freeSlots: 1 });
    await expect(looks.whileReserved(1, () => Promise.reject(new Error('away')))).rejects.toThrow('away');
    expect(looks.room).toBe(1);
  });

  it('wakes little while other tasks are pending, and goes on when none are', async () => {
    const { looks, looked, looker, listener, pass } = setup({ isBehind: true, freeSlots: 0 });
    for (const name of names(100)) looks.add(looker(name, false));
    expect(looked).toEqual([]);
    await pass(200);
    expect(looked).toEqual(names(4));
    listener.isBehind = false;
    looks.go();
    expect(looked).toEqual(names(100));
  });

  it('forgets who no longer looks, and all when it is closed', async () => {
    const { looks, looked, looker, listener, pass } = setup({ freeSlots: 0 });
    const [one, other] = [looker('one', true), looker('other', true)];
    looks.add(one);
    looks.add(other);
    looks.delete(one);
    listener.freeSlots = 1_000;
    await pass(100);
    expect(looked).toEqual(['other']);
    looks.close();
    looks.add(one);
    await pass(100);
    expect(looked).toEqual(['other']);
  });
});

describe('HeldClaims', () => {
  const claimant = (scope: string): Claimant => ({
    scope,
    claiming: () => undefined,
    arriving: () => undefined,
    claimed: () => undefined,
  });

  it('knows how many are wanted in each queue and in all, whatever is taken and dropped', () => {
    const told: [string, number][] = [];
    const held = new HeldClaims((queue, wanted) => told.push([queue, wanted]));
    const [a, b] = [claimant('a'), claimant('b')];
    held.want('one', a, { now: 2, ahead: 1 });
    held.want('one', b, { now: 3, ahead: 0 });
    held.want('one', a, { now: 1, ahead: 0 });
    held.want('two', b, { now: 4, ahead: 0 });
    expect(held.wanted).toBe(10);
    const claim = held.take('one', 4);
    expect([...claim!.counts]).toEqual([
      [a, { now: 3, ahead: 1 }],
      [b, { now: 1, ahead: 0 }],
    ]);
    expect(claim!.ahead).toBe(1);
    expect(held.wanted).toBe(6);
    held.drop(b);
    expect(held.wanted).toBe(0);
    expect(held.take('one', 9)).toBeUndefined();
    expect(told).toEqual([
      ['one', 2],
      ['one', 5],
      ['one', 6],
      ['two', 4],
      ['one', 2],
      ['one', 0],
      ['two', 0],
    ]);
  });

  it('takes those ahead of claimants behind one that has no slot', () => {
    const held = new HeldClaims(() => undefined);
    const [a, b] = [claimant('a'), claimant('b')];
    held.want('one', a, { now: 1, ahead: 0 });
    held.want('one', b, { now: 0, ahead: 2 });
    expect([...held.take('one', 0)!.counts]).toEqual([[b, { now: 0, ahead: 2 }]]);
    expect(held.take('one', 0)).toBeUndefined();
    expect(held.wanted).toBe(1);
  });
});

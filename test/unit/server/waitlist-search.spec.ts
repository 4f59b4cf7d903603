import { expect, it } from 'vitest';
import { MemoryBroker } from '../../../lib/broker/memory/memory-broker.js';
import { WAITLISTS_AT_ONCE } from '../../../lib/broker/limiting.js';
import { ManualClock } from '../../../lib/clock.js';
import { WaitlistSearch } from '../../../lib/server/attempt/waitlist-search.js';
import { request } from '../../support/messages.js';

const KEYS = 5 * WAITLISTS_AT_ONCE;
const of = (names: ReadonlySet<string>): number => [...names].filter((name) => name.startsWith('key:')).length;

/** A search in a queue with so many waitlists of keys, and after them one that is of none. */
async function search(keys: number) {
  const broker = new MemoryBroker(new ManualClock(1_700_000_000_000));
  const waitlists = [...Array.from({ length: keys }, (_, n) => `key:${n}`), 'alone'];
  for (let first = 0; first < waitlists.length; first += 500) {
    const some = waitlists.slice(first, first + 500);
    await broker.producer.enqueue(
      'default',
      some.map(() => request()),
    );
    const { tasks } = await broker.consumer.exchange('default', { settle: [], take: some.length });
    const settle = tasks.map(({ lease }, index) => ({ kind: 'wait' as const, lease, waitlist: some[index]! }));
    await broker.consumer.exchange('default', { settle, take: 0 });
  }
  const searching = new WaitlistSearch(broker.limiting);
  const found = new Set<string>();
  const known = { names: ['alone', 'unused'], isNew: (name: string) => name.startsWith('key:') && !found.has(name) };
  return async (left: number) => {
    const names = await searching.find('default', known, { left });
    for (const name of names) found.add(name);
    return { names, found };
  };
}

it('finds all waitlists where there are few', async () => {
  const find = await search(10);
  for (let passes = 0; passes < 2; passes++) expect((await find(100)).names.size).toBe(11);
});

it('finds a part of many in each pass, and all after some; the one that is of no key each time', async () => {
  const find = await search(KEYS);
  for (let passes = 1; passes <= 5; passes++) {
    const { names, found } = await find(WAITLISTS_AT_ONCE - 1);
    expect(of(names)).toBe(WAITLISTS_AT_ONCE);
    expect(of(found)).toBe(passes * WAITLISTS_AT_ONCE);
    expect(names.has('alone')).toBe(true);
    expect(names.has('unused')).toBe(false);
  }
});

it('reads on where all are known, and nothing of keys where there is no room', async () => {
  const find = await search(KEYS);
  expect((await find(KEYS + 1)).names.size).toBe(KEYS + 1);
  expect((await find(1)).names.size).toBe(KEYS + 1);
  expect([...(await find(0)).names]).toEqual(['alone']);
});

import { expect, it } from 'vitest';
import type { PolicyOf } from '../../lib/broker/groups.js';
import { GroupIndex, MOST_GROUPS } from '../../lib/broker/redis/group-index.js';
import type { GroupCheck, GroupLook, LookOptions } from '../../lib/broker/redis/group-claims.js';
import type { GroupSearch } from '../../lib/broker/redis/group-search.js';
import { ManualClock } from '../../lib/clock.js';
import { Keyspace } from '../../lib/wire/keys.js';

const keys = new Keyspace().queue('default');
const policyOf: PolicyOf = () => ({ gracePeriod: 60, maxDelay: 0, maxSize: 3 });

/** An index over a list of names of which each look finds that so many seconds are left. */
function indexOver(names: readonly string[], left: (group: string) => number) {
  const clock = new ManualClock(1_700_000_000_000);
  const looks: { groups: string[]; options: LookOptions }[] = [];
  const search = (): GroupSearch => {
    const pages = Array.from({ length: Math.ceil(names.length / 100) }, (_, n) => names.slice(n * 100, n * 100 + 100));
    return { page: async () => pages.shift(), ended: false } as unknown as GroupSearch;
  };
  const look = async (checks: readonly GroupCheck[], options: LookOptions): Promise<GroupLook> => {
    const groups = checks.map(({ group }) => group);
    looks.push({ groups, options });
    const due = groups.map((group) => options.now + left(group));
    if (options.limit === 0) return { sets: [], dues: due };
    const claimed = groups.filter((group) => left(group) <= 0).slice(0, options.limit);
    const sets = claimed.map((group) => ({ queue: 'default', group, key: `${keys.group(group)}:set`, deadline: 1 }));
    return { sets, dues: groups.map((group, index) => (claimed.includes(group) ? undefined : due[index])) };
  };
  return { clock, looks, index: new GroupIndex({ clock, keys, search, look }) };
}

it('does not remember more groups than fit', async () => {
  const fits = indexOver(
    Array.from({ length: MOST_GROUPS }, (_, n) => `g${n}`),
    () => 60,
  );
  await fits.index.claim(policyOf, 10);
  expect(fits.index.isFull).toBe(false);
  fits.index.hear(keys.group('one more'));
  expect(fits.index.isFull).toBe(true);
  const many = indexOver(
    Array.from({ length: MOST_GROUPS + 1_000 }, (_, n) => `g${n}`),
    () => 0,
  );
  expect((await many.index.claim(policyOf, 10)).sets).toEqual([]);
  expect(many.index.isFull).toBe(true);
  expect(many.looks.length).toBeLessThan(MOST_GROUPS / 100 + 5);
});

it('looks at what has changed once a second while more is due than can be claimed', async () => {
  const { index, clock, looks } = indexOver(
    Array.from({ length: 50 }, (_, n) => `g${n}`),
    (group) => (group === 'heard' ? 60 : 0),
  );
  await index.claim(policyOf, 1);
  index.hear(keys.group('heard'));
  looks.length = 0;
  const { sets, nextDue } = await index.claim(policyOf, 1);
  expect([sets.length, nextDue]).toEqual([1, 1_700_000_000]);
  expect(looks.map(({ groups }) => groups.length)).toEqual([1]);
  clock.advance(1_000);
  await index.claim(policyOf, 1);
  expect(looks.map(({ groups }) => groups)).toContainEqual(['heard']);
  expect((await index.claim(policyOf, 100)).nextDue).toBe(1_700_000_061);
});

it('takes no notice of the sets that it has claimed', async () => {
  const { index, looks, clock } = indexOver(['a'], () => 0);
  const { sets } = await index.claim(policyOf, 10);
  looks.length = 0;
  index.hear(sets[0]!.key);
  clock.advance(5_000);
  await index.claim(policyOf, 10);
  expect(looks).toEqual([]);
});

import { expect, it } from 'vitest';
import type { PolicyOf } from '../../lib/broker/groups.js';
import { GroupIndex } from '../../lib/broker/redis/group-index.js';
import type { GroupCheck, GroupLook, LookOptions } from '../../lib/broker/redis/group-claims.js';
import type { GroupSearch } from '../../lib/broker/redis/group-search.js';
import { ManualClock } from '../../lib/clock.js';
import { Keyspace } from '../../lib/wire/keys.js';

const keys = new Keyspace().queue('default');
const MOST = 1_000;
const policyOf: PolicyOf = () => ({ gracePeriod: 60, maxDelay: 0, maxSize: 3 });

/** An index over a list of names of which each look finds that so many seconds are left. */
function indexOver(names: readonly string[], left: (group: string) => number | undefined) {
  const clock = new ManualClock(1_700_000_000_000);
  const looks: { groups: string[]; options: LookOptions }[] = [];
  const hooks = { looked: (): void => {} };
  const search = (): GroupSearch => {
    const pages = Array.from({ length: Math.ceil(names.length / 100) }, (_, n) => names.slice(n * 100, n * 100 + 100));
    return { page: async () => pages.shift(), ended: false } as unknown as GroupSearch;
  };
  const look = async (checks: readonly GroupCheck[], options: LookOptions): Promise<GroupLook> => {
    const groups = checks.map(({ group }) => group);
    looks.push({ groups, options });
    hooks.looked();
    const dues = groups.map((group) => {
      const seconds = left(group);
      return seconds === undefined ? undefined : options.now + seconds;
    });
    if (options.limit === 0) return { sets: [], dues };
    const claimed = groups.filter((_, index) => dues[index]! <= options.now).slice(0, options.limit);
    const sets = claimed.map((group) => ({ queue: 'default', group, key: `${keys.group(group)}:set`, deadline: 1 }));
    return { sets, dues: groups.map((group, index) => (claimed.includes(group) ? undefined : dues[index])) };
  };
  return { clock, looks, hooks, index: new GroupIndex({ clock, keys, search, look }, MOST) };
}

const named = (count: number): string[] => Array.from({ length: count }, (_, n) => `g${n}`);

it('does not remember more groups than fit', async () => {
  const fits = indexOver(named(1_000), () => 60);
  await fits.index.claim(policyOf, 10);
  expect(fits.index.isFull).toBe(false);
  for (const name of named(1_001)) fits.index.hear(keys.group(name));
  expect((await fits.index.claim(policyOf, 10)).sets).toEqual([]);
  expect(fits.index.isFull).toBe(true);
  const many = indexOver(named(2_000), () => 0);
  expect((await many.index.claim(policyOf, 10)).sets).toEqual([]);
  expect(many.index.isFull).toBe(true);
  expect(many.looks.length).toBeLessThan(15);
});

it('reads on where groups that have ended meanwhile make room for the rest of the list', async () => {
  const ended = new Set<string>();
  const { index, looks, hooks } = indexOver(named(1_800), (group) => (ended.has(group) ? undefined : 60));
  hooks.looked = () => {
    if (looks.length !== 11) return;
    for (const name of named(900)) {
      ended.add(name);
      index.hear(keys.group(name));
    }
  };
  expect((await index.claim(policyOf, 10)).nextDue).toBe(1_700_000_000);
  expect(index.isFull).toBe(false);
  expect(await index.claim(policyOf, 10)).toEqual({ sets: [], nextDue: 1_700_000_060 });
  expect(new Set(looks.flatMap(({ groups }) => groups))).toEqual(new Set(named(1_800)));
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

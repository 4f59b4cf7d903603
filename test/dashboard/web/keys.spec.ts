import { afterAll, expect, it, vi } from 'vitest';
import { KEY_GROUPS } from '../../../lib/dashboard/web/app/key-list.js';

afterAll(() => vi.unstubAllGlobals());

it('every key of the console is in the list of keys, and no other key of letters is', async () => {
  vi.stubGlobal('location', { hash: '' });
  vi.stubGlobal('window', { addEventListener: () => undefined });
  const { KEYS, TARGETS } = await import('../../../lib/dashboard/web/app/keys.js');
  const listed = KEY_GROUPS.flatMap(({ keys }) => keys.flatMap(([combination]) => combination.split('  ')));
  const known = [...Object.keys(KEYS), ...Object.keys(TARGETS).map((key) => `g ${key}`)];
  expect(listed.filter((one) => /^(?:[a-z/?]|g .)$/.test(one)).toSorted()).toEqual(
    known.filter((one) => one !== 'g q').toSorted(), // named beside `g o`
  );
});

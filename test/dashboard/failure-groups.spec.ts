import { expect, it } from 'vitest';
import { type FailedTask, groupFailures } from '../../lib/dashboard/failure-groups.js';

const failed = (error: string, more: Partial<FailedTask> = {}): FailedTask => ({
  id: 'x',
  type: 'mail',
  state: 'retry',
  error,
  failedAt: new Date(1000),
  ...more,
});

it.each<[string, string, string, string]>([
  ['numbers', 'connect ECONNREFUSED 10.0.0.7:5432', 'connect ECONNREFUSED 10.0.0.12:5432', 'connect ECONNREFUSED'],
  [
    'ids',
    'order 3f2b8a90-13cd-4f6e-9d1f-0c1d2e3f4a5b is gone',
    'order 00000000-13cd-4f6e-9d1f-aaaaaaaaaaaa is gone',
    'is gone',
  ],
  ['hex', 'key deadbeef12 unknown', 'key 0123456789abcdef unknown', 'unknown'],
  ['quoted texts', 'no user "ann" here', 'no user "bob" here', 'no user'],
  ['addresses', 'ann@example.com: mailbox is full', 'bob.b@example.org: mailbox is full', ': mailbox is full'],
  ['what is hidden', 'card [redacted] refused', 'card [redacted] refused', 'refused'],
  ['what follows the first line', 'boom\n  at a.js', 'boom\n  at b.js', 'boom'],
])('failures that differ by %s are one', (_, one, other, match) => {
  const groups = groupFailures([failed(one), failed(other)]);
  expect(groups).toMatchObject([{ match, retry: 2, archived: 0 }]);
  for (const error of [one, other]) expect(error).toContain(groups[0]!.match);
});

it('groups failures by type and reason, the most frequent first', () => {
  const groups = groupFailures([
    failed('timeout'),
    failed('refused', { state: 'archived', failedAt: new Date(3000), id: 'newest' }),
    failed('refused', { failedAt: new Date(2000) }),
    failed('refused', { failedAt: undefined }),
    failed('timeout', { type: 'sms', failedAt: new Date(500) }),
  ]);
  expect(groups).toMatchObject([
    {
      type: 'mail',
      error: 'refused',
      retry: 2,
      archived: 1,
      taskId: 'newest',
      first: new Date(2000),
      last: new Date(3000),
    },
    { type: 'mail', error: 'timeout', retry: 1 },
    { type: 'sms', error: 'timeout', retry: 1 },
  ]);
});

it('an error without a constant part gives nothing to search for', () => {
  expect(groupFailures([failed('404'), failed('500')])).toMatchObject([{ match: '', retry: 2 }]);
});

it('long errors are grouped fast', () => {
  const error = `${'a@'.repeat(50_000)}"${'f'.repeat(100_000)}`;
  const start = performance.now();
  groupFailures(Array.from({ length: 200 }, () => failed(error)));
  expect(performance.now() - start).toBeLessThan(20_000); // on an idle machine 20 ms
});

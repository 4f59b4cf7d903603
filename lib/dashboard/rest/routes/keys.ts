import type { FairKeyInfo } from '../../../inspector/fair-keys.js';
import { FAIRNESS_HEADER } from '../../../wire/fairness.js';
import type { Dashboard } from '../../dashboard.js';
import { BadRequest } from '../api-error.js';
import { given, SIZE_PARAMETER, sizeOf } from '../query.js';
import type { ApiRequest, QueryParameter, Route } from '../route.js';
import { amount, count, flag, listOf, oneOf, orNull, ref, shape, text, time } from '../schema.js';
import { timeOrNull } from '../shapes/times.js';

const SORTS = ['waiting', 'name'] as const;
const LIMITS = ['concurrency', 'rate'] as const;

export const keySchemas = {
  FairKey: shape({
    key: text('empty: tasks without a key'),
    waiting: count('tasks in its line'),
    running: orNull(count('tasks that run, or have a slot; null: not known, as too many tasks are active')),
    weight: amount('turns for each of a key of weight 1'),
    concurrency: orNull(count('tasks that may run at a time; null: no limit')),
    rate: orNull(shape({ max: count(), per_ms: count() })),
    held: orNull(
      shape({
        by: listOf(oneOf(LIMITS)),
        until: orNull(time('when it is looked at again at the latest; a slot may be free before')),
      }),
    ),
  }),
};

const PARAMETERS: readonly QueryParameter[] = [
  SIZE_PARAMETER,
  { name: 'cursor', description: 'the next_cursor of the page before' },
  { name: 'search', description: 'only keys with this text in them' },
  { name: 'held', description: '`true`: only keys that a limit of their own holds back' },
  { name: 'sort', description: '`waiting`: most waiting tasks first, or `name`; default `waiting`' },
];

const show = ({ key, waiting, running, weight, concurrency, rate, held }: FairKeyInfo) => ({
  key,
  waiting,
  running: running ?? null,
  weight,
  concurrency: concurrency ?? null,
  rate: rate ? { max: rate.max, per_ms: rate.per } : null,
  held: held ? { by: held.by, until: timeOrNull(held.until) } : null,
});

/** Keys are in a header of the tasks. Of what type these are is not known here. */
export const hidesKeys = ({ presenter }: Dashboard, queue: string): boolean =>
  presenter.hidesHeader({ type: '', queue }, FAIRNESS_HEADER);

async function list(dashboard: Dashboard, { params, query }: ApiRequest) {
  const queue = params.queue!;
  await dashboard.requireQueue(queue);
  if (hidesKeys(dashboard, queue)) return { keys: [], next_cursor: null, redacted: true };
  const sort = given(query, 'sort');
  if (sort !== undefined && sort !== 'waiting' && sort !== 'name') {
    throw new BadRequest(`sort is ${JSON.stringify(sort)}; it must be ${SORTS.join(' or ')}`);
  }
  const { keys, cursor } = await dashboard.inspector.fairnessKeys(queue, {
    size: sizeOf(query),
    sort,
    held: query.get('held') === 'true',
    cursor: given(query, 'cursor'),
    search: given(query, 'search'),
  });
  return { keys: keys.map(show), next_cursor: cursor ?? null, redacted: false };
}

export const keyRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'queues/{queue}/keys',
    summary:
      'The keys of a fair queue: what waits and runs, and what holds them back. Each page reads the names of all',
    query: PARAMETERS,
    reply: shape({
      keys: listOf(ref('FairKey')),
      next_cursor: orNull(text('null: this is the last page')),
      redacted: flag('a rule hides them'),
    }),
    handle: list,
  },
];

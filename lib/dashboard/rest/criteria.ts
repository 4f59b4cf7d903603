import type { Duration } from '../../duration.js';
import { type TaskCriteria, fieldOf } from '../../inspector/criteria.js';
import type { TaskInfo } from '../../task/info.js';
import type { Dashboard } from '../dashboard.js';
import { BadRequest } from './api-error.js';
import { given } from './query.js';
import type { QueryParameter } from './route.js';
import { type Schema, text } from './schema.js';

/** What a task must have to be found, by name; all that are given count. */
const DESCRIPTIONS = {
  type: 'the beginning of the type',
  id: 'the beginning of the id',
  payload: 'text in the payload; of redacted tasks, in its visible part',
  field: 'a field of the payload and its value, as order.id=17; not a redacted one, nor in more than 65,536 bytes',
  error: 'text in the last error; of redacted tasks, in its visible part',
  older_than:
    'a duration, as 2h: in this state for so long at least; for tasks that are active, pending, to be retried, archived or completed',
} as const;

const CRITERIA = Object.keys(DESCRIPTIONS) as (keyof typeof DESCRIPTIONS)[];
export type Criteria = Partial<Record<keyof typeof DESCRIPTIONS, string>>;

export const CRITERIA_PARAMETERS: readonly QueryParameter[] = CRITERIA.map((name) => ({
  name,
  description: DESCRIPTIONS[name],
}));

export const CRITERIA_FIELDS: Readonly<Record<string, Schema>> = Object.fromEntries(
  CRITERIA.map((name) => [name, text(DESCRIPTIONS[name])]),
);

export const hasCriteria = (query: URLSearchParams): boolean =>
  CRITERIA.some((name) => given(query, name) !== undefined);

export const criteriaOf = (query: URLSearchParams): Criteria =>
  Object.fromEntries(CRITERIA.flatMap((name) => (query.get(name) ? [[name, query.get(name)]] : [])));

/** Those of a body that are not empty. @throws BadRequest when there are none */
export function requireCriteria(given: Criteria): Criteria {
  const criteria = Object.fromEntries(CRITERIA.flatMap((name) => (given[name] ? [[name, given[name]]] : [])));
  if (Object.keys(criteria).length > 0) return criteria;
  throw new BadRequest(`nothing to compare with; give one of ${CRITERIA.join(', ')}`);
}

/** Counts the bytes of payloads that were read. */
export interface Searched {
  bytes: number;
}

/** The criteria as the inspector takes them. @throws BadRequest */
export function toTaskCriteria(dashboard: Dashboard, criteria: Criteria, searched: Searched): TaskCriteria {
  const { type, id, older_than: olderThan } = criteria;
  const where = visibleMatch(dashboard, criteria, searched);
  return { type, id, olderThan: olderThan as Duration | undefined, where };
}

export const readsPayloads = ({ payload, field }: Criteria): boolean => payload !== undefined || field !== undefined;

/**
 * A filter for the visible part of payloads and errors. Hidden parts are not read, so neither
 * results nor timing reveal them. `undefined` if neither is searched.
 *
 * @throws BadRequest
 */
function visibleMatch(
  { presenter }: Dashboard,
  criteria: Criteria,
  searched: Searched,
): ((task: TaskInfo) => boolean) | undefined {
  const { payload, error } = criteria;
  const hasField = fieldMatch(criteria.field);
  if (!readsPayloads(criteria) && error === undefined) return undefined;
  return (task) => {
    if (error !== undefined && !presenter.presentError({ ...task, error: task.lastErr }).includes(error)) return false;
    if (!readsPayloads(criteria)) return true;
    searched.bytes += task.payload.length;
    if (payload !== undefined && !presenter.isInPayload(task, payload)) return false;
    return !hasField || hasField(presenter.visibleValue(task));
  };
}

/** @param given `order.id=17` @throws BadRequest */
function fieldMatch(given: string | undefined): ((value: unknown) => boolean) | undefined {
  if (given === undefined) return undefined;
  const equals = given.indexOf('=');
  if (equals < 1) throw new BadRequest('field must be a name and a value, as order.id=17');
  const [path, wanted] = [given.slice(0, equals), given.slice(equals + 1)];
  return (value) => {
    const found = fieldOf(value, path);
    return found !== undefined && !(found instanceof Object) && String(found) === wanted;
  };
}

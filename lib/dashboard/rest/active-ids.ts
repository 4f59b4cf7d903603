import { mapConcurrent } from '../../async.js';
import { WrongKeyTypeError } from '../../errors.js';
import type { Dashboard } from '../dashboard.js';

const PAGE_SIZE = 1_000;
const QUEUES_AT_ONCE = 8;

export async function activeIds({ broker }: Dashboard, queue: string): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
    const page = await broker.listing.listIds(queue, { state: 'active', size: PAGE_SIZE, cursor });
    ids.push(...page.ids);
    cursor = page.cursor;
  }
  return ids;
}

/** The ids that are active in queues that `allows` refuses. */
export async function forbiddenIds(
  dashboard: Dashboard,
  allows: (queue: string) => Promise<boolean>,
): Promise<ReadonlySet<string>> {
  const ids = await mapConcurrent(await dashboard.broker.inspection.queues(), QUEUES_AT_ONCE, async (queue) =>
    allows(queue)
      .then((allowed) => (allowed ? [] : activeIds(dashboard, queue)))
      .catch(noneOfUnreadable),
  );
  return new Set(ids.flat());
}

/** A queue whose keys have the wrong type has no active tasks. */
function noneOfUnreadable(error: unknown): string[] {
  if (error instanceof WrongKeyTypeError) return [];
  throw error;
}

import type { Broker } from '../../broker/broker.js';
import { fairnessOf } from '../../wire/fairness.js';
import { holdOf, reachedLimits } from '../fair-keys.js';
import type { Case } from './case.js';
import { MAX_NAMED_HOLDERS } from './limits.js';
import type { TaskReason } from './reasons.js';

/** What a task waits for in the line of its key: a limit of the key, and its turn. `undefined` when it is in no line. */
export async function keyReasons(
  { fairKeys }: Pick<Broker, 'fairKeys'>,
  { queue, id, task, now }: Case,
): Promise<{ readonly limit: TaskReason[]; readonly turn: TaskReason[] } | undefined> {
  const key = fairnessOf(task.message.headers)?.key ?? '';
  const turn = await fairKeys.turnOf(queue, key, id);
  if (!turn) return undefined;
  const [stored] = await fairKeys.describe(queue, [key], MAX_NAMED_HOLDERS);
  const { share, taken, holders } = stored!;
  const reached = reachedLimits(stored!);
  const hold = holdOf(stored!, now);
  const limit: TaskReason = {
    kind: 'keyLimit',
    key,
    reached,
    concurrency: share.concurrency || undefined,
    rate: share.rate > 0 ? { max: share.rate, per: share.window } : undefined,
    running: taken,
    holders: reached.includes('concurrency') ? holders.map((holder) => ({ queue, id: holder })) : [],
    opensAt: reached.includes('concurrency') ? undefined : hold?.until,
  };
  const isAlone = turn.ahead === 0 && turn.others === 0;
  return { limit: reached.length > 0 || hold ? [limit] : [], turn: isAlone ? [] : [{ kind: 'keyTurn', key, ...turn }] };
}

import type { Broker } from '../../broker/broker.js';
import type { HandlerProfile, PublishedLimits } from '../../broker/server-profile.js';
import { toDate } from '../../clock.js';
import { scopeOfKey } from '../../task/limit-key.js';
import { newerWaitlist } from '../../wire/payload-version.js';
import type { Case } from './case.js';
import { handlerOf } from './fleet.js';
import type { LimitHolder, ReachedLimit, TaskReason } from './reasons.js';

type Store = Pick<Broker, 'obstacles'>;

/** More holders than this are not named. */
export const MAX_NAMED_HOLDERS = 5;

/** The limit that a deferred task waits for, or those that the next task of this handler reaches. */
export async function handlerLimits(store: Store, known: Case): Promise<TaskReason[]> {
  const { task, position, servers } = known;
  const waitlist = position.waitlist;
  if (waitlist?.name === newerWaitlist(task.message.type)) return [];
  const byScope = new Map<string, PublishedLimits>();
  for (const server of servers) {
    const handler = handlerOf(server, task.message.type);
    const scope = handler && scopeFor(handler, waitlist?.name);
    if (scope !== undefined && !byScope.has(scope)) byScope.set(scope, handler!);
  }
  if (waitlist && !(waitlist.name !== undefined && byScope.has(waitlist.name))) return [unknownLimit(known)];
  const wanted = waitlist ? [waitlist.name!] : [...byScope.keys()];
  const reasons = await Promise.all(wanted.map((scope) => handlerLimit(store, known, scope, byScope.get(scope)!)));
  return reasons.filter((reason) => reason.deferred || reason.reached.length > 0);
}

/** Where the limits of a handler count for a task. Those of a key are known only of a task that is held: what its key is, its server knows. */
function scopeFor({ scope, keyed }: HandlerProfile, waitlist: string | undefined): string | undefined {
  if (!keyed || scope === undefined) return scope;
  return waitlist?.startsWith(scopeOfKey(scope, '')) ? waitlist : undefined;
}

const retryAtOf = ({ task, position }: Case): Date | undefined =>
  position.waitlist && task.nextProcessAt !== undefined ? toDate(task.nextProcessAt * 1000) : undefined;

function unknownLimit(known: Case): TaskReason {
  const none = { limits: {}, reached: [], running: 0, opensAt: undefined, holders: [] };
  const waits = { deferred: true, ahead: known.position.waitlist?.ahead ?? 0, retryAt: retryAtOf(known) };
  return { kind: 'handlerLimit', scope: known.position.waitlist?.name, ...none, ...waits };
}

async function handlerLimit({ obstacles }: Store, known: Case, scope: string, published: PublishedLimits) {
  const limits = pick(published);
  const { globalConcurrency, rate, window = 1 } = limits;
  const [held, starts] = await Promise.all([
    globalConcurrency === undefined ? undefined : obstacles.heldTokens(scope),
    rate === undefined ? undefined : obstacles.startsLeft(scope, { max: rate, window }),
  ]);
  const local = localHolders(known, scope, limits.concurrency);
  const deferred = known.position.waitlist !== undefined;
  // Something is left, and it may be too little for what this task costs.
  const isShort = limits.costs && deferred && starts !== undefined && starts.left < rate!;
  const reached: ReachedLimit[] = [
    ...(local.isFull ? (['concurrency'] as const) : []),
    ...(held && held.count >= globalConcurrency! ? (['globalConcurrency'] as const) : []),
    ...(starts?.left === 0 || isShort ? (['rateLimit'] as const) : []),
  ];
  const holders = held ? held.holders.map(({ holder }) => readHolder(holder)) : local.holders;
  return {
    kind: 'handlerLimit' as const,
    scope,
    limits,
    reached,
    running: held?.count ?? local.holders.length,
    holders: holders.slice(0, MAX_NAMED_HOLDERS),
    opensAt: starts?.left === 0 ? toDate(known.now + starts.moreIn) : undefined,
    ...(limits.costs && starts && { left: starts.left }),
    deferred,
    ahead: known.position.waitlist?.ahead ?? 0,
    retryAt: retryAtOf(known),
  };
}

/** What runs in the servers of the queue with this limit, and whether each of them has as many as it may. */
function localHolders({ fleet }: Case, scope: string, most: number | undefined) {
  const perServer = fleet.serving.map((server) =>
    server.workers.filter(({ taskType }) => handlerOf(server, taskType)?.scope === scope),
  );
  const holders = perServer.flat().map(({ queue, taskId }): LimitHolder => ({ queue, id: taskId }));
  const isFull = most !== undefined && perServer.length > 0 && perServer.every(({ length }) => length >= most);
  return { holders, isFull };
}

/** The limit of the queue, when it is reached. */
export async function queueLimits({ obstacles }: Store, known: Case): Promise<TaskReason[]> {
  const { queue, fleet, position } = known;
  const published = fleet.serving.map(({ profile }) => profile?.queues[queue]);
  // A server without the limit takes the task all the same.
  if (published.length === 0 || published.includes(undefined)) return [];
  const limits = pick(published[0]!);
  const { rate, window = 1, concurrency, globalConcurrency } = limits;
  const starts = rate === undefined ? undefined : await obstacles.queueStartsLeft(queue, { max: rate, window });
  const perServer = fleet.serving.map(({ workers }) => workers.filter((worker) => worker.queue === queue).length);
  const reached: ReachedLimit[] = [
    ...(concurrency !== undefined && perServer.every((count) => count >= concurrency)
      ? (['concurrency'] as const)
      : []),
    ...(globalConcurrency !== undefined && position.active >= globalConcurrency
      ? (['globalConcurrency'] as const)
      : []),
    ...(starts?.left === 0 ? (['rateLimit'] as const) : []),
  ];
  if (reached.length === 0) return [];
  const opensAt = starts?.left === 0 ? toDate(known.now + starts.moreIn) : undefined;
  return [{ kind: 'queueLimit', limits, reached, running: position.active, opensAt }];
}

const pick = ({ concurrency, globalConcurrency, rate, window, costs }: PublishedLimits): PublishedLimits => ({
  ...(concurrency !== undefined && { concurrency }),
  ...(globalConcurrency !== undefined && { globalConcurrency }),
  ...(rate !== undefined && { rate, window: window ?? 1 }),
  ...(costs && { costs }),
});

/** `{queue}:id`, behind a number of the token, as limiters name what they run; else a name of another program. */
function readHolder(holder: string): LimitHolder {
  const [, queue, id] = /^(?:[0-9a-f]{12}\.\d+)?\{(.*?)\}:(.*)$/s.exec(holder) ?? [];
  return queue === undefined ? { queue: '', id: holder } : { queue, id: id! };
}

import { floorSeconds } from '../../clock.js';
import {
  type ClaimedHeld,
  type ConsumerRole,
  type ExchangeReply,
  type ExchangeRequest,
  type Lease,
  type LeasedTask,
  LEASE_SECONDS,
  MAX_ASIDE,
  type SettleStatus,
} from '../broker.js';
import { FairPending } from './fair-pending.js';
import type { LinkEngine } from './links/engine.js';
import type { MemoryState } from './memory-state.js';
import { type QueueStore, readMessage, wellFormed } from './queue-store.js';
import { settleTasks, trimAfter } from './settlements.js';
import { defer, takeHeld } from './waitlists.js';

export class MemoryConsumer implements ConsumerRole {
  constructor(
    private readonly state: MemoryState,
    private readonly links: LinkEngine,
  ) {}

  async exchange(queue: string, request: ExchangeRequest): Promise<ExchangeReply> {
    return this.state.change(queue, (store, now) => {
      const reply = exchange(store, this.links, queue, request, now);
      trimAfter(store, this.state.archives.of(queue), request.settle, now);
      return reply;
    });
  }

  async extendLeases(queue: string, leases: readonly Lease[], expiresAt: number): Promise<boolean[]> {
    return this.state.change(queue, (store) => extendLeases(store, leases, expiresAt));
  }

  async writeResult(lease: Lease, result: Buffer): Promise<boolean> {
    return this.state.change(lease.queue, (store) => writeResult(store, lease, result));
  }
}

/** A queue with too many active tasks is polled again after this time. */
const LIMIT_RETRY_MS = 100;

/** Settles in order, then claims. */
function exchange(
  store: QueueStore,
  links: LinkEngine,
  queue: string,
  request: ExchangeRequest,
  now: number,
): ExchangeReply {
  const linked = links.isLinked(queue);
  const settled = settleTasks(store, linked ? links : undefined, queue, request.settle, now);
  giveBackStarts(store, request, settled, now);
  if (linked) links.work(); // what this releases here can be claimed by this call
  const { wanted, limitedFor } = limitTake(store, request, now);
  const putAside = new Map([...(request.aside?.keys() ?? [])].map((type) => [type, 0]));
  const held = wanted > 0 && heldWanted(store, request) > 0 ? takeHeld(store, request.held!, wanted) : undefined;
  const waited = claimWoken(store, queue, held?.ids ?? [], now, request);
  const beside = held ? held.ids.length : 0;
  const begun = Math.min(beside, heldWanted(store, request) - aheadOf(request));
  const rest = Math.min(wanted - beside, request.take - Math.max(0, begun));
  const taken = [
    ...waited,
    ...takeFront(store, queue, rest, now, request, putAside, lackingOf(request, held?.claimed)),
  ];
  const tasks = linked ? taken.map((task) => withLinks(links, task)) : taken;
  const { limits, allowance = 0 } = request;
  if (limits && limits.rate > 0) store.starts(limits.window).add(tasks.length, now, { max: limits.rate, allowance });
  const fair = store.pending instanceof FairPending ? store.pending : undefined;
  const backlog = fair?.hasOpen(now) === false ? 0 : store.backlog;
  const opensIn = fair ? { opensIn: fair.opensIn(now) } : {};
  const wasPutAside = [...putAside.values()].some((count) => count > 0);
  const reply = {
    settled,
    tasks,
    damaged: [],
    backlog,
    limitedFor,
    ...opensIn,
    ...(allowance > 0 && { countedAt: Math.floor(now) + allowance }),
    ...(wasPutAside && { aside: putAside }),
    ...(held && { held: held.claimed }),
  };
  return linked ? { ...reply, parcels: [], news: links.takeNews() } : reply;
}

/** Of tasks that go back, and whose starts were counted. */
function giveBackStarts(
  store: QueueStore,
  { settle, take, limits }: ExchangeRequest,
  settled: readonly SettleStatus[],
  now: number,
): void {
  settle.forEach((item, index) => {
    if (item.kind !== 'requeue' || item.countedAt === undefined || settled[index] !== 'settled') return;
    if (take > 0 && limits && limits.rate > 0) store.starts(limits.window).giveBack(item.countedAt, now);
    if (store.pending instanceof FairPending) store.pending.giveBack(wellFormed(item.lease.id), item.countedAt, now);
  });
}

export function withLinks(links: LinkEngine, task: LeasedTask): LeasedTask {
  const watchers = links.watchersOf(wellFormed(task.lease.queue), wellFormed(task.lease.id));
  return watchers ? { ...task, links: watchers } : task;
}

/** How many of the wanted tasks the limits allow. */
function limitTake(store: QueueStore, request: ExchangeRequest, now: number): { wanted: number; limitedFor: number } {
  const { take, limits } = request;
  const held = heldWanted(store, request);
  let wanted = Math.min(take + aheadOf(request), Math.min(take, store.backlog) + held);
  let limitedFor = 0;
  if (!limits || wanted <= 0) return { wanted, limitedFor };
  const free = limits.active > 0 ? Math.max(0, limits.active - store.lease.size) : Infinity;
  if (free < wanted) [wanted, limitedFor] = [free, LIMIT_RETRY_MS];
  if (limits.rate === 0) return { wanted, limitedFor };
  const starts = store.starts(limits.window);
  const startable = Math.max(0, limits.rate - starts.count(now));
  if (startable < wanted) [wanted, limitedFor] = [startable, Math.max(limitedFor, starts.untilFewer(now))];
  return { wanted, limitedFor };
}

const aheadOf = ({ held, ahead = 0 }: ExchangeRequest): number => (held ? ahead : 0);

/** How many tasks of waitlists are asked for. */
function heldWanted(store: QueueStore, { held }: ExchangeRequest): number {
  if (!held || store.pausedAt !== undefined || store.pending instanceof FairPending) return 0;
  return [...held.values()].reduce((sum, count) => sum + count, 0);
}

/** By waitlist: how many tasks more were wanted than it has. */
const lackingOf = ({ held }: ExchangeRequest, claimed?: ReadonlyMap<string, ClaimedHeld>): Map<string, number> =>
  new Map([...(claimed ?? [])].map(([name, { claimed: count }]) => [name, held!.get(name)! - count]));

function claimWoken(
  store: QueueStore,
  queue: string,
  ids: readonly string[],
  now: number,
  { since }: ExchangeRequest,
): LeasedTask[] {
  const pendingSince = Math.floor(now);
  return ids.flatMap((id) => {
    const task = store.claim(queue, id, floorSeconds(now) + LEASE_SECONDS);
    if (!task) return [];
    return since ? { ...task, pendingSince } : task;
  });
}

function takeFront(
  store: QueueStore,
  queue: string,
  count: number,
  now: number,
  { aside, since, allowance = 0 }: ExchangeRequest,
  putAside: Map<string, number>,
  lacking: Map<string, number>,
): LeasedTask[] {
  const tasks: LeasedTask[] = [];
  const isFair = store.pending instanceof FairPending;
  let left = MAX_ASIDE;
  while (tasks.length < count && store.backlog > 0 && left > 0) {
    const id = store.popNext(now, allowance);
    if (id === undefined) break;
    const type = aside && !isFair ? putOneAside(store, aside, id, now, lacking) : undefined;
    if (type !== undefined) {
      putAside.set(type, putAside.get(type)! + 1);
      left -= 1;
      continue;
    }
    const task = store.claim(queue, id, floorSeconds(now) + LEASE_SECONDS, since);
    if (task) tasks.push(task);
  }
  return tasks;
}

/** Returns the type of the task if it was put into a waitlist. */
function putOneAside(
  store: QueueStore,
  aside: ReadonlyMap<string, string>,
  id: string,
  now: number,
  lacking: Map<string, number>,
): string | undefined {
  const record = store.tasks.get(id);
  if (!record) return undefined;
  const { type } = readMessage(record);
  const waitlist = aside.get(type);
  if (waitlist === undefined) return undefined;
  const more = lacking.get(waitlist) ?? 0;
  if (more > 0) {
    lacking.set(waitlist, more - 1);
    return undefined;
  }
  record.pendingSince = undefined;
  defer(store, wellFormed(waitlist), id, record, now);
  return type;
}

/** Leases one given pending task, at any position, paused or not. */
export function takeOne(store: QueueStore, queue: string, id: string, now: number): LeasedTask | undefined {
  if (!store.pending.remove(id)) return undefined;
  return store.claim(queue, id, floorSeconds(now) + LEASE_SECONDS);
}

/** Extends each lease that is ours when the call begins. */
function extendLeases(store: QueueStore, leases: readonly Lease[], expiresAt: number): boolean[] {
  const ours = leases.map((lease) => store.leased(lease) !== undefined);
  for (const [index, lease] of leases.entries()) {
    delete lease.renewing;
    if (!ours[index]) continue;
    store.lease.set(wellFormed(lease.id), expiresAt);
    lease.expiresAt = expiresAt;
  }
  return ours;
}

function writeResult(store: QueueStore, lease: Lease, result: Buffer): boolean {
  const record = store.leased(lease);
  if (!record) return false;
  record.result = Buffer.from(result);
  return true;
}

import { backoff } from '../async.js';
import type { Broker } from '../broker/broker.js';
import type { Row } from '../broker/rows.js';
import { SenderAheadError } from '../broker/rows.js';
import type { RepeatRequest } from '../broker/uniqueness.js';
import { CALL_LIMITS, type CallLimits } from '../enqueue/requests.js';
import { LinkedProducer } from '../enqueue/linked-producer.js';
import { tasksBefore } from '../enqueue/linked-task.js';
import { prepared, type PreparedTask } from '../enqueue/prepared-task.js';
import type { EnqueueReply } from '../enqueue/producing.js';
import { resultOf } from '../enqueue/enqueue-result.js';
import { AsynqError } from '../errors.js';
import type { AsynqEvents } from '../events/events.js';
import type { Relay } from '../links/relay.js';
import { hasLinks, repeats, requestOf, type RowRequest } from './row-codec.js';
import type { EndedRow, OutboxStore, OwnedSender, TakenRow } from './store.js';

export interface SenderDeps {
  readonly broker: Pick<Broker, 'rows' | 'links' | 'clock'>;
  /** Carries what linked tasks tell each other. */
  readonly relay: Pick<Relay, 'carry'>;
  readonly events: AsynqEvents;
}

/** A row that is read, and waits for its turn. */
interface ReadyRow {
  readonly row: TakenRow;
  readonly request: RowRequest;
}

/** A queue whose rows could not be sent. */
interface Stuck {
  readonly failures: number;
  /** Not before: milliseconds of the clock's `elapsed`. */
  readonly until: number;
}

/** The longest pause of a queue, in milliseconds. */
const LONGEST_PAUSE_MS = 30_000;

/** How long a task waits for that of another row, in milliseconds; then it is sent all the same, which mostly means that it is refused. */
const LONGEST_WAIT_MS = 3_600_000;

/** Tasks that the database is asked about at once. */
const ASKED_AT_ONCE = 1_000;

/** Rows that go into calls of their own. */
type Kind = 'plain' | 'linked' | 'repeats';

const kindOf = (request: RowRequest): Kind => (hasLinks(request) ? 'linked' : repeats(request) ? 'repeats' : 'plain');

/** Errors that are about the task, whenever it is sent. */
const OF_THE_TASK: readonly string[] = ['ASYNQ_INVALID_TASK', 'ASYNQ_UNDECODABLE_MESSAGE'];

/**
 * Sends the rows of one sender, queue by queue in the order of their numbers. What may have arrived is sent
 * again as often as it takes: the numbers keep it from arriving twice. A queue that cannot be reached
 * stops no other. Rows behind a poisoned one are held back until the database has that end: if this relay died before, the next one
 * would try the row again, under a number that is too low by then.
 */
export class RowSender {
  readonly id: string;
  /** In the order of their numbers. */
  private readonly waiting = new Map<string, ReadyRow[]>();
  private readonly stuck = new Map<string, Stuck>();
  private ended: EndedRow[] = [];
  /** Queues of poisoned rows among those that have ended. */
  private readonly poisoned = new Set<string>();

  /** Queues whose next task waits for that of another row, which has not ended; since when, by the clock's `elapsed`. */
  private readonly awaiting = new Map<string, number>();

  /** The highest number of a row, if it is known. */
  private given: number | undefined;
  /** Redis has higher numbers of it: the database has lost what it knew, and would lose what is sent under the next numbers. */
  isBehind = false;

  constructor(
    { id, number, rows }: OwnedSender,
    private readonly deps: SenderDeps,
    private readonly store: Pick<OutboxStore, 'unsent'>,
  ) {
    this.id = id;
    this.given = number;
    this.add(rows);
  }

  /** How many rows wait to be sent. */
  get backlog(): number {
    let count = 0;
    for (const rows of this.waiting.values()) count += rows.length;
    return count;
  }

  /** Queues that cannot be reached, or still have rows here. Rows of these are not to be taken. */
  get busyQueues(): string[] {
    return [...this.waiting.keys()];
  }

  /** Milliseconds until a queue is tried again; `undefined` when none waits for that. */
  get nextTry(): number | undefined {
    const now = this.deps.broker.clock.elapsed();
    const times = [...this.stuck.values()].map(({ until }) => Math.max(0, until - now));
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /** Whether rows can be sent as soon as the database has what has ended. */
  get holdsBack(): boolean {
    if (this.awaiting.size > 0 && this.ended.length > 0) return true;
    return [...this.poisoned].some((queue) => this.waiting.has(queue));
  }

  /** Rows that have ended since the last call of this. Nothing more is sent until the database has them. */
  takeEnded(): EndedRow[] {
    const { ended } = this;
    this.ended = [];
    this.poisoned.clear();
    if (ended.length > 0) for (const queue of this.awaiting.keys()) this.stuck.delete(queue);
    return ended;
  }

  add(rows: readonly TakenRow[]): void {
    const last = rows.at(-1);
    if (last && this.given !== undefined) this.given = Math.max(this.given, last.number);
    for (const row of rows) {
      try {
        const ready = { row, request: requestOf(row) };
        const line = this.waiting.get(row.queue);
        if (line) line.push(ready);
        else this.waiting.set(row.queue, [ready]);
      } catch (error) {
        this.poison(row, error);
      }
    }
  }

  /** Sends what waits, except to queues that are to be tried later. Never rejects. */
  async send(): Promise<void> {
    const now = this.deps.broker.clock.elapsed();
    const queues = [...this.waiting.keys()].filter((queue) => (this.stuck.get(queue)?.until ?? 0) <= now);
    await Promise.all(queues.map((queue) => this.sendTo(queue)));
  }

  private async sendTo(queue: string): Promise<void> {
    const line = this.waiting.get(queue)!;
    try {
      while (line.length > 0 && !this.poisoned.has(queue)) {
        const some = firstOf(line, CALL_LIMITS);
        const sendable = await this.sendable(some);
        if (sendable.length === 0 && this.awaits(queue)) return this.pause(queue);
        this.awaiting.delete(queue);
        await this.sendSome(queue, line, sendable.length > 0 ? sendable : some);
      }
      if (line.length === 0) this.waiting.delete(queue);
      this.stuck.delete(queue);
    } catch (error) {
      if (error instanceof SenderAheadError) this.isBehind = true;
      this.pause(queue);
      this.deps.events.emit('rowsUnsent', { queue, rows: line.length, error });
    }
  }

  /** Whether the next task of the queue may wait on for that of another row. */
  private awaits(queue: string): boolean {
    const now = this.deps.broker.clock.elapsed();
    const since = this.awaiting.get(queue) ?? now;
    this.awaiting.set(queue, since);
    return now - since < LONGEST_WAIT_MS;
  }

  private pause(queue: string): void {
    const failures = (this.stuck.get(queue)?.failures ?? 0) + 1;
    const pause = backoff(failures, { longest: LONGEST_PAUSE_MS });
    this.stuck.set(queue, { failures, until: this.deps.broker.clock.elapsed() + pause });
  }

  /**
   * The first of these rows, up to one that waits for the task of a row that was written before and has not ended: Redis may not have
   * that task yet.
   */
  private async sendable(some: ReadyRow[]): Promise<ReadyRow[]> {
    const before = some.map(({ request }) => (kindOf(request) === 'linked' ? tasksBefore(request) : []));
    const ids = [...new Set(before.flat().map(({ id }) => id))];
    const unsent = new Map<string, number>();
    for (let first = 0; first < ids.length; first += ASKED_AT_ONCE) {
      const found = await this.store.unsent?.(ids.slice(first, first + ASKED_AT_ONCE));
      for (const { id, queue, taskId } of found ?? []) {
        const name = `${queue} ${taskId}`;
        unsent.set(name, Math.min(id, unsent.get(name) ?? Infinity));
      }
    }
    if (unsent.size === 0) return some;
    const stop = some.findIndex(({ row }, index) =>
      before[index]!.some(({ queue, id }) => (unsent.get(`${queue} ${id}`) ?? Infinity) < row.id),
    );
    return stop < 0 ? some : some.slice(0, stop);
  }

  /** Sends the first rows of a line in one call, and removes them from it. */
  private async sendSome(queue: string, line: ReadyRow[], some: ReadyRow[]): Promise<void> {
    let replies: readonly EnqueueReply[];
    try {
      replies = await this.call(queue, some);
    } catch (error) {
      if (!isOfTheTask(error)) throw error;
      if (some.length === 1) this.poison(line.shift()!.row, error);
      else await this.sendOneByOne(queue, line, some.length);
      return;
    }
    line.splice(0, some.length);
    some.forEach((ready, index) => this.end(ready, replies[index]!));
  }

  private async sendOneByOne(queue: string, line: ReadyRow[], count: number): Promise<void> {
    for (let left = count; left > 0 && !this.poisoned.has(queue); left--) {
      const [first] = line;
      try {
        const [reply] = await this.call(queue, [first!]);
        line.shift();
        this.end(first!, reply!);
      } catch (error) {
        if (!isOfTheTask(error)) throw error;
        line.shift();
        this.poison(first!.row, error);
      }
    }
  }

  /** The rows are all of one kind. */
  private call(queue: string, some: readonly ReadyRow[]): Promise<readonly EnqueueReply[]> {
    const { broker, relay } = this.deps;
    const numbers = new Map<unknown, number>();
    const requests = some.map(({ row, request }) => {
      const current = inTime(request, broker.clock.now());
      numbers.set(current, row.number);
      return current;
    });
    const numbered = <R extends RowRequest>(of: readonly R[]): Row<R>[] =>
      of.map((request) => ({ request, number: numbers.get(request)! }));
    const kind = kindOf(some[0]!.request);
    if (kind === 'plain') return broker.rows.enqueue(queue, this.id, numbered(requests), this.given);
    if (kind === 'repeats') return this.callRepeats(queue, numbered(requests as readonly RepeatRequest[]));
    const links = {
      watch: broker.links.watch.bind(broker.links),
      enqueue: (of: string, accepted: readonly RowRequest[]) =>
        broker.rows.enqueueLinked(of, this.id, numbered(accepted), this.given),
    };
    return new LinkedProducer(links, relay).enqueue(queue, requests);
  }

  private async callRepeats(queue: string, rows: readonly Row<RepeatRequest>[]): Promise<readonly EnqueueReply[]> {
    const reply = await this.deps.broker.rows.enqueueRepeats(queue, this.id, rows, this.given);
    this.deps.relay.carry(reply);
    return reply.statuses;
  }

  private end({ row, request }: ReadyRow, reply: EnqueueReply): void {
    const { id, type, queue } = request.message;
    const { ok, error } = resultOf(taskOf(request, this.deps.broker.clock.now()), reply, this.deps.events);
    if (ok) this.ended.push({ id: row.id, ...endOf(reply) });
    else {
      this.ended.push({ id: row.id, state: 'refused', error: error.message });
      this.deps.events.emit('refusedAfterCommit', { task: { id, type, queue }, error });
    }
  }

  private poison({ id, queue }: TakenRow, error: unknown): void {
    this.poisoned.add(queue);
    this.ended.push({ id, state: 'poisoned', error: error instanceof Error ? error.message : String(error) });
    this.deps.events.emit('rowPoisoned', { row: id, queue, error });
  }
}

/** How the row of a task ends that was not refused. */
function endOf(reply: EnqueueReply): Pick<EndedRow, 'state' | 'error'> {
  if (typeof reply === 'string' || !('status' in reply)) return { state: 'sent' };
  const { status, owner } = reply;
  if (status === 'existing') return { state: 'existing', error: `task "${owner?.id}" is there already` };
  if (status === 'replaced') return { state: 'replaced', error: `task "${owner?.id}" has got its payload` };
  return { state: 'sent' };
}

const isOfTheTask = (error: unknown): boolean => error instanceof AsynqError && OF_THE_TASK.includes(error.code);

/** A time that has passed meanwhile is no time. A debounced task always has one. */
function inTime(request: RowRequest, now: number): RowRequest {
  if (request.processAt === undefined || request.processAt * 1000 > now || hasLinks(request)) return request;
  if (repeats(request) && request.repeat.policy === 'debounce') return request;
  const { processAt: _, ...rest } = request;
  return rest;
}

const taskOf = (request: RowRequest, now: number): PreparedTask =>
  hasLinks(request) && request.wait
    ? { request, state: 'waiting', nextProcessAt: request.wait.deadline * 1000, linked: true }
    : prepared(request, now);

/** Rows of one kind that go into one call. */
function firstOf(line: readonly ReadyRow[], { tasks, bytes }: CallLimits): ReadyRow[] {
  const kind = kindOf(line[0]!.request);
  const some: ReadyRow[] = [];
  let size = 0;
  for (const ready of line) {
    size += ready.row.message.length;
    if (some.length > 0 && (some.length === tasks || size > bytes || kindOf(ready.request) !== kind)) break;
    some.push(ready);
  }
  return some;
}

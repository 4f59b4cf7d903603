import { expect } from 'vitest';
import type { EnqueueStatus, LeasedTask, Settlement } from '../../lib/broker/broker.js';
import type {
  Caused,
  LinkedRequest,
  LinkNews,
  Parcel,
  Prerequisite,
  StoredWait,
  Wait,
  WaitingEdge,
} from '../../lib/broker/links.js';
import type { TaskMessage } from '../../lib/wire/message.js';
import { request } from '../support/messages.js';
import { type Driver, archival, done } from './driver.js';

const DAY = 86_400;

/** How the test ends a task. */
export type Ending = 'done' | 'complete' | 'archive' | 'revoke';

/** What is not the default of a waiting task. */
export interface WaitOptions extends Partial<Pick<Wait, 'onFailure' | 'onTimeout' | 'deadline'>> {
  readonly message?: Partial<TaskMessage>;
  readonly processAt?: number;
  readonly uniqueTtl?: number;
  readonly mark?: LinkedRequest['mark'];
}

/**
 * Links in a test: it keeps the parcels that calls return, carries them when told to, or loses them. In
 * memory there are none: there a test of lost parcels tries that nothing depends on them.
 */
export class LinkSession {
  private parcels: readonly Parcel[] = [];
  /** Every parcel there was. */
  readonly sent: Parcel[] = [];

  constructor(readonly driver: Driver) {}

  get links() {
    return this.driver.broker.links;
  }

  /** All that calls have said to have happened, since the last {@link takeNews}. */
  private news: LinkNews[] = [];

  /** Notes the parcels and the news of a reply. */
  took<T extends Partial<Caused>>(reply: T): T {
    this.parcels = [...this.parcels, ...(reply.parcels ?? [])];
    this.sent.push(...(reply.parcels ?? []));
    this.news.push(...(reply.news ?? []));
    return reply;
  }

  takeNews(): LinkNews[] {
    const { news } = this;
    this.news = [];
    return news;
  }

  /** A waiting task. Its id is in the queue `default`, unless the message says otherwise. */
  waiting(id: string, prerequisites: readonly Prerequisite[], options: WaitOptions = {}): LinkedRequest {
    const { message, processAt, uniqueTtl, mark, ...wait } = options;
    return {
      ...request({ id, ...message }, { processAt, uniqueTtl }),
      wait: {
        prerequisites,
        onFailure: 'cancel',
        onTimeout: 'archive',
        deadline: this.driver.now + 7 * DAY,
        ...wait,
      },
      mark,
    };
  }

  /** The first edge of a task of {@link waiting}, for a watcher. */
  edge(id: string, queue = 'default'): WaitingEdge {
    return { queue, id, n: 0, until: this.driver.now + 7 * DAY };
  }

  /** A task whose end is remembered by type and key. */
  marked(id: string, key: string, message: Partial<TaskMessage> = {}, rememberFor = DAY): LinkedRequest {
    const type = message.type ?? 'pay';
    return { ...request({ id, type, ...message }), mark: { type, key, rememberFor } };
  }

  async enqueue(...requests: LinkedRequest[]): Promise<EnqueueStatus[]> {
    const queue = requests[0]!.message.queue;
    return [...this.took(await this.links.enqueue(queue, requests)).statuses];
  }

  /** As a client does it: registers with each prerequisite that is a task, then stores the waiting task. */
  async enqueueAfter(one: LinkedRequest, missing?: 'succeeded' | 'failed'): Promise<'missing' | EnqueueStatus> {
    if (!(await this.watch(one, missing))) return 'missing';
    return (await this.enqueue(one))[0]!;
  }

  /** Registers a waiting task with each prerequisite that is a task. Returns whether all were found. */
  async watch({ message, wait }: LinkedRequest, missing?: 'succeeded' | 'failed'): Promise<boolean> {
    for (const [n, prerequisite] of wait!.prerequisites.entries()) {
      if (!('id' in prerequisite)) continue;
      const waiting = { queue: message.queue, id: message.id, n, until: wait!.deadline };
      const watched = await this.links.watch(prerequisite.queue, [{ id: prerequisite.id, waiting, missing }]);
      if (this.took(watched).found[0] === 'missing') return false;
    }
    return true;
  }

  /** Takes the next task of a queue, ends it, and returns its id and what the same call has claimed. */
  async runNext(ending: Ending = 'done', queue = 'default', reason = 'boom'): Promise<string> {
    const task = await this.driver.takeOne(queue);
    await this.end(task, ending, reason);
    return task.lease.id;
  }

  async end(task: LeasedTask, ending: Ending, reason = 'boom', take = 0): Promise<LeasedTask[]> {
    const { queue } = task.lease;
    const message = { ...task.message, errorMsg: reason };
    const settlement = {
      done: () => this.success(task),
      complete: () => ({
        kind: 'complete' as const,
        lease: task.lease,
        message: { ...task.message, completedAt: this.driver.now },
        expiresAt: this.driver.now + DAY,
        result: Buffer.from('result'),
      }),
      archive: () => ({ ...archival({ ...task, message }), reason }),
      revoke: () => ({ ...done(task), revoked: true as const }),
    }[ending]();
    const reply = this.took(await this.driver.exchange([settlement], take, queue));
    expect(reply.settled).toEqual(['settled']);
    return reply.tasks;
  }

  /** As a server settles it: of a member of a batch nobody wants the result. */
  private success(task: LeasedTask): Settlement {
    const settlement = done(task);
    return settlement.member === undefined ? { ...settlement, result: Buffer.from('result') } : settlement;
  }

  /** Carries what is in hand until nothing is left; `times`: each parcel as often, the last first from the second time on. */
  async relay(times = 1): Promise<void> {
    for (let rounds = 0; this.parcels.length > 0; rounds++) {
      if (rounds > 1000) throw new Error('the parcels never end');
      const round = this.parcels;
      this.parcels = [];
      for (const parcel of round) this.took(await this.links.deliver(parcel.to, [parcel]));
      for (let time = 1; time < times; time++) {
        for (const parcel of round.toReversed()) this.took(await this.links.deliver(parcel.to, [parcel]));
      }
      for (const parcel of round) await this.links.acknowledge(parcel.from, [parcel]);
    }
  }

  /** Delivers what is in hand, and loses the acknowledgements and all that this causes. */
  async deliverOnly(): Promise<void> {
    for (const parcel of this.parcels) await this.links.deliver(parcel.to, [parcel]);
    this.parcels = [];
  }

  /** Carries what is in hand, and all that this causes, and loses the acknowledgements. */
  async carryOnly(): Promise<void> {
    while (this.parcels.length > 0) {
      const round = this.parcels;
      this.parcels = [];
      for (const parcel of round) this.took(await this.links.deliver(parcel.to, [parcel]));
    }
  }

  /** Loses what is in hand: it is only in the outboxes now. */
  lose(): void {
    this.parcels = [];
  }

  /** Passes of a keeper over every place until nothing happens any more. */
  async keep(): Promise<void> {
    for (let passes = 0; passes < 100; passes++) {
      let settled = 0;
      for (const place of await this.links.places()) {
        settled += this.took(await this.links.keep(place, 0)).settled;
      }
      const { length } = this.parcels;
      await this.relay();
      if (settled === 0 && length === 0) return;
    }
    throw new Error('the keeper never comes to rest');
  }

  /** A place that has been empty for a while is left alone. */
  async expectNothingKept(): Promise<void> {
    await this.keep();
    this.driver.clock.advance(600_000);
    await this.keep();
    expect(await this.links.places()).toEqual([]);
  }

  /** An operator does something, and tells. */
  async act(action: 'run' | 'archive' | 'delete', id: string, queue = 'default'): Promise<void> {
    expect(await this.driver.broker.administration.moveTasks(queue, action, [id])).toEqual(['moved']);
    this.took(await this.links.check(queue, [id]));
  }

  /**
   * Expects a task of a type, in `default`, to wait for a payment with the key `k`, to run after it, and to let one in another
   * queue run by its own mark with the key `k`.
   */
  async expectToWaitAndBeRemembered(id: string, type: string): Promise<void> {
    await this.relay();
    expect(await this.stateOf(id)).toBe('waiting');
    const elsewhere = { queue: 'other' };
    await this.enqueue(this.marked('payment', 'k', elsewhere));
    await this.enqueue(this.waiting('next', [{ type, key: 'k' }], { message: elsewhere }));
    await this.relay();
    await this.runNext('done', 'other');
    await this.relay();
    expect(await this.runNext()).toBe(id);
    await this.relay();
    expect(await this.stateOf('next', 'other')).toBe('pending');
  }

  stateOf(id: string, queue = 'default') {
    return this.driver.stateOf(id, queue);
  }

  async errorOf(id: string, queue = 'default'): Promise<string | undefined> {
    return (await this.driver.broker.inspection.getTask(queue, id))?.message.errorMsg;
  }

  async edgesOf(id: string, queue = 'default'): Promise<string[]> {
    const wait: StoredWait | undefined = await this.links.waitOf(queue, id);
    return (wait?.edges ?? []).map(({ state }) => state);
  }
}

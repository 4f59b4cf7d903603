import type { Lease, LeasedTask, Settlement } from '../../lib/broker/broker.js';
import { compareIds } from '../../lib/broker/sorted-set.js';
import { type ManualClock, floorSeconds } from '../../lib/clock.js';
import { Keyspace } from '../../lib/wire/keys.js';
import { request } from '../support/messages.js';
import type { World } from './driver.js';
import { type EnqueueStep, WAITLISTS, QUEUES, type SettlementStep, type Step } from './history.js';
import { inspect } from './inspector-calls.js';

type StepOf<D extends Step['do']> = Extract<Step, { do: D }>;

/** Longer than any history: Redis expires an entry by its own clock, not by the test's. */
const KEEP_SECONDS = 100 * 365 * 86_400;

/** Plays a history on one broker. A test compares the results of the steps on two brokers. */
export class Player {
  /** Every task ever leased, in order: two equal brokers lease the same tasks. */
  private readonly given: LeasedTask[] = [];
  /** Those of them that are not settled yet. */
  private readonly open = new Set<LeasedTask>();

  constructor(
    readonly world: World,
    private readonly clock: ManualClock,
  ) {}

  async play(step: Step): Promise<unknown> {
    const { broker } = this.world;
    switch (step.do) {
      case 'enqueue':
        return broker.producer.enqueue(
          step.queue,
          step.items.map((item) => this.enqueueRequest(step.queue, item)),
        );
      case 'exchange':
        return this.exchange(step);
      case 'extend':
        return this.extend(step);
      case 'writeResult':
        return this.writeResult(step);
      case 'recover':
        return this.recover(step);
      case 'nameGroup':
        return this.nameGroup(step);
      case 'aggregate':
        return this.aggregate(step);
      case 'getTask':
        return broker.inspection.getTask(step.queue, step.id);
      case 'inspect':
        return inspect(broker, step.call);
      case 'openSchedule':
        return broker.scheduling.openSchedule(step.queue, step.entry, step.spec, KEEP_SECONDS);
      case 'fire':
        return this.fire(step);
      case 'move':
        return undefined;
      case 'wake':
        return broker.limiting.wakeWaiting(step.queue, step.waitlist, step.count);
      default:
        return this.maintain(step);
    }
  }

  private async maintain(
    step: Exclude<
      Step,
      {
        do:
          | 'enqueue'
          | 'exchange'
          | 'extend'
          | 'writeResult'
          | 'recover'
          | 'nameGroup'
          | 'getTask'
          | 'move'
          | 'wake'
          | 'aggregate'
          | 'inspect'
          | 'openSchedule'
          | 'fire';
      }
    >,
  ): Promise<unknown> {
    const { broker } = this.world;
    switch (step.do) {
      case 'trim':
        return broker.maintenance.trimArchived(step.queue, step.limit);
      case 'expire':
        return broker.maintenance.deleteExpiredCompleted(step.queue, step.limit);
      case 'forward':
        return broker.maintenance.forward(step.queue);
      case 'pause':
        return broker.administration.pauseQueue(step.queue);
      case 'resume':
        return broker.administration.resumeQueue(step.queue);
      case 'repair':
        return broker.maintenance.repairActive(step.queue);
      case 'reclaim':
        return broker.groups.reclaimStaleSets(step.queue);
      case 'repairGroups':
        return broker.groups.repairGroups(step.queue);
    }
  }

  private get now(): number {
    return floorSeconds(this.clock.now());
  }

  private enqueueRequest(queue: string, item: EnqueueStep) {
    const keys = new Keyspace(this.world.broker.keyPrefix).queue(queue);
    const message = {
      id: item.id,
      queue,
      payload: Buffer.from(item.payload),
      uniqueKey: item.lock === undefined ? '' : keys.unique('t', Buffer.from(item.lock)),
      groupKey: item.route === 'group' || item.route === 'scheduledGroup' ? 'g' : '',
    };
    const scheduled = item.route === 'scheduled' || item.route === 'scheduledGroup';
    return request(message, {
      processAt: scheduled ? this.now + item.seconds : undefined,
      uniqueTtl: item.lock === undefined ? undefined : item.ttl,
    });
  }

  private async exchange(step: StepOf<'exchange'>): Promise<unknown> {
    const chosen = step.settle.flatMap((item) => {
      const task = this.pick(step.queue, item.lease);
      return task ? [{ task, settlement: this.settlement(task, item) }] : [];
    });
    const settle = chosen.map(({ settlement }) => settlement);
    const reply = await this.world.broker.consumer.exchange(step.queue, {
      settle,
      take: step.take,
      limits: step.limits,
    });
    for (const [index, { task }] of chosen.entries()) if (reply.settled[index] === 'settled') this.open.delete(task);
    this.keep(reply.tasks);
    return reply;
  }

  private settlement(task: LeasedTask, item: SettlementStep): Settlement {
    const { kind } = item;
    const lease = present(task.lease, item.fence);
    const message = { ...task.message, errorMsg: item.text, retried: task.message.retried + 1 };
    const at = this.now + item.seconds;
    if (kind === 'done') return { kind, lease, uniqueKey: message.uniqueKey };
    if (kind === 'complete') {
      return { kind, lease, message, expiresAt: at, result: item.flag ? Buffer.from(item.text) : undefined };
    }
    if (kind === 'retry') return { kind, lease, message, retryAt: at, countAsFailure: item.flag };
    if (kind === 'requeue') return { kind, lease };
    if (kind === 'wait') return { kind, lease, waitlist: WAITLISTS[item.flag ? 1 : 0] };
    return { kind: 'archive', lease, message: kind === 'archive' ? message : undefined };
  }

  private async extend(step: StepOf<'extend'>): Promise<unknown> {
    const results = [];
    for (const queue of QUEUES) {
      const tasks = [...new Set(step.leases.flatMap((index) => this.pick(queue, index) ?? []))];
      const leases = tasks.map(({ lease }) => (step.wrong ? present(lease, 'wrong') : lease));
      results.push(await this.world.broker.consumer.extendLeases(queue, leases, this.now + step.seconds), leases);
    }
    return results;
  }

  private async writeResult(step: StepOf<'writeResult'>): Promise<unknown> {
    const task = QUEUES.map((queue) => this.pick(queue, step.lease)).find(Boolean);
    return (
      task &&
      this.world.broker.consumer.writeResult(
        present(task.lease, step.wrong ? 'wrong' : 'true'),
        Buffer.from(step.result),
      )
    );
  }

  private async recover(step: StepOf<'recover'>): Promise<unknown> {
    const expired = await this.world.broker.maintenance.listExpiredLeases(
      step.queue,
      this.now - step.grace,
      step.limit,
    );
    this.keep(expired.tasks);
    return expired;
  }

  /**
   * Claims due sets and ends each as the step says; a set that stays claimed may be reclaimed
   * later.
   */
  private async aggregate(step: StepOf<'aggregate'>): Promise<unknown> {
    const { broker } = this.world;
    const { sets, nextDue } = await broker.groups.claimDueSets(step.queue, () => step, 100);
    const results = [];
    for (const claimed of sets.sort((a, b) => compareIds(a.group, b.group))) {
      const set = await broker.groups.readSet(claimed);
      const { group, tasks } = set;
      const ids = tasks.slice(0, 1).map(({ id }) => id);
      const archived = step.end === 'archive' ? await broker.groups.archiveDamagedMembers(set, ids) : 0;
      const made = step.end === 'delete' ? undefined : this.enqueueRequest(step.queue, step.made);
      const status = step.end === 'leave' ? undefined : await broker.groups.finishSet(set, made);
      results.push({ group, tasks, archived, status });
    }
    return { nextDue, results };
  }

  private fire({ queue, entry, planned, attempt, skipUnfinished, item }: StepOf<'fire'>): Promise<unknown> {
    const firing = { entry, scheduledFor: this.now + planned, attempt, skipUnfinished, keepFor: KEEP_SECONDS };
    return this.world.broker.scheduling.fire(queue, { ...firing, request: this.enqueueRequest(queue, item) });
  }

  private async nameGroup({ queue, id, group }: StepOf<'nameGroup'>): Promise<unknown> {
    const task = await this.world.broker.inspection.getTask(queue, id);
    if (task && task.state !== 'aggregating') await this.world.nameGroup(queue, id, group);
    return task;
  }

  private keep(tasks: readonly LeasedTask[]): void {
    for (const task of tasks) {
      this.given.push(task);
      this.open.add(task);
    }
  }

  /** Recent leases come first, as most steps use them. */
  private pick(queue: string, index: number): LeasedTask | undefined {
    const candidates = index % 2 === 0 ? [...this.open] : this.given;
    const ours = candidates.filter(({ lease }) => lease.queue === queue);
    return ours.at(-1 - (Math.floor(index / 2) % Math.max(ours.length, 1)));
  }
}

const present = (lease: Lease, fence: SettlementStep['fence']): Lease => {
  if (fence === 'true') return lease;
  const wrong = lease.expiresAt + 1_000_000;
  return fence === 'wrong'
    ? { ...lease, expiresAt: wrong, renewing: undefined }
    : { ...lease, expiresAt: wrong, renewing: lease.expiresAt };
};

import {
  RECOVERY_GRACE_SECONDS,
  type Broker,
  type ExpiredLeases,
  type Lease,
  type LeasedTask,
} from '../../broker/broker.js';
import { floorSeconds, type Clock } from '../../clock.js';
import { TaskCrashedError } from '../../errors.js';
import type { AsynqEvents } from '../../events/events.js';
import type { Relay } from '../../links/relay.js';
import { settleAll } from '../../async.js';
import type { QueueRegistry } from '../fetching/queue-registry.js';
import type { Verdict } from '../attempt/active-task.js';
import type { Verdicts } from '../attempt/verdict.js';
import { crashesOf } from '../../wire/crashes.js';
import { LostServers } from './lost-servers.js';
import { Turns } from './turns.js';

/** On average; asynq's is a minute. */
const PASS_INTERVAL_MS = 5_000;
/** Tasks recovered in one step. */
const BATCH_SIZE = 100;
/** Active tasks without a lease are searched for in every 12th pass. */
const PASSES_PER_REPAIR = 12;

export interface RecovererOptions {
  readonly broker: Pick<Broker, 'consumer' | 'maintenance' | 'groups' | 'monitoring'>;
  readonly relay: Pick<Relay, 'carry'>;
  readonly clock: Clock;
  readonly events: AsynqEvents;
  readonly queues: QueueRegistry;
  readonly verdicts: Verdicts;
}

/**
 * Recovers tasks whose server went away. Those whose lease ended more than the grace ago are
 * retried or archived. Each write is fenced by the old lease, so that exactly one of many
 * recoverers succeeds. Damaged messages are archived as they are. Grouped tasks whose aggregation
 * did not end in time go back to their groups.
 */
export class Recoverer {
  private readonly turns = new Turns(PASS_INTERVAL_MS);
  private readonly lostServers: LostServers;

  constructor(private readonly options: RecovererOptions) {
    this.lostServers = new LostServers(options);
  }

  async runOnce(): Promise<number> {
    const repair = this.turns.laps % PASSES_PER_REPAIR === 0;
    const { queues, delay } = this.turns.take(this.options.queues.names());
    await settleAll(queues.map((queue) => this.recover(queue, repair)));
    return delay * (0.75 + Math.random() / 2);
  }

  private async recover(queue: string, repair: boolean): Promise<void> {
    const { broker, relay, events, clock } = this.options;
    const cutoff = floorSeconds(clock.now()) - RECOVERY_GRACE_SECONDS;
    for (;;) {
      const expired = await broker.maintenance.listExpiredLeases(queue, cutoff, BATCH_SIZE);
      if (expired.dangling > 0) events.emit('queueRepaired', { queue, dangling: expired.dangling, leases: 0 });
      const verdicts = await this.judge(queue, expired);
      if (verdicts.length === 0) break;
      const settle = verdicts.map(({ settlement }) => settlement);
      const reply = await broker.consumer.exchange(queue, { settle, take: 0 });
      if (reply.parcels) relay.carry(reply);
      const done = verdicts.filter((_, index) => reply.settled[index] === 'settled');
      this.report(queue, done, expired);
      if (done.length === 0 || settle.length + expired.dangling < BATCH_SIZE) break;
    }
    const tasks = await broker.groups.reclaimStaleSets(queue);
    if (tasks > 0) events.emit('groupsReclaimed', { queue, tasks });
    const leases = repair ? await broker.maintenance.repairActive(queue) : 0;
    if (leases > 0) events.emit('queueRepaired', { queue, dangling: 0, leases });
  }

  private async judge(queue: string, { tasks, damaged, ending }: ExpiredLeases): Promise<Verdict[]> {
    const { verdicts } = this.options;
    const lost = this.notHeld(queue, tasks);
    const leases = lost.map(({ lease }) => lease);
    const crashes = await this.lostServers.crashesOf(queue, leases, ending);
    return [
      ...(await Promise.all(lost.map((task, index) => verdicts.leaseExpired(task, crashes[index]!)))),
      ...this.notHeld(queue, damaged).map((one) => verdicts.damaged(one, one.error)),
    ];
  }

  /**
   * Leaves out what runs here. After a pause of the process (a busy event loop, a suspended
   * machine) or a jump of the clock its leases seem to have ended, until the lease keeper extends
   * them.
   */
  private notHeld<T extends { readonly lease: Lease }>(queue: string, expired: readonly T[]): T[] {
    const held = new Set(Array.from(this.options.queues.get(queue)?.held ?? [], ({ id }) => id));
    return expired.filter(({ lease }) => !held.has(lease.id));
  }

  private report(queue: string, verdicts: readonly Verdict[], { tasks, damaged }: ExpiredTasks): void {
    const { events } = this.options;
    const own = new Map(verdicts.map((verdict) => [verdict.settlement.lease, verdict]));
    for (const { lease, error } of damaged) {
      if (own.has(lease)) events.emit('taskDamaged', { task: { id: lease.id, queue }, error });
    }
    if (events.wants('taskRecovered')) {
      for (const task of tasks) this.reportOne(task, own.get(task.lease));
    }
    const archived = verdicts.filter(({ outcome }) => outcome === 'archived').length;
    const suspects = verdicts.filter(({ error }) => error instanceof TaskCrashedError).length;
    const retried = verdicts.length - archived;
    if (verdicts.length > 0) events.emit('tasksRecovered', { queue, retried, archived, suspects });
  }

  private reportOne({ lease, message }: LeasedTask, verdict: Verdict | undefined): void {
    if (!verdict) return;
    const { settlement, error } = verdict;
    const { type, retried, maxRetry, headers } = message;
    this.options.events.emit('taskRecovered', {
      outcome: settlement.kind === 'archive' ? 'archived' : 'retry',
      task: { id: lease.id, type, queue: lease.queue },
      retried,
      maxRetry,
      crashes: (crashesOf(headers)?.count ?? 0) + 1,
      error: error as Error,
      retryAt: settlement.kind === 'retry' ? new Date(settlement.retryAt * 1000) : undefined,
    });
  }
}

type ExpiredTasks = Pick<ExpiredLeases, 'tasks' | 'damaged'>;

import {
  RECOVERY_GRACE_SECONDS,
  type Broker,
  type ExpiredLeases,
  type LeasedTask,
  type Settlement,
} from '../../broker/broker.js';
import { floorSeconds, type Clock } from '../../clock.js';
import { LeaseExpiredError } from '../../errors.js';
import type { AsynqEvents } from '../../events/events.js';
import type { Relay } from '../../links/relay.js';
import { settleAll } from '../../async.js';
import type { QueueRegistry } from '../fetching/queue-registry.js';
import type { Verdicts } from '../attempt/verdict.js';
import { Turns } from './turns.js';

/** On average; asynq's is a minute. */
const PASS_INTERVAL_MS = 5_000;
/** Tasks recovered in one step. */
const BATCH_SIZE = 100;
/** Active tasks without a lease are searched for in every 12th pass. */
const PASSES_PER_REPAIR = 12;

export interface RecovererOptions {
  readonly broker: Pick<Broker, 'consumer' | 'maintenance' | 'groups'>;
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

  constructor(private readonly options: RecovererOptions) {}

  async runOnce(): Promise<number> {
    const repair = this.turns.laps % PASSES_PER_REPAIR === 0;
    const { queues, delay } = this.turns.take(this.options.queues.names());
    await settleAll(queues.map((queue) => this.recover(queue, repair)));
    return delay * (0.75 + Math.random() / 2);
  }

  private async recover(queue: string, repair: boolean): Promise<void> {
    const { broker, relay, events, clock, verdicts } = this.options;
    const cutoff = floorSeconds(clock.now()) - RECOVERY_GRACE_SECONDS;
    for (;;) {
      const expired = await broker.maintenance.listExpiredLeases(queue, cutoff, BATCH_SIZE);
      if (expired.dangling > 0) events.emit('queueRepaired', { queue, dangling: expired.dangling, leases: 0 });
      const settle = this.notHeld(queue, [
        ...expired.tasks.map((task) => verdicts.leaseExpired(task).settlement),
        ...expired.damaged.map((one) => verdicts.damaged(one, one.error).settlement),
      ]);
      if (settle.length === 0) break;
      const reply = await broker.consumer.exchange(queue, { settle, take: 0 });
      if (reply.parcels) relay.carry(reply);
      const done = settle.filter((_, index) => reply.settled[index] === 'settled');
      this.report(queue, done, expired);
      if (done.length === 0 || settle.length + expired.dangling < BATCH_SIZE) break;
    }
    const tasks = await broker.groups.reclaimStaleSets(queue);
    if (tasks > 0) events.emit('groupsReclaimed', { queue, tasks });
    const leases = repair ? await broker.maintenance.repairActive(queue) : 0;
    if (leases > 0) events.emit('queueRepaired', { queue, dangling: 0, leases });
  }

  /**
   * Leaves out what runs here. After a pause of the process (a busy event loop, a suspended
   * machine) or a jump of the clock its leases seem to have ended, until the lease keeper extends
   * them.
   */
  private notHeld(queue: string, settlements: readonly Settlement[]): Settlement[] {
    const held = new Set(Array.from(this.options.queues.get(queue)?.held ?? [], ({ id }) => id));
    return settlements.filter(({ lease }) => !held.has(lease.id));
  }

  private report(queue: string, settled: readonly Settlement[], { tasks, damaged }: ExpiredTasks): void {
    const { events } = this.options;
    const own = new Map(settled.map((settlement) => [settlement.lease, settlement]));
    for (const { lease, error } of damaged) {
      if (own.has(lease)) events.emit('taskDamaged', { task: { id: lease.id, queue }, error });
    }
    if (events.wants('taskRecovered')) {
      for (const task of tasks) this.reportOne(task, own.get(task.lease));
    }
    const retried = settled.filter(({ kind }) => kind === 'retry').length;
    if (settled.length > 0) events.emit('tasksRecovered', { queue, retried, archived: settled.length - retried });
  }

  private reportOne({ lease, message }: LeasedTask, settlement: Settlement | undefined): void {
    if (!settlement) return;
    const { type, retried, maxRetry } = message;
    this.options.events.emit('taskRecovered', {
      outcome: settlement.kind === 'retry' ? 'retry' : 'archived',
      task: { id: lease.id, type, queue: lease.queue },
      retried,
      maxRetry,
      error: new LeaseExpiredError(),
      retryAt: settlement.kind === 'retry' ? new Date(settlement.retryAt * 1000) : undefined,
    });
  }
}

type ExpiredTasks = Pick<ExpiredLeases, 'tasks' | 'damaged'>;

import { describe, expect } from 'vitest';
import type { AggregationSet } from '../../../lib/broker/groups.js';
import type { Lease, Settlement } from '../../../lib/broker/broker.js';
import { TRANSITIONS, type TaskOperation, type Transition } from '../../../lib/task/transitions.js';
import { arrangeWaiting } from '../../support/every-state.js';
import { request } from '../../support/messages.js';
import { type Driver, type DriverTest, allSettlements } from '../driver.js';

type Operate = (driver: Driver, id: string) => Promise<unknown>;

const leaseOf = async (driver: Driver, id: string): Promise<Lease> => {
  const [score] = (await driver.queue()).lease.flatMap(([other, expiresAt]) => (other === id ? [expiresAt] : []));
  if (score === undefined) throw new Error(`"${id}" is not leased`);
  return { queue: 'default', id, expiresAt: score };
};

const settle =
  (kind: Settlement['kind']): Operate =>
  async (driver, id) => {
    const lease = await leaseOf(driver, id);
    const stored = await driver.broker.inspection.getTask('default', id);
    const task = { lease, message: stored!.message };
    return driver.settle(...allSettlements(task, driver.now).filter((item) => item.kind === kind));
  };

const defer: Operate = async (driver, id) =>
  driver.settle({ kind: 'wait', lease: await leaseOf(driver, id), waitlist: 'w' });

const claimed = async ({ broker }: Driver): Promise<AggregationSet> => {
  const at = { gracePeriod: 0, maxDelay: 0, maxSize: 0 };
  const { sets } = await broker.groups.claimDueSets('default', () => at, 1);
  return broker.groups.readSet(sets[0]!);
};

/** How each operation is applied to a task that `Driver.arrange` has created. */
const OPERATIONS: Record<TaskOperation, Operate> = {
  enqueue: (driver, id) => driver.enqueue([request({ id })]),
  schedule: (driver, id) => driver.enqueue([request({ id, groupKey: 'g' }, { processAt: driver.now + 5 })]),
  addToGroup: (driver, id) => driver.enqueue([request({ id, groupKey: 'g' })]),
  take: (driver) => driver.take(1),
  done: settle('done'),
  complete: settle('complete'),
  retry: settle('retry'),
  archive: settle('archive'),
  requeue: settle('requeue'),
  wait: defer,
  wakeWaiting: ({ broker }) => broker.limiting.wakeWaiting('default', 'w', 1),
  forward: async (driver) => {
    driver.clock.advance(60_000);
    return driver.broker.maintenance.forward('default');
  },
  deleteExpiredCompleted: async (driver) => {
    driver.clock.advance(60_000);
    return driver.broker.maintenance.deleteExpiredCompleted('default', 10);
  },
  trimArchived: async (driver) => {
    driver.clock.advance(90 * 86_400_000);
    return driver.broker.maintenance.trimArchived('default', 10);
  },
  finishSet: async (driver) => driver.broker.groups.finishSet(await claimed(driver), undefined),
  runTask: ({ broker }, id) => broker.administration.moveTasks('default', 'run', [id]),
  archiveTask: ({ broker }, id) => broker.administration.moveTasks('default', 'archive', [id]),
  deleteTask: ({ broker }, id) => broker.administration.moveTasks('default', 'delete', [id]),
  rescheduleTask: ({ broker, now }, id) => broker.administration.rescheduleTasks('default', [id], now + 9),
  archiveDamagedMembers: async (driver, id) => driver.broker.groups.archiveDamagedMembers(await claimed(driver), [id]),
};

/** A task in the state an operation starts from. */
async function arrange(driver: Driver, { from }: Transition): Promise<string> {
  if (from === undefined) return 'new';
  if (from === 'waiting') return arrangeWaiting(driver.broker).then(() => 'waiting');
  return driver.arrange(from);
}

const title = ({ from, operation, to, note }: Transition): string =>
  `${from ?? '(none)'} --${operation}--> ${to ?? '(gone)'}: ${note}`;

export function exerciseTransitions(it: DriverTest): void {
  describe('the transition table', () => {
    it.for(TRANSITIONS.map((row) => [title(row), row] as const))('%s', async ([_, row], { driver }) => {
      const { from, operation, to } = row;
      const id = await arrange(driver, row);
      if (to === 'aggregating' && from !== undefined) await driver.world.nameGroup('default', id, 'g');
      const stateOf = async () => (await driver.broker.inspection.getTask('default', id))?.state;
      expect(await stateOf()).toBe(from);
      await OPERATIONS[operation](driver, id);
      expect(await stateOf()).toBe(to);
    });
  });
}

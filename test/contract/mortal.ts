import type { Broker } from '../../lib/broker/broker.js';
import { Driver } from './driver.js';

/** The process of a flow died after a call. */
class Killed extends Error {
  override readonly name = 'Killed';
}

/** When the process dies: after its last call, or when it would make the next one. */
export type Death = 'after' | 'before';

/** The broker of a process that dies when it has made `calls` calls to these roles. */
function mortal(broker: Broker, calls: number, death: Death): Broker {
  let made = 0;
  const role = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(from, name) {
        const method: unknown = Reflect.get(from, name);
        if (typeof method !== 'function') return method;
        return async (...args: unknown[]) => {
          if (made === calls) throw new Killed();
          made++;
          const result: unknown = await Reflect.apply(method, from, args);
          if (made === calls && death === 'after') throw new Killed();
          return result;
        };
      },
    });
  const { links, workflows, consumer, checkpoints, administration, producer } = broker;
  const roles = {
    links: role(links),
    workflows: role(workflows),
    consumer: role(consumer),
    checkpoints: role(checkpoints),
    administration: role(administration),
    producer: role(producer),
  };
  return new Proxy(broker, { get: (from, name) => Reflect.get(roles, name) ?? Reflect.get(from, name) });
}

/**
 * Plays a flow in a process that dies when it has made `calls` calls to the store.
 *
 * @returns whether the flow came to its end before
 */
export async function playUntilDeath(
  { world, clock }: Driver,
  calls: number,
  flow: (dying: Driver) => Promise<void>,
  death: Death = 'after',
): Promise<boolean> {
  try {
    await flow(new Driver({ ...world, broker: mortal(world.broker, calls, death) }, clock));
    return true;
  } catch (error) {
    if (error instanceof Killed) return false;
    throw error;
  }
}

/** Tasks of a dead process are pending again, as their leases have expired. */
export async function requeueExpired(driver: Driver, queues: readonly string[]): Promise<void> {
  driver.clock.advance(120_000);
  for (const queue of queues) {
    const { tasks } = await driver.broker.maintenance.listExpiredLeases(queue, driver.now - 30, 10_000);
    if (tasks.length > 0)
      await driver.exchange(
        tasks.map(({ lease }) => ({ kind: 'requeue', lease })),
        0,
        queue,
      );
  }
}

import { BrokerUnavailableError } from '../../lib/errors.js';
import type { Broker } from '../../lib/broker/broker.js';

type Roles = { [K in keyof Broker as Broker[K] extends object ? Exclude<K, 'clock' | 'close'> : never]: Broker[K] };

/** The name of a method of any role, or `close`. */
export type Operation = { [R in keyof Roles]: keyof Roles[R] }[keyof Roles] | 'close';

/**
 * What a faulty operation does: fail before it did anything, or after it did everything (the reply
 * was lost).
 */
export type Fault = 'before' | 'after';

const ROLES = [
  'producer',
  'consumer',
  'checkpoints',
  'uniqueness',
  'maintenance',
  'groups',
  'monitoring',
  'cancellation',
  'inspection',
  'listing',
  'administration',
  'publications',
  'scheduling',
  'limiting',
  'events',
  'wake',
  'operations',
] as const satisfies readonly (keyof Roles)[];

/**
 * A broker in front of another that fails on command. `faults` says which operations, and how,
 * until changed.
 */
export function failingBroker<B extends Broker>(
  broker: B,
): { broker: B; faults: Map<Operation, Fault>; calls: Operation[] } {
  const faults = new Map<Operation, Fault>();
  const calls: Operation[] = [];
  const faulty = <T extends object>(part: T): T =>
    new Proxy(part, {
      get(target, property) {
        const value: unknown = Reflect.get(target, property, target);
        if (typeof value !== 'function') return value;
        const operation = property as Operation;
        return (...args: unknown[]): unknown => {
          calls.push(operation);
          const fault = faults.get(operation);
          const error = new BrokerUnavailableError(`${operation}: told to fail ${fault} the work`);
          if (fault === 'before') return Promise.reject(error);
          const result: unknown = value.apply(target, args);
          return fault === 'after' ? Promise.resolve(result).then(() => Promise.reject(error)) : result;
        };
      },
    });
  const roles = Object.fromEntries(ROLES.map((role) => [role, faulty(broker[role])]));
  const proxy = new Proxy(broker, {
    get: (target, property) => roles[String(property)] ?? Reflect.get(target, property, target),
  });
  return { broker: faulty(proxy), faults, calls };
}

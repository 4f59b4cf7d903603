import { BrokerUnavailableError } from '../../lib/errors.js';
import type { Broker } from '../../lib/broker/broker.js';

type Operation = { [K in keyof Broker]: Broker[K] extends (...args: never[]) => unknown ? K : never }[keyof Broker];

/** What a faulty operation does: fail before it did anything, or after it did everything (the reply was lost). */
export type Fault = 'before' | 'after';

/** A broker in front of another that fails on command. `faults` says which operations, and how, until changed. */
export function failingBroker<B extends Broker>(
  broker: B,
): { broker: B; faults: Map<Operation, Fault>; calls: Operation[] } {
  const faults = new Map<Operation, Fault>();
  const calls: Operation[] = [];
  const proxy = new Proxy(broker, {
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
  return { broker: proxy, faults, calls };
}

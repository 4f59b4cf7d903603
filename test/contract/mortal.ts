import type { Broker } from '../../lib/broker/broker.js';

/** The process of a flow died after a call. */
export class Killed extends Error {}

/** The broker of a process that dies when it has made `calls` calls to these roles. */
export function mortal(broker: Broker, calls: number): { broker: Broker; made: () => number } {
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
          if (made === calls) throw new Killed();
          return result;
        };
      },
    });
  const { links, workflows, consumer, administration, producer } = broker;
  const roles = {
    links: role(links),
    workflows: role(workflows),
    consumer: role(consumer),
    administration: role(administration),
    producer: role(producer),
  };
  const whole = new Proxy(broker, { get: (from, name) => Reflect.get(roles, name) ?? Reflect.get(from, name) });
  return { broker: whole, made: () => made };
}

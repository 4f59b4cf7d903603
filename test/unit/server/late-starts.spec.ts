import { afterEach, describe, expect, it } from 'vitest';
import type { Broker } from '../../../lib/broker/broker.js';
import { MemoryBroker } from '../../../lib/broker/memory/memory-broker.js';
import type { ManualClock } from '../../../lib/clock.js';
import type { TaskHandlerEntry } from '../../../lib/server/attempt/handler.js';
import type { ServerOptions } from '../../../lib/server/options.js';
import { Server } from '../../../lib/server/server.js';
import type { TaskContext } from '../../../lib/task/context.js';
import { fairHeader, request } from '../../support/messages.js';
import { numbers } from '../../support/numbers.js';
import { manualClock, turn } from '../../support/server-rig.js';

const [MAX, WINDOW, KEYS, ROUNDS] = [5, 400, 5, 40];
const SLOW_CALLS = new Set(['exchange', 'takeStarts', 'takeCosts']);

const servers: Server[] = [];

afterEach(() => servers.splice(0));

/** A broker whose replies come late: some by a few milliseconds, and one of ten by up to 300. */
function slow(memory: MemoryBroker, clock: ManualClock, random: () => number): Broker {
  const role = <T extends object>(part: T, more: object = {}): T =>
    new Proxy(part, {
      get(target, property) {
        if (property in more) return Reflect.get(more, property);
        const value: unknown = Reflect.get(target, property, target);
        if (typeof value !== 'function') return value;
        return async (...args: unknown[]) => {
          const reply: unknown = await Reflect.apply(value, target, args);
          const delay = random() < 0.1 ? 300 * random() : 3 * random();
          if (SLOW_CALLS.has(String(property))) await new Promise<void>((resolve) => clock.after(delay, resolve));
          return reply;
        };
      },
    });
  const roles: Record<string, unknown> = {
    consumer: role(memory.consumer),
    limiting: role(memory.limiting, { firstAllowance: 50 }),
  };
  return new Proxy(memory, {
    get: (target, property) => roles[String(property)] ?? Reflect.get(target, property, target),
  });
}

interface Way {
  readonly name: string;
  readonly options?: ServerOptions;
  readonly handler?: Partial<TaskHandlerEntry>;
  readonly isFair?: boolean;
  /** Whether each key has a rate of its own. */
  readonly byKey?: boolean;
}

const rateLimit = { max: MAX, per: WINDOW };
const keyOf = ({ payload }: TaskContext): string => payload.toString();
const WAYS: Way[] = [
  { name: 'of a queue', options: { queues: { default: { rateLimit } } } },
  { name: 'of a key of a fair queue', isFair: true, byKey: true },
  { name: 'of a handler', handler: { limits: { rateLimit } } },
  { name: 'of a handler, for each key', handler: { limits: { rateLimit }, limitKey: keyOf }, byKey: true },
  { name: 'of a handler whose tasks have costs', handler: { limits: { rateLimit }, cost: () => 1 } },
];

describe('a rate, whose replies of Redis come late', () => {
  it.each(WAYS)('$name: no window has more starts, and all tasks run', async (way) => {
    const clock = manualClock();
    const memory = new MemoryBroker(clock);
    if (way.isFair) memory.fairQueues.add('default');
    const broker = slow(memory, clock, numbers(15));
    const starts = new Map<string, number[]>();
    const handle = (task: TaskContext): void => {
      const key = way.byKey ? keyOf(task) : '';
      starts.set(key, [...(starts.get(key) ?? []), clock.now()]);
    };
    for (let index = 0; index < 3; index++) {
      const handlers = [{ pattern: 't', handle, ...way.handler } as TaskHandlerEntry];
      const server = new Server({ broker, handlers, options: { concurrency: 10, ...way.options } });
      servers.push(server);
      await server.start();
    }
    const count = KEYS * ROUNDS;
    const requests = Array.from({ length: count }, (_, index) => {
      const key = `k${index % KEYS}`;
      const headers = way.isFair ? fairHeader(key, { rate: MAX, window: WINDOW }) : undefined;
      return request({ id: `t${index}`, type: 't', payload: Buffer.from(key), ...(headers && { headers }) });
    });
    await memory.producer.enqueue('default', requests);
    const started = (): number => [...starts.values()].reduce((sum, { length }) => sum + length, 0);
    for (let passed = 0; started() < count; passed += 2) {
      expect(passed).toBeLessThan(60_000);
      clock.advance(2);
      await turn(3);
    }
    for (const times of starts.values()) {
      for (let at = MAX; at < times.length; at++) {
        expect(times[at]! - times[at - MAX]!).toBeGreaterThanOrEqual(WINDOW);
      }
    }
  });
});

import { describe, expect, onTestFinished } from 'vitest';
import type { Broker, LeasedTask } from '../../../lib/broker/broker.js';
import { AsynqClient } from '../../../lib/client/client.js';
import type { Duration } from '../../../lib/duration.js';
import { InvalidTaskError, SignalTimeoutError, TaskNotFoundError, TaskStateError } from '../../../lib/errors.js';
import { defineTask } from '../../../lib/task/definition.js';
import { defineSignal } from '../../../lib/task/signal.js';
import type { TaskSteps } from '../../../lib/task/steps.js';
import { archival, completion, Driver, type DriverTest, done, retrial } from '../driver.js';
import { type SteppedHandler, workOnSteps } from './checkpoint-kills.js';

interface Order {
  readonly orderId: string;
}

const key = ({ orderId }: Order): string => orderId;
/** With an id, and with a lock, that its key gives. */
const Once = defineTask<Order>('order', { key, once: '1d' });
const Unique = defineTask<Order>('order', { key, unique: { for: '1d', by: 'key' } });
const Other = defineTask<Order>('mail', { key, once: '1d' });
const Approval = defineSignal<{ by: string }>('approval');
/** The same, with another type. */
const Text = defineSignal<string>(Approval.name);
const Refusal = defineSignal<{ by: string }>('refusal');

type Task = Pick<LeasedTask['lease'], 'queue' | 'id'>;

/** How the signal finds the task. */
const ways = [
  ['its TaskInfo', undefined],
  ['its key, which gives its id', Once],
  ['its key, which gives its lock', Unique],
] as const;

function clientOf({ broker }: Driver): AsynqClient {
  const client = new AsynqClient(broker);
  onTestFinished(() => client.close());
  return client;
}

/** A task, and what sends it a signal. */
async function ordered(driver: Driver, definition: typeof Once | undefined, processIn?: Duration) {
  const client = clientOf(driver);
  const info = await client.enqueue(definition ?? Once, { orderId: '7' }, processIn ? { processIn } : {});
  const send = (signal = Approval): Promise<void> =>
    definition
      ? client.signal(definition, { key: '7' }, signal, { by: 'anna' })
      : client.signal(info, signal, { by: 'anna' });
  return { info, send };
}

const signalsOf = async ({ broker }: Driver, { queue, id }: Task) => {
  const { signals } = await broker.checkpoints.read(queue, id);
  return Object.fromEntries([...signals].map(([name, all]) => [name, all.map(String)]));
};

const ANNA = '{"by":"anna"}';

export function exerciseSignals(it: DriverTest): void {
  describe.each(ways)('a signal to a task that is found by %s', (_, definition) => {
    it('rejects when there is none yet, and when it is gone', async ({ driver }) => {
      const client = clientOf(driver);
      const early = definition
        ? client.signal(definition, { key: '7' }, Approval, { by: 'anna' })
        : client.signal({ queue: 'default', id: '7' }, Approval, { by: 'anna' });
      await expect(early).rejects.toThrow(TaskNotFoundError);
      await expect(early).rejects.toThrow(/^task not found: (id|key)=".*", queue="default"; /);
      const { send } = await ordered(driver, definition);
      await driver.settle(done(await driver.takeOne()));
      await expect(send()).rejects.toThrow(TaskNotFoundError);
      expect((await driver.queue()).tasks).toEqual({});
    });

    it('rejects when it has succeeded, or is archived, and leaves it as it is', async ({ driver }) => {
      const { info, send } = await ordered(driver, definition);
      await driver.settle(archival(await driver.takeOne()));
      const why = `task ${JSON.stringify(info.id)} cannot get the signal "approval": it has succeeded, or is archived`;
      await expect(send()).rejects.toThrow(TaskStateError);
      await expect(send()).rejects.toThrow(why);
      await driver.broker.administration.moveTasks(info.queue, 'run', [info.id]);
      await driver.settle(completion(await driver.takeOne(), driver.now + 60));
      // Its success has ended the lock, by which it was found.
      const late = definition === Unique ? 'task not found: key="7", queue="default"' : why;
      await expect(send()).rejects.toThrow(late);
      expect(await signalsOf(driver, info)).toEqual({});
      expect(await driver.stateOf(info.id)).toBe('completed');
    });

    it('is kept, and changes nothing else, while it does not wait for that', async ({ driver }) => {
      const { info, send } = await ordered(driver, definition, '1m');
      const sent: string[] = [];
      const sends = async (state: string): Promise<void> => {
        expect(await driver.stateOf(info.id)).toBe(state);
        await send();
        sent.push(ANNA);
        expect(await driver.stateOf(info.id)).toBe(state);
        expect(await signalsOf(driver, info)).toEqual({ approval: sent });
      };
      await sends('scheduled');
      driver.clock.advance(60_000);
      await driver.broker.maintenance.forward('default');
      await sends('pending');
      const task = await driver.takeOne();
      await sends('active');
      await driver.settle(retrial(task, driver.now));
      await sends('retry');
      await driver.broker.maintenance.forward('default');
      const again = await driver.takeOne();
      const awaits = [{ signal: 'refusal', n: 1 }];
      await driver.settle({ kind: 'sleep', lease: again.lease, wakeAt: driver.now + 600, awaits });
      await sends('scheduled');
      expect((await driver.queue()).pending).toEqual([]);
      await send(Refusal);
      expect((await driver.queue()).pending).toEqual([info.id]);
    });
  });

  describe('a signal', () => {
    it('finds no task of another type by the same key', async ({ driver }) => {
      const client = clientOf(driver);
      const info = await client.enqueue(Once, { orderId: '7' });
      await expect(client.signal(Other, { key: '7' }, Approval, { by: 'anna' })).rejects.toThrow(TaskNotFoundError);
      const elsewhere = client.signal(Once, { key: '7', queue: 'other' }, Approval, { by: 'anna' });
      await expect(elsewhere).rejects.toThrow(TaskNotFoundError);
      expect(await signalsOf(driver, info)).toEqual({});
    });

    it('is refused before anything is read, when it is none', async ({ driver }) => {
      const client = clientOf(driver);
      const info = await client.enqueue(Once, { orderId: '7' });
      const wrong: Promise<void>[] = [
        client.signal(info, { name: 'a#b' }),
        client.signal(info, 'approval' as never),
        client.signal(info, Approval, { by: 1n } as never),
        client.signal('7' as never, Approval, { by: 'anna' }),
        client.signal(Once, '7' as never, Approval, { by: 'anna' }),
      ];
      for (const one of wrong) await expect(one).rejects.toThrow(InvalidTaskError);
      expect(await signalsOf(driver, info)).toEqual({});
    });

    it('of more than a thousand of its name is refused', async ({ driver }) => {
      const client = clientOf(driver);
      const info = await client.enqueue(Once, { orderId: '7' });
      await Promise.all(Array.from({ length: 1_000 }, () => client.signal(info, Approval, { by: 'anna' })));
      const late = client.signal(info, Approval, { by: 'anna' });
      await expect(late).rejects.toThrow(TaskStateError);
      await expect(late).rejects.toThrow('cannot get the signal "approval": it has 1000 of them, the most');
    });
  });

  it('a signal that comes when a wait times out, in whatever moment, is taken once', async ({ driver }) => {
    const taken = new Set<string>();
    for (let at = 1, isLast = false; !isLast; at++) {
      const id = await driver.add();
      const send = (payload: string) =>
        driver.broker.checkpoints.signal('default', id, Approval.name, Buffer.from(JSON.stringify(payload)));
      let made = 0;
      const racing = new Driver(
        { ...driver.world, broker: after(driver.broker, async () => void (++made === at && (await send('race')))) },
        driver.clock,
      );
      const got: unknown[] = [];
      const waits: SteppedHandler = {
        result: undefined,
        async handle(steps: TaskSteps) {
          const first = steps.waitFor('first', Text, { timeout: '1m' }).catch((error: unknown) => {
            if (error instanceof SignalTimeoutError) return 'timed out';
            throw error;
          });
          got.push(await first);
          return [await first, await steps.waitFor('second', Text, { timeout: '1d' })];
        },
      };
      await workOnSteps(racing, waits);
      driver.clock.advance(60_000);
      await driver.broker.maintenance.forward('default');
      while (await workOnSteps(racing, waits));
      isLast = made < at;
      await send('last');
      await workOnSteps(driver, waits);
      taken.add(String(waits.result));
      expect(new Set(got).size, String(got)).toBe(1); // each call of the handler says the same
      expect((await driver.queue()).tasks).toEqual({});
    }
    expect(taken).toEqual(new Set(['race,last', 'timed out,race', 'timed out,last']));
  });
}

/** A broker after whose calls something happens. */
function after(broker: Broker, onCall: () => Promise<void>): Broker {
  const role = <T extends object>(target: T): T =>
    new Proxy(target, {
      get: (from, name) => {
        const method = Reflect.get(from, name) as (...args: unknown[]) => unknown;
        return async (...args: unknown[]) => {
          const reply: unknown = await Reflect.apply(method, from, args);
          await onCall();
          return reply;
        };
      },
    });
  const roles = { checkpoints: role(broker.checkpoints), consumer: role(broker.consumer) };
  return new Proxy(broker, { get: (from, name) => Reflect.get(roles, name) ?? Reflect.get(from, name) });
}

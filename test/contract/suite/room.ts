import type { Duration } from '../../../lib/duration.js';
import { describe, expect, onTestFinished } from 'vitest';
import { AsynqClient } from '../../../lib/client/client.js';
import type { EnqueueOptions } from '../../../lib/client/types.js';
import { DuplicateTaskError, QueueFullError } from '../../../lib/errors.js';
import type { TaskInfo } from '../../../lib/task/info.js';
import type { Driver, DriverTest } from '../driver.js';

/* What waits for room in a queue, and is the same task as another. */

interface Mode {
  readonly name: string;
  readonly options: EnqueueOptions<unknown>;
  /** What a call gets whose task is there already, and has not started. */
  readonly repeat: 'refused' | 'found' | 'replaced';
}

const MODES: readonly Mode[] = [
  { name: 'unique', options: { unique: { for: '30d', by: 'key' } }, repeat: 'refused' },
  { name: 'existing', options: { unique: { for: '30d', by: 'key', onDuplicate: 'existing' } }, repeat: 'found' },
  { name: 'replace', options: { unique: { for: '30d', by: 'key', onDuplicate: 'replace' } }, repeat: 'replaced' },
  { name: 'once', options: { once: '30d' }, repeat: 'found' },
  { name: 'throttle', options: { throttle: '30d' }, repeat: 'found' },
  { name: 'latest', options: { latest: true }, repeat: 'replaced' },
  { name: 'supersede', options: { supersede: true }, repeat: 'replaced' },
];

const clientOf = ({ broker }: Driver, waitForRoom?: Duration): AsynqClient => {
  const queues = waitForRoom === undefined ? undefined : { default: { maxPending: 1, waitForRoom } };
  const client = new AsynqClient(broker, { queues });
  onTestFinished(() => client.close());
  return client;
};

/** A client of a queue that is full, and one that knows no bound. */
async function full(driver: Driver, { options }: Mode, waitForRoom: Duration = '1d') {
  await driver.add({ id: 'other' });
  const enqueue = (client: AsynqClient, payload: number, key = 'k') =>
    client.enqueue('t', payload, { key, ...options }).catch((error: unknown) => error as Error);
  const [bounded, free] = [clientOf(driver, waitForRoom), clientOf(driver)];
  return {
    waiting: (payload: number, key?: string) => enqueue(bounded, payload, key),
    elsewhere: (payload: number, key?: string) => enqueue(free, payload, key),
  };
}

const tries = (driver: Driver) => expect.poll(() => driver.clock.nextDue(), { interval: 1 });

/** Moves the clock from try to try, until it is over. */
async function over<T>({ clock }: Driver, call: Promise<T>): Promise<T> {
  let isOver = false;
  void call.finally(() => (isOver = true));
  const step = (): boolean => {
    const due = isOver ? undefined : clock.nextDue();
    if (due !== undefined) clock.moveTo(due);
    return isOver;
  };
  await expect.poll(step, { interval: 1 }).toBe(true);
  return call;
}

async function stored(driver: Driver) {
  const { tasks } = await driver.queue();
  return Object.values(tasks).flatMap(({ message }) => (message.type === 't' ? [String(message.payload)] : []));
}

/** Expects what a repeat gets. */
function expectRepeat({ repeat }: Mode, reply: TaskInfo | Error, id: string): void {
  if (repeat === 'refused') {
    expect(reply).toBeInstanceOf(DuplicateTaskError);
    expect(reply).toMatchObject({ holder: { id } });
  } else expect(reply).toMatchObject({ id, created: false });
}

export function exerciseRoom(it: DriverTest): void {
  describe('what waits for room, and is the same task as another', () => {
    it.for(MODES)('is one task, however many wait: $name', async (mode, { driver }) => {
      const { waiting } = await full(driver, mode);
      const calls = Promise.all([1, 2, 3].map((payload) => waiting(payload)));
      await tries(driver).toBeDefined();
      expect(await stored(driver)).toEqual([]);
      expect((await driver.queue()).locks).toEqual({});
      await driver.take(1);
      const [first, ...others] = (await over(driver, calls)) as [TaskInfo, ...TaskInfo[]];
      expect(first).toMatchObject({ created: true, state: 'pending' });
      for (const other of others) expectRepeat(mode, other, first.id);
      expect(await stored(driver)).toEqual([mode.repeat === 'replaced' ? '3' : '1']);
    });

    it.for(MODES)('has taken nothing when its time is over: $name', async (mode, { driver }) => {
      const { waiting } = await full(driver, mode, '5s');
      const refused = await over(driver, waiting(1));
      expect(refused).toBeInstanceOf(QueueFullError);
      expect((refused as QueueFullError).waited).toBeGreaterThanOrEqual(5_000);
      expect([await stored(driver), (await driver.queue()).locks]).toEqual([[], {}]);
      await driver.take(1);
      expect(await waiting(2)).toMatchObject({ created: true });
    });

    it.for(MODES)('needs none when another process has made it meanwhile: $name', async (mode, { driver }) => {
      const { waiting, elsewhere } = await full(driver, mode);
      const call = waiting(1);
      await tries(driver).toBeDefined();
      const { id } = (await elsewhere(2)) as TaskInfo;
      expectRepeat(mode, await over(driver, call), id);
      expect(await stored(driver)).toEqual([mode.repeat === 'replaced' ? '1' : '2']);
    });

    it.for(MODES)('lets no other wait whose task is there: $name', async (mode, { driver }) => {
      const { waiting, elsewhere } = await full(driver, mode);
      const { id } = (await elsewhere(1, 'there')) as TaskInfo;
      const call = waiting(1, 'new');
      await tries(driver).toBeDefined();
      expectRepeat(mode, (await waiting(2, 'there')) as TaskInfo, id); // the clock stands still
      expect(await stored(driver)).toEqual([mode.repeat === 'replaced' ? '2' : '1']);
      await driver.take(2);
      expect(await over(driver, call)).toMatchObject({ created: true });
    });

    it.for(MODES)('stays before a later call of its process: $name', async (mode, { driver }) => {
      const { waiting, elsewhere } = await full(driver, mode);
      const first = waiting(1);
      await tries(driver).toBeDefined();
      const { id } = (await elsewhere(2)) as TaskInfo;
      for (const reply of await over(driver, Promise.all([first, waiting(3)]))) expectRepeat(mode, reply, id);
      expect(await stored(driver)).toEqual([mode.repeat === 'replaced' ? '3' : '2']);
    });

    it.for([{ debounce: { wait: '1h' } }, { latest: true }] as const)(
      'is in no line when it would not be pending: %o',
      async (options, { driver }) => {
        if ('latest' in options) {
          await clientOf(driver).enqueue('t', 0, { key: 'k', ...options });
          await driver.take(1);
        }
        const mode: Mode = { name: '', options, repeat: 'replaced' };
        const { waiting } = await full(driver, mode);
        const first = (await waiting(1)) as TaskInfo;
        expect(first).toMatchObject({ created: true, state: 'latest' in options ? 'waiting' : 'scheduled' });
        expectRepeat(mode, await waiting(2), first.id);
      },
    );
  });
}

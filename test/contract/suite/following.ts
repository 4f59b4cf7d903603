import { describe, expect, onTestFinished, vi } from 'vitest';
import type { FollowingRole, FollowSource } from '../../../lib/broker/following.js';
import type { TaskPlace } from '../../../lib/broker/task-place.js';
import { ClosedError } from '../../../lib/errors.js';
import { Results } from '../../../lib/results/results.js';
import { type Driver, type DriverTest, archival, completion, done, requeueing, retrial } from '../driver.js';

interface Notices {
  readonly source: FollowSource;
  /** The ids of tasks that have changed. */
  readonly changed: string[];
  lost: number;
}

function follow(driver: Driver): Notices {
  const changed: string[] = [];
  const source = driver.broker.following.follow({
    onChanged: ({ id }) => void changed.push(id),
    onLost: () => void notices.lost++,
  });
  const notices: Notices = { source, changed, lost: 0 };
  onTestFinished(() => source.close());
  return notices;
}

const placed = (id: string, queue = 'default'): TaskPlace => ({ queue, id });

/** Notices arrive in the order of the changes: after this one, no earlier one is under way. */
async function flush(driver: Driver, { source, changed }: Notices): Promise<void> {
  await source.arm([placed('flush')]);
  await driver.add({ id: 'flush' });
  await vi.waitFor(() => expect(changed).toContain('flush'));
  changed.splice(changed.indexOf('flush'), 1);
}

const WAIT = { timeout: 10_000, signal: undefined };

function waiting(driver: Driver) {
  const armed = new Set<string>();
  const results = new Results({ ...rolesOf(driver), following: noting(driver.broker.following, armed) });
  onTestFinished(() => results.close());
  const of = (id: string, kept = true): Promise<unknown> => {
    const result = results.of({ queue: 'default', id, known: true, kept }, WAIT);
    result.catch(() => undefined);
    return result;
  };
  /** Resolves when the wait for the task has heard of it. */
  const heard = (id: string): Promise<void> => vi.waitFor(() => expect(armed).toContain(id));
  return { results, of, heard };
}

const rolesOf = ({ broker: { inspection, clock, manual } }: Driver) => ({ inspection, clock, manual });

/** Notes the ids of tasks whose arming has a reply. */
const noting = (role: FollowingRole, armed: Set<string>): FollowingRole => ({
  read: (tasks) => role.read(tasks),
  follow: (listener) => {
    const source = role.follow(listener);
    const arm = async (tasks: readonly TaskPlace[]) => {
      const found = await source.arm(tasks);
      for (const { id } of tasks) armed.add(id);
      return found;
    };
    return { arm, forget: (task) => source.forget(task), close: () => source.close() };
  },
});

export function exerciseFollowing(it: DriverTest): void {
  describe('following', () => {
    it('reads tasks, in order, whatever state they are in', async ({ driver }) => {
      const states = ['scheduled', 'retry', 'archived', 'completed', 'aggregating'] as const;
      const ids = [(await driver.takeNew()).lease.id];
      for (const state of states) ids.push(await driver.arrange(state));
      const other = await driver.add({ queue: 'other' });
      const tasks = [...ids.map((id) => placed(id)), placed('none'), placed(other, 'other')];
      const expected = ['active', 'scheduled', 'retry', 'archived', 'completed', 'aggregating', undefined, 'pending'];
      expect((await driver.broker.following.read(tasks)).map((task) => task?.state)).toEqual(expected);
      expect((await follow(driver).source.arm(tasks)).map((task) => task?.state)).toEqual(expected);
      expect(await driver.broker.following.read([])).toEqual([]);
    });

    it('reads results as they were written', async ({ driver }) => {
      const task = await driver.takeNew();
      const bytes = Buffer.from([0, 255, 10, 200]);
      await driver.settle(completion(task, driver.now + 60, bytes));
      const { source } = follow(driver);
      const tasks = [placed(task.lease.id)];
      expect(await source.arm(tasks)).toEqual([{ state: 'completed', result: bytes, notes: undefined }]);
      expect(await driver.broker.following.read(tasks)).toEqual([
        { state: 'completed', result: bytes, notes: undefined },
      ]);
    });

    it('notices every change of a task, once per arming', async ({ driver }) => {
      const id = await driver.add();
      const notices = follow(driver);
      const { source, changed } = notices;
      let task = undefined as unknown as Awaited<ReturnType<Driver['takeOne']>>;
      const steps: (() => Promise<unknown>)[] = [
        async () => (task = await driver.takeOne()),
        () => driver.broker.consumer.writeResult(task.lease, Buffer.from('1')),
        () => driver.settle(requeueing(task)),
        async () => (task = await driver.takeOne()),
        () => driver.settle(retrial(task, driver.now)),
        () => driver.broker.maintenance.forward('default'),
        async () => (task = await driver.takeOne()),
        () => driver.settle(archival(task)),
        () => driver.broker.administration.moveTasks('default', 'run', [id]),
        () => driver.broker.administration.moveTasks('default', 'delete', [id]),
      ];
      for (const [index, step] of steps.entries()) {
        await source.arm([placed(id)]);
        await step();
        await vi.waitFor(() => expect(changed, `step ${index}`).toHaveLength(index + 1));
      }
      expect(new Set(changed)).toEqual(new Set([id]));
      await driver.add({ id });
      await flush(driver, notices);
      expect(changed).toHaveLength(steps.length);
      expect(notices.lost).toBe(0);
    });

    it('notices a task that comes', async ({ driver }) => {
      const { source, changed } = follow(driver);
      expect(await source.arm([placed('later')])).toEqual([undefined]);
      await driver.add({ id: 'later' });
      await vi.waitFor(() => expect(changed).toEqual(['later']));
    });

    it('emits nothing for tasks that nobody wants to know of, nor after it was closed', async ({ driver }) => {
      const notices = follow(driver);
      const id = await driver.add();
      await notices.source.arm([placed(id)]);
      notices.source.forget(placed(id));
      await driver.takeOne();
      await flush(driver, notices);
      expect(notices.changed).toEqual([]);
      await notices.source.arm([placed('x')]);
      await notices.source.close();
      await notices.source.close();
      const open = follow(driver);
      await open.source.arm([placed('x')]);
      await driver.add({ id: 'x' });
      await vi.waitFor(() => expect(open.changed).toEqual(['x']));
      expect(notices.changed).toEqual([]);
      await expect(notices.source.arm([placed('x')])).rejects.toBeInstanceOf(ClosedError);
    });
  });

  describe('a wait for a result', () => {
    it('ends with the result, whether it began before or after the end', async ({ driver }) => {
      const id = await driver.add();
      const waits = waiting(driver);
      const before = waits.of(id);
      await waits.heard(id);
      const task = await driver.takeOne();
      await driver.settle(completion(task, driver.now + 60, Buffer.from('{"a":1}')));
      expect(await before).toEqual({ a: 1 });
      expect(await waits.of(id)).toEqual({ a: 1 });
    });

    it('ends with what was written of old when the handler returns nothing, and with bytes as they are', async ({
      driver,
    }) => {
      const waits = waiting(driver);
      const task = await driver.takeNew();
      await driver.broker.consumer.writeResult(task.lease, Buffer.from('1 of 2'));
      const wait = waits.of(task.lease.id);
      await driver.settle(completion(task, driver.now + 60));
      expect(await wait).toEqual(Buffer.from('1 of 2'));
      const silent = await driver.takeNew();
      await driver.settle(completion(silent, driver.now + 60));
      expect(await waits.of(silent.lease.id)).toBeUndefined();
    });

    it('goes on while the task is retried, requeued, or run again by hand', async ({ driver }) => {
      const id = await driver.add();
      const waits = waiting(driver);
      const wait = waits.of(id);
      await driver.settle(retrial(await driver.takeOne(), driver.now + 60));
      await driver.broker.administration.moveTasks('default', 'run', [id]);
      await driver.settle(requeueing(await driver.takeOne()));
      await driver.settle(completion(await driver.takeOne(), driver.now + 60, Buffer.from('2')));
      expect(await wait).toBe(2);
    });

    it('ends with an error when the task is archived, with its reason', async ({ driver }) => {
      const waits = waiting(driver);
      const task = await driver.takeNew();
      const wait = waits.of(task.lease.id);
      await waits.heard(task.lease.id);
      const { lease, message } = task;
      await driver.settle({ kind: 'archive', lease, message: { ...message, errorMsg: 'no paper' } });
      await expect(wait).rejects.toMatchObject({ code: 'ASYNQ_TASK_FAILED', reason: 'no paper', id: lease.id });
      await expect(wait).rejects.toThrow('is archived: no paper');
      await expect(waits.of(lease.id)).rejects.toMatchObject({ code: 'ASYNQ_TASK_FAILED' });
    });

    it('ends with an error when nothing is kept of the task', async ({ driver }) => {
      const waits = waiting(driver);
      const task = await driver.takeNew();
      const [kept, notKept] = [waits.of(task.lease.id), waits.of(task.lease.id, false)];
      await waits.heard(task.lease.id);
      await driver.settle(done(task));
      await expect(notKept).rejects.toMatchObject({ code: 'ASYNQ_RESULT_NOT_KEPT' });
      await expect(kept).rejects.toMatchObject({ code: 'ASYNQ_TASK_NOT_FOUND' });
    });

    it('ends with an error when the task is deleted, or its queue', async ({ driver }) => {
      const waits = waiting(driver);
      const [id, other] = [await driver.add(), await driver.add()];
      const wait = waits.of(id);
      const second = waits.of(other);
      await waits.heard(other);
      await driver.broker.administration.moveTasks('default', 'delete', [id]);
      await expect(wait).rejects.toMatchObject({ code: 'ASYNQ_TASK_NOT_FOUND' });
      await driver.broker.administration.deleteQueue('default', { force: true });
      await expect(second).rejects.toMatchObject({ code: 'ASYNQ_TASK_NOT_FOUND' });
    });

    it('ends in time', async ({ driver }) => {
      const waits = waiting(driver);
      const id = await driver.add();
      const wait = waits.of(id);
      await waits.heard(id);
      driver.clock.advance(WAIT.timeout - 1);
      await expect(Promise.race([wait, Promise.resolve('waits')])).resolves.toBe('waits');
      driver.clock.advance(1);
      await expect(wait).rejects.toMatchObject({ code: 'ASYNQ_RESULT_TIMEOUT', timeout: WAIT.timeout });
      await expect(wait).rejects.toThrow('did not end within 10 s; it goes on');
    });

    it('ends when the client is closed', async ({ driver }) => {
      const waits = waiting(driver);
      const wait = waits.of(await driver.add());
      await waits.results.close();
      await expect(wait).rejects.toBeInstanceOf(ClosedError);
      await expect(waits.of('x')).rejects.toBeInstanceOf(ClosedError);
    });
  });
}

import { type AsynqClient, defineTask } from 'nestjs-asynq';
import type { AsynqTester } from 'nestjs-asynq/testing';
import { describe, expect, it } from 'vitest';

/** Methods with `@Transactional`, by propagation. */
export interface Unit {
  required<T>(work: () => Promise<T>): Promise<T>;
  notSupported<T>(work: () => Promise<T>): Promise<T>;
}

export interface TransactionWorld {
  readonly asynq: AsynqClient;
  readonly tasks: AsynqTester;
  readonly unit: Unit;
  /** Sets a savepoint in the transaction around the call. */
  savepoint<T>(work: () => Promise<T>): Promise<T>;
}

const Mail = defineTask<{ n: number }>('mail');

/** What holds for tasks in transactions, whoever makes these. */
export function describeTransactions(name: string, make: () => Promise<TransactionWorld>): void {
  describe(`tasks in transactions of ${name}`, () => {
    const sent = (tasks: AsynqTester) => tasks.enqueued(Mail).map(({ payload }) => payload.n);
    const failed = new Error('roll back');
    const fail = () => Promise.reject(failed);
    const ignore = (error: unknown) => expect(error).toBe(failed);

    it('are enqueued by the commit, in order, before its caller goes on', async () => {
      const { asynq, tasks, unit } = await make();
      const infos = await unit.required(async () => {
        const one = await asynq.enqueue(Mail, { n: 1 });
        const many = await asynq.enqueueMany(Mail, [{ n: 2 }, { n: 3 }]);
        expect(sent(tasks)).toEqual([]);
        return [one, ...many.map(({ info }) => info!)];
      });
      expect(sent(tasks)).toEqual([1, 2, 3]);
      expect(tasks.enqueued(Mail).map(({ id }) => id)).toEqual(infos.map(({ id }) => id));
    });

    it('are dropped by a rollback', async () => {
      const { asynq, tasks, unit } = await make();
      const run = unit.required(async () => {
        await asynq.enqueue(Mail, { n: 1 });
        await asynq.enqueueMany(Mail, [{ n: 2 }]);
        await fail();
      });
      await run.catch(ignore);
      expect(sent(tasks)).toEqual([]);
    });

    it('are enqueued at once where there is no transaction', async () => {
      const { asynq, tasks, unit } = await make();
      await asynq.enqueue(Mail, { n: 1 });
      expect(sent(tasks)).toEqual([1]);
      await unit.required(async () => {
        await unit.notSupported(() => asynq.enqueue(Mail, { n: 2 }));
        expect(sent(tasks)).toEqual([1, 2]);
      });
    });

    it('belong to the transaction around the call that joins it', async () => {
      const { asynq, tasks, unit } = await make();
      const run = unit.required(async () => {
        await unit.required(() => asynq.enqueue(Mail, { n: 1 }));
        expect(sent(tasks)).toEqual([]);
        await fail();
      });
      await run.catch(ignore);
      expect(sent(tasks)).toEqual([]);
    });

    it('of a savepoint wait for the commit of the whole', async () => {
      const { asynq, tasks, unit, savepoint } = await make();
      await unit.required(async () => {
        await asynq.enqueue(Mail, { n: 1 });
        await savepoint(async () => {
          await asynq.enqueue(Mail, { n: 2 });
          await savepoint(() => asynq.enqueue(Mail, { n: 3 }));
        });
        expect(sent(tasks)).toEqual([]);
        await asynq.enqueue(Mail, { n: 4 });
      });
      expect(sent(tasks)).toEqual([1, 2, 3, 4]);
    });

    it('of a savepoint are dropped with it, and with the whole', async () => {
      const { asynq, tasks, unit, savepoint } = await make();
      await unit.required(async () => {
        await asynq.enqueue(Mail, { n: 1 });
        const inner = savepoint(async () => {
          await savepoint(() => asynq.enqueue(Mail, { n: 2 }));
          await fail();
        });
        await inner.catch(ignore);
        await asynq.enqueue(Mail, { n: 3 });
      });
      expect(sent(tasks)).toEqual([1, 3]);
      const whole = unit.required(async () => {
        await savepoint(() => asynq.enqueue(Mail, { n: 4 }));
        await fail();
      });
      await whole.catch(ignore);
      expect(sent(tasks)).toEqual([1, 3]);
    });

    it('say at once what is wrong with them', async () => {
      const { asynq, tasks, unit } = await make();
      await unit.required(async () => {
        await expect(asynq.enqueue(Mail, { n: 1 }, { queue: '' })).rejects.toThrow('queue');
        const results = await asynq.enqueueMany([
          { task: Mail, payload: { n: 1n as never } },
          { task: Mail, payload: { n: 2 } },
        ]);
        expect(results.map(({ ok }) => ok)).toEqual([false, true]);
      });
      expect(sent(tasks)).toEqual([2]);
    });

    it('are enqueued at once after the end of their transaction', async () => {
      const { asynq, tasks, unit } = await make();
      let late: Promise<unknown> | undefined;
      let goOn = (): void => {};
      const gate = new Promise<void>((resolve) => (goOn = resolve));
      await unit.required(async () => {
        late = gate.then(() => asynq.enqueue(Mail, { n: 1 }));
      });
      goOn();
      await late;
      expect(sent(tasks)).toEqual([1]);
    });
  });
}

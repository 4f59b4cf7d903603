import { describe, expect } from 'vitest';
import { request } from '../../support/messages.js';
import type { DriverTest } from '../driver.js';

export function exerciseBounded(it: DriverTest): void {
  describe('a bounded queue', () => {
    it('takes tasks in order while it has room', async ({ driver }) => {
      const { producer } = driver.broker;
      const ids = ['a', 'b', 'c', 'd'].map((id) => request({ id }));
      expect(await producer.enqueueBounded('default', ids.slice(0, 2), 3)).toEqual(['enqueued', 'enqueued']);
      expect(await producer.enqueueBounded('default', ids.slice(2), 3)).toEqual(['enqueued', { pending: 3 }]);
      expect(await producer.enqueueBounded('default', ids.slice(3), 3)).toEqual([{ pending: 3 }]);
      expect(Object.keys((await driver.queue()).tasks).sort()).toEqual(['a', 'b', 'c']);
      expect(await driver.enqueue(ids.slice(3))).toEqual(['enqueued']); // others know no bound
      expect(await producer.enqueueBounded('default', [request({ id: 'e' })], 3)).toEqual([{ pending: 4 }]);
      await driver.take(2);
      expect(await producer.enqueueBounded('default', [request({ id: 'e' })], 3)).toEqual(['enqueued']);
      expect(await producer.enqueueBounded('default', [], 1)).toEqual([]);
    });

    it('has room for what is not pending, in any case', async ({ driver }) => {
      await driver.enqueue([request({ id: 'a' })]);
      const tasks = [
        request({ id: 'full' }),
        request({ id: 'delayed' }, { processAt: driver.now + 60 }),
        request({ id: 'grouped', groupKey: 'g' }),
        request({ id: 'later', groupKey: 'g' }, { processAt: driver.now + 60 }),
      ];
      const statuses = await driver.broker.producer.enqueueBounded('default', tasks, 1);
      expect(statuses).toEqual([{ pending: 1 }, 'enqueued', 'enqueued', 'enqueued']);
      expect(Object.keys((await driver.queue()).tasks).sort()).toEqual(['a', 'delayed', 'grouped', 'later']);
    });

    it('never refuses what is accepted: it is forwarded, requeued and run by hand beyond the bound', async ({
      driver,
    }) => {
      await driver.broker.producer.enqueueBounded(
        'default',
        [request({ id: 'now' }), request({ id: 'due' }, { processAt: driver.now + 1 })],
        1,
      );
      driver.clock.advance(1000);
      expect(await driver.broker.maintenance.forward('default')).toMatchObject({ moved: 1 });
      expect(await driver.broker.producer.enqueueBounded('default', [request({ id: 'x' })], 2)).toEqual([
        { pending: 2 },
      ]);
    });

    it('says first that a task is a duplicate, and takes no lock for one without room', async ({ driver }) => {
      const { producer } = driver.broker;
      const unique = (id: string, key: string) => request({ id, uniqueKey: key }, { uniqueTtl: 60 });
      expect(await producer.enqueueBounded('default', [unique('a', 'asynq:{default}:unique:1')], 1)).toEqual([
        'enqueued',
      ]);
      expect(
        await producer.enqueueBounded(
          'default',
          [unique('b', 'asynq:{default}:unique:1'), request({ id: 'a' }), unique('c', 'asynq:{default}:unique:2')],
          1,
        ),
      ).toEqual(['duplicate', 'conflict', { pending: 1 }]);
      await driver.take(1);
      expect(await producer.enqueueBounded('default', [unique('c', 'asynq:{default}:unique:2')], 1)).toEqual([
        'enqueued',
      ]);
    });

    it('counts tasks with links that would be pending', async ({ driver }) => {
      const { links } = driver.broker;
      const mark = (id: string) => ({
        ...request({ id, type: 't' }),
        mark: { type: 't', key: id, rememberFor: 60 },
        wait: undefined,
      });
      const waiting = {
        ...request({ id: 'w', type: 't' }),
        mark: undefined,
        wait: {
          prerequisites: [{ type: 'other', key: 'k' }],
          onFailure: 'cancel' as const,
          onTimeout: 'archive' as const,
          deadline: driver.now + 60,
        },
      };
      const tasks = [mark('a'), mark('b'), waiting, mark('c')];
      const { statuses } = await links.enqueueBounded('default', tasks, 2);
      expect(statuses).toEqual(['enqueued', 'enqueued', 'enqueued', { pending: 2 }]);
      expect((await links.enqueueBounded('default', [mark('a')], 2)).statuses).toEqual(['conflict']);
      expect((await links.enqueue('default', [mark('c')])).statuses).toEqual(['enqueued']);
    });
  });
}

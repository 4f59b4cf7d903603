import { Injectable } from '@nestjs/common';
import {
  AsynqClient,
  AsynqInspector,
  defineTask,
  InvalidHandlerError,
  InvalidTaskError,
  TaskHandler,
} from 'nestjs-asynq';
import { describe, expect, test } from 'vitest';
import { testApp } from './support.js';

interface Row {
  readonly partner?: string | number;
}

const Sync = defineTask<Row>('sync', {
  rateLimit: { max: 2, per: '1m' },
  limitBy: ({ partner }) => partner!,
  retention: '1h',
});

describe('limitBy', () => {
  @Injectable()
  class Partners {
    readonly ran: Row[] = [];
    @TaskHandler(Sync)
    sync(row: Row) {
      this.ran.push(row);
    }
  }

  test('holds the limits of a definition for each key, also in the testing kit', async () => {
    const { app, tasks } = await testApp({ providers: [Partners] });
    const client = app.get(AsynqClient);
    for (const partner of ['acme', 'acme', 'acme', 'globex', 7, 7]) await client.enqueue(Sync, { partner });
    const { total, left } = await tasks.drain();
    expect([total, left]).toMatchObject([5, [{ type: 'sync', count: 1, reason: 'limited' }]]);
    expect(left[0]!.why).toContain('"sync:acme"');
    const [held] = tasks.enqueued(Sync);
    expect(held).toMatchObject({ state: 'held', heldBy: 'sync:acme', payload: { partner: 'acme' } });
    const { summary, reasons } = await app.get(AsynqInspector).explain(held!);
    expect(reasons[0]).toMatchObject({ kind: 'handlerLimit', scope: 'sync:acme', deferred: true });
    expect(summary).toContain('sync:acme');
    expect((await tasks.advance('2m')).total).toBe(1);
    expect(app.get(Partners).ran.map(({ partner }) => partner)).toEqual(['acme', 'acme', 'globex', 7, 7, 'acme']);
  });

  test('refuses a wrong key where the task is enqueued, and writes nothing', async () => {
    const { app, tasks } = await testApp({ providers: [Partners] });
    const client = app.get(AsynqClient);
    await expect(client.enqueue(Sync, {})).rejects.toThrow(InvalidTaskError);
    await expect(client.enqueue(Sync, {})).rejects.toThrow(
      'the key that limitBy of task "sync" returned must be a text or a number, not undefined',
    );
    await expect(client.enqueue(Sync, { partner: ' ' })).rejects.toThrow('is blank');
    await expect(client.enqueue(Sync, { partner: 'x'.repeat(300) })).rejects.toThrow('300 bytes, and may have 256');
    await expect(client.enqueue(Sync, undefined as never)).rejects.toThrow('limitBy of task "sync" threw');
    expect(tasks.all()).toEqual([]);
  });

  test('archives what comes without a key from elsewhere, as a handler alone may have it', async () => {
    @Injectable()
    class Alone {
      @TaskHandler('alone', { globalConcurrency: 1, limitBy: (row: Row) => row.partner! })
      run() {}
    }
    const { app, tasks } = await testApp({ providers: [Alone] });
    await app.get(AsynqClient).enqueue('alone', {});
    await app.get(AsynqClient).enqueue('alone', { partner: 'acme' });
    expect((await tasks.drain()).total).toBe(2);
    expect(tasks.archived()).toMatchObject([
      {
        retried: 0,
        lastErr: 'the key that limitBy of task "alone" returned must be a text or a number, not undefined',
      },
    ]);
  });

  test('is refused without a limit, or as anything but a function', async () => {
    expect(() => defineTask('x', { limitBy: () => 'a' })).toThrow('limitBy of task "x" limits nothing without');
    expect(() => defineTask('x', { concurrency: 1, limitBy: 'partner' as never })).toThrow(InvalidTaskError);
    expect(() => TaskHandler('x', { limitBy: () => 'a' })({}, 'run', { value() {} } as never)).toThrow(
      InvalidHandlerError,
    );
  });
});

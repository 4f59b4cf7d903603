import { Injectable } from '@nestjs/common';
import {
  AsynqClient,
  AsynqModule,
  defineTask,
  InvalidHandlerError,
  InvalidTaskError,
  PeriodicTask,
  TaskHandler,
} from 'nestjs-asynq';
import { Test } from '@nestjs/testing';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { INestApplicationContext, Type } from '@nestjs/common';

const apps: INestApplicationContext[] = [];

afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
});

/** An application with a server in memory. */
async function boot(provider: Type): Promise<AsynqClient> {
  const imports = [AsynqModule.forRoot({ connection: 'memory', server: { concurrency: 20 } })];
  const moduleRef = await Test.createTestingModule({ imports, providers: [provider] }).compile();
  apps.push(moduleRef);
  await moduleRef.init();
  return moduleRef.get(AsynqClient);
}

/** Counts concurrent attempts, until `open` is called. */
function gauge() {
  let release = (): void => {};
  const opened = new Promise<void>((resolve) => (release = resolve));
  const state = { running: 0, most: 0, done: 0, open: () => release() };
  return Object.assign(state, {
    run: async (): Promise<void> => {
      state.most = Math.max(state.most, ++state.running);
      await opened;
      await new Promise((resolve) => setImmediate(resolve));
      state.running--;
      state.done++;
    },
  });
}

describe('limits of a handler in an application', () => {
  it('are options of @TaskHandler, and do not affect other handlers', async () => {
    const narrow = gauge();
    const wide = gauge();

    @Injectable()
    class Tasks {
      @TaskHandler('narrow', { concurrency: 3 })
      narrow(): Promise<void> {
        return narrow.run();
      }

      @TaskHandler('wide')
      wide(): Promise<void> {
        return wide.run();
      }
    }

    const client = await boot(Tasks);
    for (let index = 0; index < 10; index++) await client.enqueue('narrow');
    for (let index = 0; index < 10; index++) await client.enqueue('wide');
    await vi.waitFor(() => expect([narrow.running, wide.running]).toEqual([3, 10]));
    wide.open();
    narrow.open();
    await vi.waitFor(() => expect([narrow.done, wide.done]).toEqual([10, 10]));
    expect(narrow.most).toBe(3);
  });

  it('are options of a definition; those of the handler override them one by one', async () => {
    const Report = defineTask('report', { globalConcurrency: 2, concurrency: 5 });
    const Bill = defineTask('bill', { globalConcurrency: 2, concurrency: 5 });
    const reports = gauge();
    const bills = gauge();

    @Injectable()
    class Tasks {
      @TaskHandler(Report)
      report(): Promise<void> {
        return reports.run();
      }

      @TaskHandler(Bill, { globalConcurrency: 4 })
      bill(): Promise<void> {
        return bills.run();
      }
    }

    const client = await boot(Tasks);
    for (let index = 0; index < 8; index++) await client.enqueue(Report);
    for (let index = 0; index < 8; index++) await client.enqueue(Bill);
    await vi.waitFor(() => expect([reports.running, bills.running]).toEqual([2, 4]));
    reports.open();
    bills.open();
    await vi.waitFor(() => expect([reports.done, bills.done]).toEqual([8, 8]));
    expect([reports.most, bills.most]).toEqual([2, 4]);
  });

  it('are refused if they are wrong', () => {
    const decorate = (options: object) => () => {
      class Tasks {
        @TaskHandler('t', options)
        handle(): void {}
      }
      return Tasks;
    };
    expect(decorate({ concurrency: 1.5 })).toThrow(InvalidHandlerError);
    expect(decorate({ concurrency: 1.5 })).toThrow('concurrency of Tasks.handle must be a whole number from 1');
    expect(decorate({ limitScope: 's' })).toThrow(
      'limits nothing without concurrency or globalConcurrency or rateLimit; give one of them',
    );
    expect(decorate({ rateLimit: { max: 1, pro: '1s' } })).toThrow(/did you mean|known are/);
    expect(decorate({ globalConcurency: 1 })).toThrow('did you mean "globalConcurrency"?');
    expect(() => defineTask('t', { globalConcurrency: 0 })).toThrow(InvalidTaskError);
    expect(() => defineTask('t', { globalConcurrency: 0 })).toThrow('globalConcurrency of task "t"');
  });

  it('are options of @PeriodicTask, too', () => {
    class Tasks {
      @PeriodicTask('@every 1h', { globalConcurrency: 1, queue: 'reports' })
      report(): void {}
    }
    expect(new Tasks().report()).toBeUndefined();
    const wrong = () => {
      class Wrong {
        @PeriodicTask('@every 1h', { globalConcurrency: -1 })
        report(): void {}
      }
      return Wrong;
    };
    expect(wrong).toThrow('globalConcurrency of Wrong.report');
  });
});

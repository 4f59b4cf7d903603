import { setTimeout as wait } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Payload, PeriodicTask, TaskCtx, type TaskContext, TaskHandler } from 'nestjs-asynq';
import { ImportRows, QUEUES } from './tasks.js';

const STEP = 100;

@Injectable()
export class Imports {
  /** Cancel one in the console: the signal ends the wait, with the reason that was given. */
  @TaskHandler(ImportRows)
  async import(@Payload(ImportRows, 'rows') rows: number, @TaskCtx() task: TaskContext): Promise<{ imported: number }> {
    for (let done = 0; done < rows; done += STEP) {
      await wait(500, undefined, { signal: task.signal });
      await task.writeResult({ imported: done + STEP, of: rows });
    }
    return { imported: rows };
  }

  @PeriodicTask('@every 20s', { type: 'stock:count', queue: QUEUES.imports, retention: '10m', overlap: 'skip' })
  async count(): Promise<{ articles: number }> {
    await wait(400);
    return { articles: 4_711 };
  }

  @PeriodicTask('0 2 * * *', { type: 'report:nightly', tz: 'Europe/Berlin', missed: 'one', queue: QUEUES.imports })
  nightly(): string {
    return 'nothing happened today';
  }
}

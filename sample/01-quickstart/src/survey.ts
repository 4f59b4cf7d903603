import { resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { AsynqClient, AsynqInspector, type TaskInfo } from 'nestjs-asynq';
import { MeasureFile, PublishReport, SayGoodbye, type FileFacts } from './tasks.js';

export interface SurveyReport {
  readonly files: FileFacts[];
  /** The two tasks after those of the files. */
  readonly steps: TaskInfo[];
  /** The archived tasks. */
  readonly failures: TaskInfo[];
}

/** Enqueues one task per file and follows the tasks in the store: any process may run them. */
@Injectable()
export class Survey {
  constructor(
    private readonly client: AsynqClient,
    private readonly inspector: AsynqInspector,
  ) {}

  async run(paths: readonly string[], onProgress: (done: number) => void): Promise<SurveyReport> {
    const name = process.env.USER ?? 'reader';
    const goodbye = await this.client.enqueue(SayGoodbye, { name, since: Date.now() }, { processIn: '1s' });

    const measured: TaskInfo[] = [];
    for (const task of await this.enqueueFiles(paths)) onProgress(measured.push(await this.end(task)));
    const files = measured.filter(succeeded).map((task) => resultOf<FileFacts>(task));

    const publish = await this.client.enqueue(PublishReport, { files: files.length });
    const steps = [await this.end(publish), await this.end(goodbye)];
    return { files, steps, failures: [...measured, ...steps].filter((task) => !succeeded(task)) };
  }

  /** Enqueues all at once: any number of files needs only a few round trips. */
  private async enqueueFiles(paths: readonly string[]): Promise<TaskInfo[]> {
    const payloads = paths.map((path) => ({ path: resolve(path) })); // a worker may run in another folder
    const results = await this.client.enqueueMany(MeasureFile, payloads);
    return results.map((result) => {
      if (!result.ok) throw result.error;
      return result.info;
    });
  }

  /** Polls until the task is completed or archived. Tasks end about in their order, so one at a time is enough. */
  private async end({ queue, id }: TaskInfo): Promise<TaskInfo> {
    for (;;) {
      const task = await this.inspector.getTaskInfo(queue, id);
      if (!task) throw new Error(`task ${id} is gone: somebody deleted it, or its retention has passed`);
      if (succeeded(task) || task.state === 'archived') return task;
      await wait(20);
    }
  }
}

export const succeeded = ({ state }: TaskInfo): boolean => state === 'completed';

export const resultOf = <R>({ result }: TaskInfo): R => JSON.parse(String(result)) as R;

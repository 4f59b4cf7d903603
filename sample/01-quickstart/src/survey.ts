import { Injectable } from '@nestjs/common';
import { AsynqClient, AsynqInspector, type TaskInfo } from 'nestjs-asynq';
import { MeasureFile, PublishReport, SayGoodbye, type FileFacts } from './tasks.js';

export interface SurveyReport {
  readonly files: FileFacts[];
  /** One line per task that did not succeed. */
  readonly failures: string[];
  readonly published: string;
}

/** Enqueues one task per file and follows them through Redis (or memory): any process may have done the work. */
@Injectable()
export class Survey {
  constructor(
    private readonly client: AsynqClient,
    private readonly inspector: AsynqInspector,
  ) {}

  async run(paths: readonly string[], onProgress: (done: number) => void): Promise<SurveyReport> {
    const measured = await this.client.enqueueMany(
      MeasureFile,
      paths.map((path) => ({ path })),
    );
    const tasks = measured.map((result) => {
      if (!result.ok) throw result.error;
      return result.info;
    });
    const publish = await this.client.enqueue(PublishReport, { files: paths.length });
    const goodbye = await this.client.enqueue(SayGoodbye, { name: process.env.USER ?? 'reader' }, { processIn: '1s' });

    const ended = await this.follow(tasks, onProgress);
    const [published] = await this.follow([publish, goodbye], () => {});
    const completed = ended.filter(({ state }) => state === 'completed');
    return {
      files: completed.map(({ result }) => JSON.parse(String(result)) as FileFacts),
      failures: ended.filter(({ state }) => state !== 'completed').map((task) => `${task.payload}: ${task.lastErr}`),
      published: published?.state === 'completed' ? (JSON.parse(String(published.result)) as string) : 'not published',
    };
  }

  /** Looks until every task has completed or was given up. */
  private async follow(tasks: readonly TaskInfo[], onProgress: (done: number) => void): Promise<TaskInfo[]> {
    const ended = new Map<string, TaskInfo>();
    while (ended.size < tasks.length) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      const open = tasks.filter(({ id }) => !ended.has(id));
      for (const info of await Promise.all(open.map(({ queue, id }) => this.inspector.getTaskInfo(queue, id)))) {
        if (info?.state === 'completed' || info?.state === 'archived') ended.set(info.id, info);
      }
      onProgress(ended.size);
    }
    return tasks.map(({ id }) => ended.get(id)!);
  }
}

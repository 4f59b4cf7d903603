import { setTimeout as wait } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { AsynqClient, Payload, TaskHandler } from 'nestjs-asynq';
import { Bar } from './bar.js';
import { say } from './say.js';
import { ImportAlarm, ImportDone, ImportRow, type Row } from './tasks.js';

/** An import of many rows with an end: a batch. */
@Injectable()
export class Import {
  private readonly articles = new Set<number>();

  constructor(private readonly client: AsynqClient) {}

  /** Adds a task per row, and follows the batch until it has ended. */
  async run(rows: number): Promise<void> {
    const file = 'articles.csv';
    const batch = await this.client.openBatch({
      name: `import of ${file}`,
      onSuccess: [ImportDone, { file }],
      onDeath: [ImportAlarm, { file }],
    });
    const bar = new Bar(rows);
    await batch.add(
      ImportRow,
      Array.from({ length: rows }, (_, article) => ({ article })),
    );
    await batch.close();
    for (;;) {
      const { state, succeeded, failed } = await batch.progress();
      bar.show(succeeded + failed);
      if (state === 'succeeded' || state === 'completed') break;
      await wait(50);
    }
    bar.end();
  }

  @TaskHandler(ImportRow)
  row(@Payload() { article }: Row): void {
    this.articles.add(article);
  }

  @TaskHandler(ImportDone)
  done(@Payload(ImportDone, 'file') file: string): void {
    say(`${file}: ${this.articles.size} articles are imported`);
  }

  @TaskHandler(ImportAlarm)
  alarm(@Payload(ImportAlarm, 'file') file: string): void {
    say(`${file}: a row could not be imported`);
  }
}

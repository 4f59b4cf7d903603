import { Injectable } from '@nestjs/common';
import { AsynqInspector, PeriodicTask } from 'nestjs-asynq';
import { say } from './say.js';
import { FORUM_QUEUE } from './tasks.js';

/** Reports what the queue does. Several processes may have these methods: each planned time runs once. */
@Injectable()
export class Reports {
  constructor(private readonly inspector: AsynqInspector) {}

  /** At 2:00 in Berlin. If all processes were down then, it runs as soon as one is up. */
  @PeriodicTask('0 2 * * *', {
    type: 'report:nightly',
    tz: 'Europe/Berlin',
    missed: 'one',
    overlap: 'skip',
    queue: FORUM_QUEUE,
    maxRetry: 3,
  })
  async nightly(): Promise<void> {
    const [, yesterday] = await this.inspector.history(FORUM_QUEUE, 2);
    say(`report on ${yesterday!.date}: ${yesterday!.processed} tasks done, ${yesterday!.failed} failures`);
  }

  /** The same report for today, so that you can see it now. */
  @PeriodicTask('@every 2s', { type: 'report:preview', queue: FORUM_QUEUE })
  async preview(): Promise<void> {
    const { processed, failed, aggregating } = await this.inspector.getQueueInfo(FORUM_QUEUE);
    say(`report on today: ${processed} tasks done, ${failed} failures, ${aggregating} mentions wait for their digest`);
  }
}

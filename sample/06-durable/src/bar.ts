import { SingleBar } from 'cli-progress';
import type { AsynqClient } from 'nestjs-asynq';

const LOOK = { format: '{bar} {percentage}% of the thumbnail', hideCursor: true, clearOnComplete: true };

/** Shows the progress of a task until it ends; only in a terminal. Returns what ends it before. */
export function showProgress(asynq: AsynqClient, task: { queue: string; id: string }): () => void {
  const bar = new SingleBar(LOOK);
  const updates = asynq.follow(task, { timeout: '1d' }).subscribe({
    next: (update) => {
      if (update.type !== 'progress') return;
      if (!bar.isActive) bar.start(100, 0);
      bar.update(Math.round(100 * update.data.fraction));
    },
    error: () => bar.stop(), // it is not there any more
    complete: () => bar.stop(),
  });
  return () => updates.unsubscribe();
}

import { defineTask } from 'nestjs-asynq';

/** Types once, used where a task is enqueued and where it is handled: a wrong payload does not compile. */
export const MeasureFile = defineTask<{ path: string }, FileFacts>('file:measure', {
  timeout: '30s',
  retention: '10m',
});

/** Fails twice before it works: see it retried. */
export const PublishReport = defineTask<{ files: number }, string>('report:publish', { maxRetry: 5, retention: '10m' });

/** Runs some time after it was enqueued. */
export const SayGoodbye = defineTask<{ name: string }, string>('greeting:goodbye', { retention: '10m' });

export interface FileFacts {
  readonly path: string;
  readonly bytes: number;
  readonly lines: number;
  readonly words: number;
  readonly sha256: string;
}

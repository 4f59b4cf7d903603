import { defineTask } from 'nestjs-asynq';

/** A queue of its own: this sample leaves other tasks on the same Redis alone. */
export const SURVEY_QUEUE = 'survey';

/** Each type once, used where a task is enqueued and where it is handled: a wrong payload does not compile. */
export const MeasureFile = defineTask<{ path: string }, FileFacts>('file:measure', {
  queue: SURVEY_QUEUE,
  timeout: '30s',
  retention: '10m', // so long the result can be looked up
});

/** Fails twice before it works: see it retried. */
export const PublishReport = defineTask<{ files: number }, string>('report:publish', {
  queue: SURVEY_QUEUE,
  maxRetry: 5,
  retention: '10m',
});

/** Runs some time after it was enqueued. */
export const SayGoodbye = defineTask<{ name: string; since: number }, string>('greeting:goodbye', {
  queue: SURVEY_QUEUE,
  retention: '10m',
});

export interface FileFacts {
  readonly path: string;
  readonly bytes: number;
  readonly lines: number;
  readonly words: number;
  readonly sha256: string;
  /** The process that ran the task. */
  readonly pid: number;
}

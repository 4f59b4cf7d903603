import { defineTask } from 'nestjs-asynq';

/** The sample has its own queue, so it does not touch other tasks on the same Redis. */
export const SURVEY_QUEUE = 'survey';

/** Client and handler use the same definition, so a wrong payload does not compile. */
export const MeasureFile = defineTask<{ path: string }, FileFacts>('file:measure', {
  queue: SURVEY_QUEUE,
  timeout: '30s',
  retention: '10m', // how long the result can be read
});

/** Fails twice before it succeeds, to show retries. */
export const PublishReport = defineTask<{ files: number }, string>('report:publish', {
  queue: SURVEY_QUEUE,
  maxRetry: 5,
  retention: '10m',
});

/** Runs some time after it is enqueued. */
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

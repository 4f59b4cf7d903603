import type { TaskMessage } from './message.js';

/** The header of a task that is archived because a step of its handler has failed for good: its name. Run by hand, the task tries it once more. */
export const FAILED_STEP_HEADER = 'asynq-failed-step';

export const failedStepOf = ({ headers }: Pick<TaskMessage, 'headers'>): string | undefined =>
  headers?.[FAILED_STEP_HEADER];

/** @param step `undefined`: the task has failed otherwise */
export function withFailedStep(message: TaskMessage, step: string | undefined): TaskMessage {
  if (failedStepOf(message) === step) return message;
  const { [FAILED_STEP_HEADER]: _, ...others } = message.headers ?? {};
  const headers = step === undefined ? others : { ...others, [FAILED_STEP_HEADER]: step };
  return { ...message, headers: Object.keys(headers).length > 0 ? headers : undefined };
}

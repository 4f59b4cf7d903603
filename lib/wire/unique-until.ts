/** The header of a unique task whose lock ends when a handler begins: `started`. Go frees it when the task succeeds. */
export const UNIQUE_UNTIL_HEADER = 'asynq-unique-until';

export const UNTIL_STARTED = 'started';

import { count, errorText, taskName, type Wording } from './wording.js';

/** What needs a look: ends that are as they were to be are not logged. */
export const LINKS: Wording = {
  waitEnded: ({ task, end, state, error }, logger) => {
    if (state === 'archived') logger.warn(`${taskName(task)} was archived, and has not run: ${errorText(error)}`);
    else if (end === 'timedOut') logger.warn(`${taskName(task)} has waited for as long as it may, and runs now`);
    else if (end === 'revived') logger.log(`${taskName(task)} runs after all: what it waited for has succeeded`);
  },
  workflowEnded: ({ queue, id, state, steps, failed }, logger) => {
    const run = `The workflow ${JSON.stringify(id)} of queue "${queue}"`;
    if (state === 'failed') logger.warn(`${run} has failed: ${failed} of ${count(steps, 'step')} failed`);
    else if (state === 'cancelled') logger.log(`${run} was cancelled`);
  },
  batchEnded: ({ queue, id, name, total, failed }, logger) => {
    if (failed === 0) return;
    logger.warn(
      `The batch ${JSON.stringify(name || id)} of queue "${queue}" has ended: ${failed} of ${count(total, 'task')} failed`,
    );
  },
};

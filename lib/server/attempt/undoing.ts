import { TaskUndoneError } from '../../errors.js';
import type { TaskContext } from '../../task/context.js';
import { isUndoing } from '../../wire/undoing.js';
import type { ActiveTask } from './active-task.js';
import type { SingleHandlerEntry } from './handler.js';

/**
 * A handler with steps. When it has failed, what is stored of its steps is known. When the task has failed for good before, it is only called
 * so that its steps give their compensations: what it returns or throws then does not count.
 */
export function withSteps({ handle, ...entry }: SingleHandlerEntry): SingleHandlerEntry {
  const call = async (task: TaskContext): Promise<unknown> => {
    const active = task as ActiveTask;
    if (isUndoing(active.message)) return undo(active, handle);
    try {
      return await handle(task);
    } catch (error) {
      const { work, records } = active.stepsOfHandler;
      work.ended();
      await records.tryToLoad();
      throw error;
    }
  };
  return { ...entry, handle: call };
}

async function undo(task: ActiveTask, handle: SingleHandlerEntry['handle']): Promise<never> {
  try {
    await handle(task);
  } catch {
    // A step that is not to run has thrown, or what the task has failed with came again.
  }
  const { compensations } = task.stepsOfHandler;
  await compensations.given();
  task.signal.throwIfAborted();
  await compensations.undoAll();
  const { error, steps } = compensations.undone!;
  throw new TaskUndoneError(error, steps);
}

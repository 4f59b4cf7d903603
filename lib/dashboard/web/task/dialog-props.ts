import type { Task } from '../api/task-types.js';

/** Props of the dialog of an action on one task. */
export interface TaskDialogProps {
  task: Task;
  /** Called when the action is done. */
  onDone: () => void;
  onClose: () => void;
}

export interface DeleteDialogProps extends TaskDialogProps {
  /** The page does not read the task while it is being deleted. */
  onDeleting: (begins: boolean) => void;
}

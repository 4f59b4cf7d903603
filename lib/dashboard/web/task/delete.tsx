import { useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import { refreshLive } from '../live/live.js';
import { navigate } from '../state/router.js';
import { FormDialog } from '../ui/dialog.js';
import { notify } from '../ui/notices.js';
import type { DeleteDialogProps } from './dialog-props.js';

/**
 * Deletes the task as it was when the dialog was opened. If it runs or waits again by then, the
 * server refuses.
 */
export function Delete({ task: now, onDeleting, onClose }: DeleteDialogProps) {
  const [task] = useState(now);
  const remove = async (): Promise<void> => {
    onDeleting(true);
    try {
      await api.remove(task);
    } catch (error) {
      onDeleting(false);
      throw error;
    }
    notify('The task is deleted.');
    refreshLive();
    navigate(['queues', task.queue, task.state], { group: task.state === 'aggregating' ? task.group : undefined });
  };
  return (
    <FormDialog title="Delete this task?" does="Delete" danger onSubmit={remove} onClose={onClose}>
      <p>Its payload, result and errors are deleted, too. This cannot be undone.</p>
    </FormDialog>
  );
}

import { api } from '../api/endpoints.js';
import { refreshLive } from '../live/live.js';
import { navigate } from '../state/router.js';
import { FormDialog } from '../ui/dialog.js';
import { tell } from '../ui/notices.js';
import type { DeleteDialogProps } from './dialog-props.js';

export function Delete({ task, onDeleting, onClose }: DeleteDialogProps) {
  const remove = async (): Promise<void> => {
    onDeleting(true);
    try {
      await api.remove(task.queue, task.id);
    } catch (error) {
      onDeleting(false);
      throw error;
    }
    tell('The task is deleted.');
    refreshLive();
    navigate(['queues', task.queue, task.state], { group: task.state === 'aggregating' ? task.group : undefined });
  };
  return (
    <FormDialog title="Delete this task?" does="Delete" danger onSubmit={remove} onClose={onClose}>
      <p>Its payload, its result and its errors go with it. This cannot be undone.</p>
    </FormDialog>
  );
}

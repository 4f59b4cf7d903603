import { useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import { FormDialog } from '../ui/dialog.js';
import { notify } from '../ui/notices.js';
import type { TaskDialogProps } from './dialog-props.js';
import { WhenField } from './when-field.js';
import { NOW, toTime, type When } from './when.js';

export function Reschedule({ task, onDone, onClose }: TaskDialogProps) {
  const [seen] = useState(task);
  const [when, setWhen] = useState<When>({ ...NOW, how: 'in' });
  const move = async (): Promise<void> => {
    await api.reschedule(seen, toTime(when));
    notify('The task is rescheduled.');
    onDone();
  };
  return (
    <FormDialog title="Reschedule this task" does="Reschedule" onSubmit={move} onClose={onClose}>
      <p>The task keeps its id, its payload and the number of its retries.</p>
      <WhenField value={when} onChange={setWhen} />
    </FormDialog>
  );
}

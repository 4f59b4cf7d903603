import { useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import { useMay } from '../state/config.js';
import { FormDialog } from '../ui/dialog.js';
import { notify } from '../ui/notices.js';
import type { TaskDialogProps } from './dialog-props.js';

/** Asks the server that runs the task to cancel it, with a reason and an outcome. */
export function Cancel({
  task,
  onDone,
  onClose,
}: Omit<TaskDialogProps, 'task'> & { task: { queue: string; id: string } }) {
  const may = useMay();
  const [reason, setReason] = useState('');
  const [outcome, setOutcome] = useState('retry');
  const cancel = async (): Promise<void> => {
    await api.cancel(task.queue, task.id, { reason: reason || undefined, outcome });
    notify('The task is asked to stop.');
    onDone();
  };
  return (
    <FormDialog title="Cancel this task?" does="Cancel it" danger onSubmit={cancel} onClose={onClose}>
      <p>
        Its handler receives a signal to stop. A handler that ignores it runs to its end, but its result is discarded.
      </p>
      <label class="field">
        <span>Reason (optional)</span>
        <input value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
      </label>
      <label class="field">
        <span>Afterwards</span>
        <select value={outcome} onChange={(event) => setOutcome(event.currentTarget.value)}>
          <option value="retry">retry it, as its options say</option>
          <option value="archive">archive it</option>
          {may('destroy', task.queue) && <option value="delete">delete it</option>}
        </select>
        <small>Servers of Go’s asynq ignore reason and outcome and retry the task.</small>
      </label>
    </FormDialog>
  );
}

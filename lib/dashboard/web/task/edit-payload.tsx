import { useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import { FormDialog } from '../ui/dialog.js';
import { notify } from '../ui/notices.js';
import type { TaskDialogProps } from './dialog-props.js';
import { PayloadField } from './payload-field.js';
import { editable, toPayload } from './payload.js';

/**
 * Saves over the payload that was loaded when the dialog was opened. The task may be read again
 * meanwhile, with another payload.
 */
export function EditPayload({ task, onDone, onClose }: TaskDialogProps) {
  const [loaded] = useState(() => editable(task));
  const [payload, setPayload] = useState(loaded?.payload);
  const save = async (): Promise<void> => {
    if (!loaded || !payload) return;
    await api.editPayload(task.queue, task.id, { ...toPayload(payload), replaces: loaded.replaces });
    notify('The payload is changed.');
    onDone();
  };
  return (
    <FormDialog
      wide
      title="Edit the payload"
      does="Save"
      ready={payload !== undefined}
      onSubmit={save}
      onClose={onClose}
    >
      {payload ? (
        <PayloadField value={payload} onChange={setPayload} />
      ) : (
        <p>This payload was not fully loaded, so it cannot be edited here.</p>
      )}
    </FormDialog>
  );
}

import { useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import { FormDialog } from '../ui/dialog.js';
import { tell } from '../ui/notices.js';
import { NO_PAYLOAD, payloadOf, toPayload } from './payload.js';
import { PayloadField } from './payload-field.js';
import type { TaskActionProps } from './task-actions.js';

export function EditPayload({ task, onDone, onClose }: TaskActionProps) {
  const [payload, setPayload] = useState(() => payloadOf(task) ?? NO_PAYLOAD);
  const save = async (): Promise<void> => {
    await api.editPayload(task.queue, task.id, toPayload(payload));
    tell('The payload is changed.');
    onDone();
  };
  return (
    <FormDialog wide title="Edit the payload" does="Save" onSubmit={save} onClose={onClose}>
      <PayloadField value={payload} onChange={setPayload} />
    </FormDialog>
  );
}

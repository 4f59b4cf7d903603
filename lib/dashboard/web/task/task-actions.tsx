import { useState } from 'preact/hooks';
import type { TaskAction } from '../../../task/actions.js';
import { api } from '../api/endpoints.js';
import { perform } from '../live/perform.js';
import { Button } from '../ui/button.js';
import { Cancel } from './cancel.js';
import { Clone } from './clone.js';
import { Delete } from './delete.js';
import type { DeleteDialogProps } from './dialog-props.js';
import { EditPayload } from './edit-payload.js';
import { Reschedule } from './reschedule.js';

const LABELS: Readonly<Record<TaskAction, string>> = {
  run: 'Run now',
  cancel: 'Cancel',
  reschedule: 'Reschedule',
  edit: 'Edit payload',
  clone: 'Clone',
  archive: 'Archive',
  delete: 'Delete',
};
const ORDER = Object.keys(LABELS) as TaskAction[];

const DIALOGS = { cancel: Cancel, reschedule: Reschedule, edit: EditPayload, clone: Clone, delete: Delete } as const;

const hasDialog = (action: TaskAction): action is keyof typeof DIALOGS => action in DIALOGS;

/** The actions that the task's state and the user's role allow. */
export function TaskActions({ task, onDone, onDeleting }: Omit<DeleteDialogProps, 'onClose'>) {
  const [asked, setAsked] = useState<keyof typeof DIALOGS>();
  const Asked = asked && DIALOGS[asked];
  const press = async (action: TaskAction): Promise<void> => {
    if (hasDialog(action)) setAsked(action);
    else if (action === 'run') await perform('The task is pending now.', () => api.run(task));
    else await perform('The task is archived.', () => api.archive(task));
    onDone();
  };
  return (
    <>
      {ORDER.filter((action) => task.actions.includes(action)).map((action) => (
        <Button key={action} kind={action === 'run' ? 'primary' : 'plain'} onClick={() => press(action)}>
          {LABELS[action]}
        </Button>
      ))}
      {Asked && <Asked task={task} onDone={onDone} onDeleting={onDeleting} onClose={() => setAsked(undefined)} />}
    </>
  );
}

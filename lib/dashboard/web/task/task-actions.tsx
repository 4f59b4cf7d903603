import { useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import type { Action, Task } from '../api/types.js';
import { navigate } from '../app/router.js';
import { refreshLive } from '../live/live.js';
import { Button } from '../ui/button.js';
import { FormDialog } from '../ui/dialog.js';
import { perform, tell } from '../ui/notices.js';
import { Cancel } from './cancel.js';
import { Clone } from './clone.js';
import { EditPayload } from './edit-payload.js';
import { Reschedule } from './reschedule.js';

export interface TaskActionProps {
  task: Task;
  /** After it was done. */
  onDone: () => void;
  onClose: () => void;
}

const LABELS: Readonly<Record<Action, string>> = {
  run: 'Run now',
  cancel: 'Cancel',
  reschedule: 'Reschedule',
  edit: 'Edit payload',
  clone: 'Clone',
  archive: 'Archive',
  delete: 'Delete',
};
const ORDER = Object.keys(LABELS) as Action[];

interface DeleteProps extends TaskActionProps {
  /** While it is being deleted nobody should ask for it. */
  onDeleting: (begins: boolean) => void;
}

/** What was seen when the question was asked is what is deleted: the task may run, or wait again, by the time of the answer. */
function Delete({ task: now, onDeleting, onClose }: DeleteProps) {
  const [task] = useState(now);
  const remove = async (): Promise<void> => {
    onDeleting(true);
    try {
      await api.remove(task);
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

const DIALOGS = { cancel: Cancel, reschedule: Reschedule, edit: EditPayload, clone: Clone, delete: Delete } as const;

const hasDialog = (action: Action): action is keyof typeof DIALOGS => action in DIALOGS;

/** What may be done with the task, by its state and by who looks at it. */
export function TaskActions({ task, onDone, onDeleting }: Omit<DeleteProps, 'onClose'>) {
  const [asked, setAsked] = useState<keyof typeof DIALOGS>();
  const Asked = asked && DIALOGS[asked];
  const press = async (action: Action): Promise<void> => {
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

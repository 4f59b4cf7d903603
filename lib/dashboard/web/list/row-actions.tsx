import { api, type BulkAction } from '../api/endpoints.js';
import type { ListedTask } from '../api/task-types.js';
import { refreshLive } from '../live/live.js';
import { perform } from '../live/perform.js';
import { visible } from '../text/visible.js';
import { Button } from '../ui/button.js';
import { FormDialog } from '../ui/dialog.js';
import { notify } from '../ui/notices.js';
import { LABELS } from './bulk-actions.js';

/** Where there is room for a sign only; the name is then a tooltip. */
const SIGNS: Readonly<Record<BulkAction, string>> = { run: '▸', cancel: '■', archive: '↓', delete: '×' };

/** An action that a dialog asks about. */
export interface Asked {
  action: 'cancel' | 'delete';
  task: ListedTask;
}

interface RowActionsProps {
  task: ListedTask;
  actions: readonly BulkAction[];
  onAsk: (asked: Asked) => void;
  onDone: () => void;
}

interface DialogProps {
  asked: Asked;
  onDone: () => void;
  onClose: () => void;
}

const TEXTS: Readonly<Record<Asked['action'], { does: string; warning: string; done: string }>> = {
  cancel: {
    does: 'Cancel it',
    warning: 'Its handler receives a signal to stop. Then it is retried, as its options say.',
    done: 'The task is asked to stop.',
  },
  delete: {
    does: 'Delete',
    warning: 'Its payload, result and errors are deleted, too. This cannot be undone.',
    done: 'The task is deleted.',
  },
};

/** Stays when its row leaves the list: it is about the task as it was when the button was pressed. */
export function RowDialog({ asked: { action, task }, onDone, onClose }: DialogProps) {
  const { does, warning, done } = TEXTS[action];
  const act = async (): Promise<void> => {
    await (action === 'cancel' ? api.cancel(task.queue, task.id, {}) : api.remove(task));
    notify(done);
    onDone();
    refreshLive();
  };
  return (
    <FormDialog title={`${LABELS[action]} this task?`} does={does} danger onSubmit={act} onClose={onClose}>
      <p>
        <b>{visible(task.type)}</b> {visible(task.id)}
      </p>
      <p>{warning}</p>
    </FormDialog>
  );
}

/** What can be done with one task of a list. */
export function RowActions({ task, actions, onAsk, onDone }: RowActionsProps) {
  const press = async (action: BulkAction): Promise<void> => {
    if (action === 'cancel' || action === 'delete') return onAsk({ action, task });
    const done = action === 'run' ? 'The task is pending now.' : 'The task is archived.';
    await perform(done, () => (action === 'run' ? api.run(task) : api.archive(task)));
    onDone();
  };
  return (
    <td class="row-actions">
      {actions.map((action) => (
        <Button
          key={action}
          small
          title={LABELS[action]}
          label={`${LABELS[action]}: task ${visible(task.id)}`}
          onClick={() => press(action)}
        >
          <span class="sign">{SIGNS[action]}</span>
          <span class="word">{LABELS[action]}</span>
        </Button>
      ))}
    </td>
  );
}

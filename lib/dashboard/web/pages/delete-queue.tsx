import { useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import type { Queue } from '../api/types.js';
import { refreshLive } from '../live/live.js';
import { navigate } from '../state/router.js';
import { plural } from '../text/format.js';
import { visible } from '../text/visible.js';
import { FormDialog } from '../ui/dialog.js';
import { notify } from '../ui/notices.js';
import { Text } from '../ui/text.js';

/** Asks for the name of the queue first: a deletion cannot be undone. */
export function DeleteQueue({ row, onClose }: { row: Queue; onClose: () => void }) {
  const [typed, setTyped] = useState('');
  const [force, setForce] = useState(false);
  const remove = async (): Promise<void> => {
    await api.deleteQueue(row.queue, force);
    notify(`Queue “${visible(row.queue)}” is deleted.`);
    refreshLive();
    navigate([]);
  };
  return (
    <FormDialog
      title="Delete this queue?"
      does="Delete queue"
      danger
      ready={typed === row.queue}
      onSubmit={remove}
      onClose={onClose}
    >
      <p>
        The queue{' '}
        <b>
          <Text value={row.queue} />
        </b>{' '}
        with its history and {plural(row.size, 'task')} is deleted. This cannot be undone.
      </p>
      <label class="field">
        <span>
          Type the queue’s name,{' '}
          <code>
            <Text value={row.queue} />
          </code>
        </span>
        <input
          value={typed}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
      </label>
      <label class="check">
        <input type="checkbox" checked={force} onChange={(event) => setForce(event.currentTarget.checked)} />
        <span>
          Also delete its tasks. Without this, only an empty queue is deleted. A queue with running tasks never is.
          Workflows and batches that it keeps go on, and it stays in the list until they are deleted.
        </span>
      </label>
    </FormDialog>
  );
}

import { useState } from 'preact/hooks';
import { ApiError } from '../api/client.js';
import { api } from '../api/endpoints.js';
import type { QueueRow } from '../api/types.js';
import { navigate } from '../state/router.js';
import { messageOf } from '../text/errors.js';
import { visible } from '../text/visible.js';
import { notify } from '../ui/notices.js';

const QUEUES_AT_ONCE = 4;

async function has(queue: string, id: string): Promise<boolean> {
  try {
    await api.task(queue, id);
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return false;
    throw error;
  }
}

/** The queues that hold a task of this id; skips those that cannot be read. */
async function find(rows: readonly QueueRow[], id: string): Promise<string[]> {
  const found: string[] = [];
  for (let from = 0; from < rows.length; from += QUEUES_AT_ONCE) {
    const some = rows.slice(from, from + QUEUES_AT_ONCE);
    const held = await Promise.all(some.map(({ queue }) => has(queue, id).catch(passOver)));
    found.push(...some.filter((_, index) => held[index]).map(({ queue }) => queue));
  }
  return found;
}

function passOver(error: unknown): boolean {
  if (error instanceof ApiError && !error.isAway) return false;
  throw error;
}

/** Finds a task by its id, in whichever queue it is. */
export function FindTask({ rows }: { rows: readonly QueueRow[] }) {
  const [id, setId] = useState('');
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const wanted = id.trim();
    if (busy || wanted === '') return;
    setBusy(true);
    try {
      const [queue] = await find(rows, wanted);
      if (queue === undefined) notify(`No queue has a task with the id “${visible(wanted)}”.`, { failed: true });
      else navigate(['queues', queue, 'tasks', wanted]);
    } catch (error) {
      notify(messageOf(error), { failed: true });
    }
    setBusy(false);
  };
  return (
    <form class="find" role="search" aria-label="Find a task" onSubmit={(event) => void submit(event)}>
      <input
        type="search"
        value={id}
        placeholder="Task id"
        aria-label="Task id"
        spellcheck={false}
        onInput={(event) => setId(event.currentTarget.value)}
      />
      <button type="submit" class="button plain" aria-busy={busy}>
        Find
      </button>
    </form>
  );
}

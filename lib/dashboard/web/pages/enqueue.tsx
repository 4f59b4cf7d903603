import { useEffect, useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import { refreshLive } from '../live/live.js';
import { config } from '../state/config.js';
import { useResource } from '../state/resource.js';
import { firstQueue } from '../state/roles.js';
import { paths, useRoute } from '../state/router.js';
import { useStore } from '../store.js';
import { EMPTY_FORM, type TaskForm, toInput } from '../task/form.js';
import { TaskFields } from '../task/task-fields.js';
import { messageOf } from '../text/errors.js';
import { notify } from '../ui/notices.js';
import { Text } from '../ui/text.js';
import { Page } from './page.js';

const TYPING_MS = 300;

/** The value when it has not changed for a moment: while a name is typed, nothing is read. */
function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(value), TYPING_MS);
    return () => window.clearTimeout(timer);
  }, [value]);
  return settled;
}

/** The form keeps its values: the next task is often similar. */
export function EnqueuePage() {
  const { query } = useRoute();
  const current = useStore(config);
  const [form, setForm] = useState<TaskForm>({
    ...EMPTY_FORM,
    queue: query['queue'] ?? (current ? firstQueue(current) : 'default'),
    type: query['type'] ?? '',
  });
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  const queue = useSettled(form.queue);
  const { data: known } = useResource(`types ${queue}`, (signal) => api.taskTypes(queue, signal), {
    hold: queue.trim() === '',
  });
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setError('');
    try {
      const made = await api.enqueue(form.queue, toInput(form));
      notify(`The task is ${made.state}.`, { href: paths.task(made.queue, made.id) });
      refreshLive();
    } catch (reason) {
      setError(messageOf(reason));
    }
    setBusy(false);
  };
  return (
    <Page title="Enqueue a task">
      <form class="card enqueue" onSubmit={(event) => void submit(event)}>
        <div class="form-body">
          <TaskFields fresh form={form} onChange={setForm} types={known?.types} />
          {error && (
            <p class="problem" role="alert">
              <Text value={error} />
            </p>
          )}
          <div>
            <button type="submit" class="button primary" aria-busy={busy}>
              Enqueue
            </button>
          </div>
        </div>
      </form>
    </Page>
  );
}

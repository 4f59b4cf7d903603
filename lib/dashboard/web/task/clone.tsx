import { useMemo, useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import type { Task } from '../api/task-types.js';
import { paths } from '../state/router.js';
import { FormDialog } from '../ui/dialog.js';
import { notify } from '../ui/notices.js';
import type { TaskDialogProps } from './dialog-props.js';
import { EMPTY_FORM, printHeaders, type TaskForm, toInput } from './form.js';
import { payloadOf } from './payload.js';
import { TaskFields } from './task-fields.js';

const amount = (value: number): string => (value > 0 ? `${value}` : '');

const formOf = (task: Task): TaskForm => ({
  ...EMPTY_FORM,
  queue: task.queue,
  type: task.type,
  payload: payloadOf(task),
  group: task.group,
  max_retry: `${task.max_retry}`,
  timeout_seconds: amount(task.timeout_seconds),
  retention_seconds: amount(task.retention_seconds),
  headers: printHeaders(task.headers ?? {}),
});

/** Enqueues a copy of the task, with changes. */
export function Clone({ task, onDone, onClose }: TaskDialogProps) {
  const before = useMemo(() => formOf(task), []);
  const [form, setForm] = useState(before);
  const make = async (): Promise<void> => {
    const queue = form.queue === task.queue ? undefined : form.queue;
    const made = await api.clone(task.queue, task.id, { queue, ...toInput(form, before) });
    notify('A new task is enqueued.', { href: paths.task(made.queue, made.id) });
    onDone();
  };
  return (
    <FormDialog wide title="Clone this task" does="Enqueue the copy" onSubmit={make} onClose={onClose}>
      <TaskFields form={form} onChange={setForm} />
    </FormDialog>
  );
}

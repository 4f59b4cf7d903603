import type { ComponentChildren } from 'preact';
import type { ListedTask } from '../api/task-types.js';
import type { State } from '../api/types.js';
import { Ago, Elapsed } from '../live/time.js';
import { between, duration, instant } from '../text/format.js';
import { ProgressBar } from '../ui/progress.js';
import { Text } from '../ui/text.js';

export interface Column {
  name: string;
  number?: boolean;
  wide?: boolean;
  cell: (task: ListedTask) => ComponentChildren;
}

/** A task that has failed after its last retry had one attempt more than this. */
const retries: Column = {
  name: 'retries',
  number: true,
  cell: ({ retried, max_retry }) => `${retried} of ${max_retry}`,
};
const error: Column = {
  name: 'last error',
  wide: true,
  cell: ({ error_message }) =>
    error_message ? <Text value={error_message} titled class="cut two problem-text" /> : <span class="none">–</span>,
};
const next: Column = { name: 'due', number: true, cell: ({ next_process_at }) => <Ago at={next_process_at} /> };

/** The waiting is in it: how long a success has run is not stored with the task. */
function EnqueueToEnd({ enqueued_at, completed_at }: ListedTask) {
  const [from, to] = [instant(enqueued_at), instant(completed_at)];
  return from === undefined || to === undefined ? <span class="none">–</span> : <>{between(from, to)}</>;
}

/** The columns of a list after the task and its payload. */
export const COLUMNS: Readonly<Record<State, readonly Column[]>> = {
  active: [
    {
      name: 'running for',
      number: true,
      cell: (task) => (task.is_orphaned ? <span class="flag bad">orphaned</span> : <Elapsed since={task.start_time} />),
    },
    {
      name: 'progress',
      cell: ({ progress }) =>
        progress ? (
          <span class="progress">
            <ProgressBar progress={progress} cut />
          </span>
        ) : (
          <span class="none">–</span>
        ),
    },
    { name: 'deadline', number: true, cell: ({ deadline }) => <Ago at={deadline} /> },
    retries,
  ],
  pending: [
    { name: 'pending for', number: true, cell: ({ pending_since }) => <Elapsed since={pending_since} /> },
    retries,
  ],
  aggregating: [],
  waiting: [{ name: 'until', number: true, cell: ({ next_process_at }) => <Ago at={next_process_at} /> }],
  held: [
    {
      name: 'held by',
      cell: ({ held_by }) => (held_by ? <Text value={held_by} titled class="cut" /> : <span class="none">–</span>),
    },
    { name: 'held for', number: true, cell: ({ held_since }) => <Elapsed since={held_since} /> },
  ],
  scheduled: [next],
  retry: [error, retries, next],
  archived: [
    error,
    retries,
    { name: 'failed', number: true, cell: ({ last_failed_at }) => <Ago at={last_failed_at} /> },
  ],
  completed: [
    {
      name: 'result',
      wide: true,
      cell: ({ result }) =>
        result ? <Text value={result.slice(0, 300)} class="cut mono" /> : <span class="none">–</span>,
    },
    { name: 'enqueue to end', number: true, cell: EnqueueToEnd },
    { name: 'completed', number: true, cell: ({ completed_at }) => <Ago at={completed_at} /> },
    {
      name: 'kept for',
      number: true,
      cell: ({ ttl_seconds }) => (ttl_seconds && ttl_seconds > 0 ? duration(ttl_seconds) : <span class="none">–</span>),
    },
  ],
};

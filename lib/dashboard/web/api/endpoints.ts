import { mutate, address, get, getText, type Query, segment } from './client.js';
import type { Attempts } from './attempt-types.js';
import type { AuditEntry, EnqueueEvent, Entry, RedisInfo, Server, PrometheusResponse } from './fleet-types.js';
import type { Batch, WorkflowRun, WorkflowRunWithGraph } from './link-types.js';
import type { FairKeys } from './key-types.js';
import type { Lock } from './lock-types.js';
import type { Outbox, PoisonedRow } from './outbox-types.js';
import type { Steps } from './step-types.js';
import type { Counted, Explanation, KnownType, Matched, Task, TaskInput, TaskList } from './task-types.js';
import type { Config, Daily, Durations, Failures, Group, Live, QueueRow, State } from './types.js';

type PayloadInput = Pick<TaskInput, 'payload_text' | 'payload_base64'>;

/**
 * The task as the page saw it. The server refuses an action when the task is in another state by
 * then.
 */
type SeenTask = Pick<Task, 'queue' | 'id' | 'state'>;

/** Whose tasks a list shows: those of a queue in a state, or of one group when they aggregate, or of one key of a fair queue. */
export interface ListScope {
  queue: string;
  state: State;
  group?: string;
  /** Only for `pending`. */
  key?: string;
}

const queue = (name: string): string => `queues/${segment(name)}`;
const task = (name: string, id: string): string => `${queue(name)}/tasks/${segment(id)}`;

const run = (name: string, id: string): string => `${queue(name)}/workflows/${segment(id)}`;
const batch = (name: string, id: string): string => `${queue(name)}/batches/${segment(id)}`;

const listPath = ({ queue: name, state, group }: ListScope): string =>
  `${queue(name)}/${group === undefined ? '' : `groups/${segment(group)}/`}${state}_tasks`;

export const api = {
  config: (signal?: AbortSignal) => get<Config>('config', {}, signal),
  live: (since: number | undefined, signal?: AbortSignal) => get<Live>('live', { since }, signal),
  queueStats: (signal?: AbortSignal) => get<{ stats: Record<string, Daily[]> }>('queue_stats', {}, signal),

  queue: (name: string, days: number, signal?: AbortSignal) =>
    get<{ current: QueueRow; history: Daily[] }>(queue(name), { days }, signal),
  durations: (name: string | undefined, signal?: AbortSignal) => get<Durations>('durations', { queue: name }, signal),
  failures: (name: string, signal?: AbortSignal) => get<Failures>(`${queue(name)}/failures`, {}, signal),
  groups: (name: string, signal?: AbortSignal) => get<{ groups: Group[] | null }>(`${queue(name)}/groups`, {}, signal),
  pause: (name: string) => mutate('POST', `${queue(name)}:pause`),
  resume: (name: string) => mutate('POST', `${queue(name)}:resume`),
  deleteQueue: (name: string, force: boolean) => mutate('DELETE', `${queue(name)}${force ? '?force=true' : ''}`),

  list: (scope: ListScope, query: Query, signal?: AbortSignal) =>
    get<TaskList>(listPath(scope), { ...query, key: scope.key }, signal),
  batch: (scope: ListScope, action: BulkAction, ids: string[]) =>
    mutate<Record<string, string[]>>('POST', `${listPath(scope)}:batch_${action}`, {
      task_ids: ids,
      state: action === 'cancel' ? undefined : scope.state,
    }),
  /** Counts in a part of the list; `next_cursor` continues. */
  count: (scope: ListScope, query: Query, signal?: AbortSignal) =>
    get<Counted>(`${listPath(scope)}:count`, query, signal),
  /** Acts on the tasks that match in a part of the list; `next_cursor` continues. */
  matching: (scope: ListScope, action: BulkAction, part: object) =>
    mutate<Matched>('POST', `${listPath(scope)}:${action}_matching`, part),
  all: (scope: ListScope, action: BulkAction) =>
    mutate<Record<string, number> | undefined>(
      action === 'delete' ? 'DELETE' : 'POST',
      `${listPath(scope)}:${action}_all`,
    ),

  /** As text: a payload may hold numbers that a double cannot. */
  task: (name: string, id: string, signal?: AbortSignal) => getText(task(name, id), {}, signal),
  explanation: (name: string, id: string, signal?: AbortSignal) =>
    get<Explanation>(`${task(name, id)}/explanation`, {}, signal),
  attempts: (name: string, id: string, signal?: AbortSignal) => get<Attempts>(`${task(name, id)}/attempts`, {}, signal),
  steps: (name: string, id: string, query: Query, signal?: AbortSignal) =>
    get<Steps>(`${task(name, id)}/steps`, query, signal),
  signal: (name: string, id: string, signal: { name: string; payload?: unknown }) =>
    mutate('POST', `${task(name, id)}:signal`, signal),
  run: ({ queue: name, id, state }: SeenTask) => mutate('POST', `${task(name, id)}:run`, { state }),
  archive: ({ queue: name, id, state }: SeenTask) => mutate('POST', `${task(name, id)}:archive`, { state }),
  remove: ({ queue: name, id, state }: SeenTask) => mutate('DELETE', task(name, id), { state }),
  /** A damaged entry has no state. */
  removeDamaged: (name: string, id: string) => mutate('DELETE', task(name, id)),
  cancel: (name: string, id: string, how: { reason?: string; outcome?: string }) =>
    mutate('POST', `${task(name, id)}:cancel`, how),
  reschedule: ({ queue: name, id, state }: SeenTask, when: { process_at?: string; process_in_seconds?: number }) =>
    mutate('POST', `${task(name, id)}:reschedule`, { ...when, state }),
  editPayload: (name: string, id: string, payload: PayloadInput & { replaces: string }) =>
    mutate('POST', `${task(name, id)}:edit_payload`, payload),
  /** The address at which the bytes are downloaded as a file. */
  download: (name: string, id: string, part: 'payload' | 'result') => address(`${task(name, id)}/${part}`),
  clone: (name: string, id: string, changes: TaskInput) => mutate<Task>('POST', `${task(name, id)}:clone`, changes),
  taskTypes: (name: string, signal?: AbortSignal) =>
    get<{ types: KnownType[]; scanned: number }>(`${queue(name)}/task_types`, {}, signal),
  enqueue: (name: string, input: TaskInput) => mutate<Task>('POST', `${queue(name)}/tasks`, input),

  history: (query: Query, signal?: AbortSignal) => get<Record<string, PrometheusResponse>>('metrics', query, signal),
  servers: (signal?: AbortSignal) => get<{ servers: Server[] | null }>('servers', {}, signal),
  entries: (signal?: AbortSignal) => get<{ entries: Entry[] | null }>('scheduler_entries', {}, signal),
  /** As text, like a task. */
  entry: (id: string, signal?: AbortSignal) => getText(`scheduler_entries/${segment(id)}`, {}, signal),
  downloadEntry: (id: string) => address(`scheduler_entries/${segment(id)}/payload`),
  events: (entry: string, query: Query, signal?: AbortSignal) =>
    get<{ events: EnqueueEvent[] | null }>(`scheduler_entries/${segment(entry)}/enqueue_events`, query, signal),
  runEntry: (entry: string) => mutate<Task>('POST', `scheduler_entries/${segment(entry)}:run`),
  changeEntry: (entry: string, verb: 'pause' | 'resume') =>
    mutate<void>('POST', `scheduler_entries/${segment(entry)}:${verb}`),
  audit: (query: Query, signal?: AbortSignal) =>
    get<{ entries: AuditEntry[]; next_cursor: string | null }>('audit', query, signal),
  workflows: (query: Query, signal?: AbortSignal) => get<{ runs: WorkflowRun[] }>('workflows', query, signal),
  workflowRun: (name: string, id: string, signal?: AbortSignal) => get<WorkflowRunWithGraph>(run(name, id), {}, signal),
  cancelRun: (name: string, id: string) => mutate('POST', `${run(name, id)}:cancel`),
  retryRun: (name: string, id: string) => mutate<{ retried: number }>('POST', `${run(name, id)}:retry`),
  deleteRun: (name: string, id: string) => mutate('DELETE', run(name, id)),
  batches: (query: Query, signal?: AbortSignal) => get<{ batches: Batch[] }>('batches', query, signal),
  closeBatch: (name: string, id: string) => mutate('POST', `${batch(name, id)}:close`),
  deleteBatch: (name: string, id: string) => mutate('DELETE', batch(name, id)),
  keys: (name: string, query: Query, signal?: AbortSignal) => get<FairKeys>(`${queue(name)}/keys`, query, signal),
  locks: (name: string, query: Query, signal?: AbortSignal) =>
    get<{ locks: Lock[]; next_cursor: string | null }>(`${queue(name)}/locks`, query, signal),
  releaseLock: (queue: string, { name, task_id: holder }: Lock) =>
    mutate('POST', `${task(queue, holder)}:release_lock`, { name }),
  outbox: (signal?: AbortSignal) => get<Outbox>('outbox', {}, signal),
  poisoned: (query: Query, signal?: AbortSignal) =>
    get<{ rows: PoisonedRow[]; next: number | null }>('outbox/poisoned', query, signal),
  retryRow: (row: number) => mutate('POST', `outbox/poisoned/${row}:retry`),
  deleteRow: (row: number) => mutate('DELETE', `outbox/poisoned/${row}`),
  redis: (signal?: AbortSignal) => get<RedisInfo>('redis_info', {}, signal),
};

export type BulkAction = 'run' | 'archive' | 'delete' | 'cancel';

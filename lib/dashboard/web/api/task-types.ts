import type { TaskAction } from '../../../task/actions.js';
import type { Group, Queue, State } from './types.js';

/** A task in a list; some fields exist only in some states. */
export interface ListedTask {
  id: string;
  queue: string;
  type: string;
  payload: string;
  state: State;
  /** Null if it is not known. */
  enqueued_at: string | null;
  max_retry: number;
  retried: number;
  error_message: string;
  group: string;
  payload_size: number;
  payload_cut: boolean;
  redacted: boolean;
  last_failed_at?: string;
  next_process_at?: string;
  pending_since?: string | null;
  held_by?: string;
  held_since?: string | null;
  completed_at?: string;
  /** Cut. */
  result?: string;
  start_time?: string;
  deadline?: string;
  is_orphaned?: boolean;
  /** Of an active task. */
  progress?: Task['progress'];
  ttl_seconds?: number;
}

export interface TaskList {
  tasks: ListedTask[];
  stats: Queue;
  groups?: Group[];
  next_cursor: string | null;
  damaged: { id: string; error: string }[];
  scanned?: number;
}

/** How many match in a part of a list. */
export interface Counted {
  matching: number;
  scanned: number;
  next_cursor: string | null;
  counted_at: string;
}

/** What an action has done in a part of a list. */
export interface Matched {
  done: number;
  skipped: number;
  scanned: number;
  next_cursor: string | null;
}

export interface Decoded {
  decoder: string;
  value: unknown;
}

export interface TaskWorker {
  server_id: string;
  host: string;
  pid: number;
  started_at: string;
  deadline: string | null;
}

/** One of those that a task waits for: by its queue and id, or by its type and key. */
export interface Prerequisite {
  queue: string | null;
  id: string | null;
  type: string | null;
  /** Null also when it is hidden. */
  key: string | null;
  state: 'waiting' | 'succeeded' | 'failed';
  reason: string;
  /** Its queue is. */
  paused: boolean;
}

export interface TaskWait {
  prerequisites: Prerequisite[];
  on_failure: 'cancel' | 'run' | 'wait';
  on_timeout: 'archive' | 'run';
  until: string | null;
  cancelled: boolean;
}

export interface Task {
  id: string;
  queue: string;
  type: string;
  payload: string;
  state: State;
  /** Null if it is not known. */
  enqueued_at: string | null;
  max_retry: number;
  retried: number;
  crashes: number;
  last_crashes: { at: string; servers: string[]; others: number }[];
  error_message: string;
  last_failed_at: string;
  timeout_seconds: number;
  deadline: string;
  expires_at: string | null;
  next_process_at: string;
  pending_since: string | null;
  held_by: string | null;
  held_since: string | null;
  completed_at: string;
  result: string;
  ttl_seconds: number;
  group: string;
  headers: Record<string, string>;
  retention_seconds: number;
  payload_size: number;
  payload_base64: string | null;
  /** Hash of the payload, which an edit sends back; null when the payload is not shown whole. */
  payload_sha256: string | null;
  payload_too_large?: boolean;
  payload_decoded: Decoded | null;
  result_size: number;
  payload_redacted: boolean;
  result_redacted: boolean;
  progress: { fraction: number; text: string; at: string } | null;
  log: { text: string; at: string }[];
  log_dropped: number;
  /** JSON, cut. */
  chunks: string;
  chunk_count: number;
  chunks_redacted: boolean;
  result_base64: string | null;
  result_decoded: Decoded | null;
  redacted: boolean;
  worker: TaskWorker | null;
  waits: TaskWait | null;
  actions: TaskAction[];
}

/** Why a task does not run; the first reason holds it now. */
export interface Explanation {
  state: State;
  summary: string;
  reasons: Reason[];
}

export interface Reason {
  kind: string;
  text: string;
  until: string | null;
  tasks: { queue: string; id: string }[];
  queues: string[];
}

/** The body of enqueue, clone and edit. */
export interface TaskInput {
  queue?: string;
  type?: string;
  payload_text?: string;
  payload_base64?: string;
  task_id?: string;
  max_retry?: number;
  timeout_seconds?: number;
  deadline?: string;
  expires_in_seconds?: number;
  on_expiry?: string;
  unique_seconds?: number;
  process_at?: string;
  process_in_seconds?: number;
  retention_seconds?: number;
  group?: string;
  headers?: Record<string, string>;
}

/** A type that a queue knows: of a handler (then it may be the beginning of types), or of a recent task. */
export interface KnownType {
  type: string;
  handled: boolean;
  /** A task of the type, as an example. */
  task_id: string | null;
}

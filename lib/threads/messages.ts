import type { SealedError } from './sealed-error.js';

/** A task as a thread gets it. */
export interface SentTask {
  readonly id: string;
  readonly type: string;
  readonly queue: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Uint8Array;
  readonly retried: number;
  readonly maxRetry: number;
  readonly waited: number | undefined;
  /** Milliseconds since the epoch. */
  readonly deadline: number;
}

/** What a thread is told. */
export type ToThread =
  | { readonly kind: 'run'; readonly pattern: string; readonly task: SentTask }
  | { readonly kind: 'abort'; readonly reason: SealedError }
  | { readonly kind: 'reply'; readonly call: number; readonly error: SealedError | undefined }
  | { readonly kind: 'close' };

/** What a thread says. A `call` of a method of the task's context gets a reply, unless its number is 0. */
export type FromThread =
  | { readonly kind: 'ready' }
  | { readonly kind: 'done'; readonly result: Uint8Array | undefined }
  | { readonly kind: 'failed'; readonly error: SealedError }
  | { readonly kind: 'call'; readonly call: number; readonly method: ContextMethod; readonly args: readonly unknown[] };

/** The methods of the context of a task that a thread may call, by whether their end is waited for. */
export const CONTEXT_METHODS = { writeResult: true, spent: false, progress: false, log: false, emit: false } as const;
export type ContextMethod = keyof typeof CONTEXT_METHODS;

/** What a thread is made with. */
export interface ThreadSetting {
  /** The URL of the file with the module. */
  readonly module: string;
  readonly export: string | undefined;
  readonly invalidPayload: 'archive' | 'retry';
  readonly globalEnhancers: boolean;
}

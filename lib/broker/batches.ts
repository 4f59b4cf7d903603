import type { EnqueueRequest, EnqueueStatus } from './enqueue-request.js';
import type { Caused } from './links.js';

/*
 * Batches: many tasks with one end. A batch lives in one queue, its home; what it has in a queue is a
 * part there. Members are known by their ids, `<batch>~<number>`, so that a member costs bits.
 */

export const taskIdOfMember = (batch: string, number: number): string => `${batch}~${number}`;

export const BATCH_CALLBACKS = ['success', 'complete', 'death'] as const;
export type BatchCallback = (typeof BATCH_CALLBACKS)[number];

export interface NewBatch {
  /** `batch-` and 22 characters. */
  readonly id: string;
  readonly name: string;
  readonly callbacks: Readonly<Partial<Record<BatchCallback, EnqueueRequest>>>;
  /** Unix seconds: an open batch is closed then. */
  readonly closeBy: number;
  /** Seconds that it is kept after its end. */
  readonly retention: number;
}

/** Numbers for members of one queue. */
export interface Chunk {
  readonly batch: string;
  readonly home: string;
  readonly queue: string;
  /** The number of the first. */
  readonly base: number;
  readonly count: number;
}

export type BatchState = 'open' | 'closed' | 'succeeded' | 'completed';

export interface BatchProgress {
  readonly home: string;
  readonly id: string;
  readonly name: string;
  /** `completed`: every member has ended, and some have failed. */
  readonly state: BatchState;
  readonly total: number;
  readonly pending: number;
  readonly succeeded: number;
  readonly failed: number;
  /** Milliseconds since the epoch. */
  readonly openedAt: number;
  readonly endedAt: number | undefined;
}

export interface BatchesRole {
  open(home: string, batch: NewBatch): Promise<Caused>;
  /** Reserves numbers, one chunk per request. `ended` and `missing`: nothing is reserved. */
  reserve(
    home: string,
    batch: string,
    requests: readonly { readonly queue: string; readonly count: number }[],
  ): Promise<{ readonly status: 'reserved' | 'missing' | 'ended'; readonly chunks: readonly Chunk[] }>;
  /** Creates the members of a chunk in one step. `void`: the chunk was given up meanwhile, nothing was written. */
  add(
    chunk: Chunk,
    requests: readonly EnqueueRequest[],
  ): Promise<Caused & { readonly status: 'added' | 'void'; readonly statuses: readonly EnqueueStatus[] }>;
  /** Tells the home how many members of each chunk there are. */
  confirm(
    home: string,
    batch: string,
    chunks: readonly { readonly base: number; readonly created: number }[],
  ): Promise<Caused>;
  close(home: string, batch: string): Promise<Caused & { readonly status: 'closed' | 'missing' }>;
  progress(home: string, batch: string): Promise<BatchProgress | undefined>;
  /** Newest first. */
  batches(home: string, options: { readonly offset: number; readonly size: number }): Promise<BatchProgress[]>;
  /** Deletes an ended batch with its parts; its tasks stay. */
  delete(home: string, batch: string): Promise<Caused & { readonly status: 'deleted' | 'missing' | 'running' }>;
}

import { InvalidTaskError } from '../errors.js';
import type { BatchState } from '../task/batch.js';
import type { EnqueueStatus } from './enqueue-request.js';
import type { Caused, LinkedRequest } from './links.js';

/*
 * Batches: many tasks with one end. A batch lives in one queue, its home; what it has in a queue is a
 * part there. Members are known by their ids, `<batch>~<number>`, so that a member costs bits.
 */

export const taskIdOfMember = (batch: string, number: number): string => `${batch}~${number}`;

const MEMBER = /^(batch-[^~]+)~(\d+)$/;

/** Which member of which batch a task is by its id. */
export function memberOf(taskId: string): { readonly batch: string; readonly number: number } | undefined {
  const [, batch, number] = (taskId.startsWith('batch-') && MEMBER.exec(taskId)) || [];
  return batch === undefined ? undefined : { batch, number: Number(number) };
}

/** At most this many members in one chunk. */
export const MAX_CHUNK = 500;

/** A chunk that nobody confirmed is settled after this time, in seconds: see BatchesRole.add. */
export const CHUNK_SECONDS = 60;

export const BATCH_CALLBACKS = ['success', 'complete', 'death'] as const;
export type BatchCallback = (typeof BATCH_CALLBACKS)[number];

export interface NewBatch {
  /** `batch-` and 22 characters. */
  readonly id: string;
  readonly name: string;
  /** One that waits may do so for as long as from now to its deadline, from when it is called. */
  readonly callbacks: Readonly<Partial<Record<BatchCallback, LinkedRequest>>>;
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
  /** The queues with members that have failed, by name. */
  readonly failedIn: readonly string[];
  /** Milliseconds since the epoch. */
  readonly openedAt: number;
  readonly endedAt: number | undefined;
}

export interface BatchesRole {
  /** Opens a batch, once. @throws InvalidTaskError for an id of another form, and for a callback with a group */
  open(home: string, batch: NewBatch): Promise<Caused>;
  /**
   * Reserves numbers, one chunk of at most MAX_CHUNK per request. `ended` and `missing`: nothing is
   * reserved. Within CHUNK_SECONDS the members are to be added, and the chunk to be confirmed.
   *
   * @param byMember a running member adds: it may, too, when it had died, the batch has ended without
   *   it, and it is run again. The batch then ends once more, and calls back what it has not called yet.
   */
  reserve(
    home: string,
    batch: string,
    requests: readonly { readonly queue: string; readonly count: number }[],
    byMember?: boolean,
  ): Promise<{ readonly status: 'reserved' | 'missing' | 'ended'; readonly chunks: readonly Chunk[] }>;
  /**
   * Creates the members of a chunk in one step; request by request, their numbers follow the base. The
   * refused are no members. `void`: the chunk was given up meanwhile, nothing was written. A chunk
   * that has members is in conflict: Redis has lost that its numbers were given away.
   *
   * @throws InvalidTaskError for an id that is not that of the number, and for a task with a group
   */
  add(
    chunk: Chunk,
    requests: readonly LinkedRequest[],
  ): Promise<Caused & { readonly status: 'added' | 'void'; readonly statuses: readonly EnqueueStatus[] }>;
  /** Confirms to the home how many members of each chunk there are. Members that nobody confirmed are found later. */
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

/**
 * Checks that a batch may be opened.
 *
 * @throws InvalidTaskError
 */
export function checkBatch({ id, callbacks }: NewBatch): void {
  if (!/^batch-[^~ ]+$/.test(id)) throw new InvalidTaskError(`a batch has the id "${id}"; it begins with "batch-"`);
  for (const [name, { message }] of Object.entries(callbacks)) {
    if (message.groupKey === '') continue;
    throw new InvalidTaskError(
      `the callback ${name} of batch "${id}" has the group "${message.groupKey}"; leave the group out`,
    );
  }
}

/**
 * Checks that so many members may be reserved.
 *
 * @throws InvalidTaskError
 */
export function checkReservation(batch: string, requests: readonly { readonly count: number }[]): void {
  for (const { count } of requests) {
    if (Number.isInteger(count) && count >= 1 && count <= MAX_CHUNK) continue;
    throw new InvalidTaskError(
      `a chunk of ${count} members of batch "${batch}"; it must be a whole number from 1 to ${MAX_CHUNK}`,
    );
  }
}

/**
 * Checks that these may be the members of a chunk.
 *
 * @throws InvalidTaskError
 */
export function checkMembers({ batch, base, count }: Chunk, requests: readonly Pick<LinkedRequest, 'message'>[]): void {
  if (requests.length > Math.min(count, MAX_CHUNK)) {
    throw new InvalidTaskError(
      `${requests.length} members of batch "${batch}" for a chunk of ${count}; at most ${MAX_CHUNK} fit into one`,
    );
  }
  for (let i = 0; i < requests.length; i++) {
    const { id, groupKey } = requests[i]!.message;
    const expected = taskIdOfMember(batch, base + i);
    if (id !== expected) throw new InvalidTaskError(`a member has the id "${id}"; its number makes it "${expected}"`);
    if (groupKey !== '') {
      throw new InvalidTaskError(`member "${id}" of a batch has the group "${groupKey}"; leave the group out`);
    }
  }
}

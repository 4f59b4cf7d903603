import { defineTask } from 'nestjs-asynq';

/** A queue of its own: this sample leaves other tasks on the same Redis alone. */
export const FORUM_QUEUE = 'forum';

export interface Mention {
  readonly by: string;
  readonly text: string;
  /** Milliseconds since the epoch: tasks of a group are in order to the second only. */
  readonly at: number;
}

export interface Digest {
  readonly reader: string;
  readonly mentions: readonly Mention[];
}

/** Has no handler: it is always in a group, and what runs is the digest made of that. */
export const Mentioned = defineTask<Mention>('forum:mentioned', { queue: FORUM_QUEUE });

export const SendDigest = defineTask<Digest>('mail:digest', { queue: FORUM_QUEUE, maxRetry: 5, timeout: '30s' });

import { defineTask } from 'nestjs-asynq';

/** The sample has its own queue, so it does not touch other tasks on the same Redis. */
export const FORUM_QUEUE = 'forum';

export interface Mention {
  readonly by: string;
  readonly text: string;
  /** Milliseconds since the epoch: tasks that join a group in the same second are in any order. */
  readonly at: number;
}

export interface Digest {
  readonly reader: string;
  readonly mentions: readonly Mention[];
}

/** Has no handler, because it is always in a group. The digest made of the group runs instead. */
export const Mentioned = defineTask<Mention>('forum:mentioned', { queue: FORUM_QUEUE });

export const SendDigest = defineTask<Digest>('mail:digest', { queue: FORUM_QUEUE, maxRetry: 5, timeout: '30s' });

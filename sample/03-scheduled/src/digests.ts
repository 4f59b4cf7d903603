import { Injectable } from '@nestjs/common';
import {
  type AggregatedTask,
  AsynqClient,
  type GroupedTask,
  TaskAggregator,
  TaskHandler,
  type TaskInfo,
} from 'nestjs-asynq';
import { say } from './say.js';
import { type Digest, type Mention, Mentioned, SendDigest } from './tasks.js';

const READER = 'reader:';

/** One mail for many mentions. */
@Injectable()
export class Digests {
  constructor(private readonly client: AsynqClient) {}

  /** Adds the mention to the next digest of the reader: now, or when the quiet hours of the reader end. */
  mention(reader: string, mention: Mention, quietUntil?: Date): Promise<TaskInfo> {
    return this.client.enqueue(Mentioned, mention, { group: READER + reader, processAt: quietUntil });
  }

  /** When a group is due (see app.module.ts), one task replaces all its tasks in one step. */
  @TaskAggregator(READER)
  collect(group: string, mentions: readonly GroupedTask<Mention>[]): AggregatedTask {
    const inOrder = mentions.map(({ payload }) => payload).toSorted((a, b) => a.at - b.at);
    return { task: SendDigest, payload: { reader: group.slice(READER.length), mentions: inOrder } };
  }

  /** An ordinary task: it is retried when the mail cannot be sent. */
  @TaskHandler(SendDigest)
  send({ reader, mentions }: Digest): void {
    say(`mail to ${reader}: ${mentions.map(({ by, text }) => `${by}: ${text}`).join(' | ')}`);
  }
}

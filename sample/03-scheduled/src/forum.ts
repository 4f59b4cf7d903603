import { setTimeout as wait } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { AsynqInspector, type TaskInfo } from 'nestjs-asynq';
import { Digests } from './digests.js';
import { say } from './say.js';
import { FORUM_QUEUE } from './tasks.js';

const PAUSE = 200;

/** Who is mentioned by whom. */
const TALK = [
  ['ann', 'bob', 'is it out yet?'],
  ['ann', 'cem', 'I hear it is'],
  ['bob', 'ann', 'it is'],
  ['ann', 'bob', 'where?'],
  ['cem', 'ann', 'thanks for the tests'],
  ['ann', 'dee', 'does it do groups?'],
  ['bob', 'ann', 'on npm'],
  ['ann', 'dee', 'found it'],
  ['ann', 'bob', 'and cron?'],
  ['ann', 'cem', 'see the manual'],
  ['dee', 'ann', 'welcome'],
  ['dee', 'bob', 'good morning'],
] as const;

/** How long the reader wants no mail, in milliseconds. */
const QUIET: Readonly<Record<string, number>> = { dee: 4_000 };

/** Plays a busy hour of a forum in two seconds. */
@Injectable()
export class Forum {
  constructor(
    private readonly digests: Digests,
    private readonly inspector: AsynqInspector,
  ) {}

  /** Resolves when this or another process has sent every mention in a mail. */
  async talk(): Promise<void> {
    const mentions: TaskInfo[] = [];
    const start = Date.now();
    for (const [reader, by, text] of TALK) {
      const quietUntil = reader in QUIET ? new Date(start + QUIET[reader]!) : undefined;
      mentions.push(await this.digests.mention(reader, { by, text, at: Date.now() }, quietUntil));
      say(`${by} mentions ${reader}`);
      await wait(PAUSE);
    }
    for (const mention of mentions) await this.until(async () => !(await this.find(mention)));
    await this.untilIdle();
  }

  /** Resolves when no task is left to run. */
  untilIdle(): Promise<void> {
    return this.until(async () => {
      const { pending, active } = await this.inspector.getQueueInfo(FORUM_QUEUE);
      return pending + active === 0;
    });
  }

  /** A mention is deleted as soon as its digest is stored. */
  private find({ queue, id }: TaskInfo): Promise<TaskInfo | undefined> {
    return this.inspector.getTaskInfo(queue, id);
  }

  private async until(isTrue: () => Promise<boolean>): Promise<void> {
    while (!(await isTrue())) await wait(20);
  }
}

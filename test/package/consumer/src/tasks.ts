import { Injectable } from '@nestjs/common';
import { Payload, TaskCtx, TaskHandler, defineTask, type TaskContext } from 'nestjs-asynq';

export class Letter {
  to!: string;
}

export const SendLetter = defineTask<Letter>('letter:send', { maxRetry: 3 });

/** Injected into the handlers by its type, so that a compiler that loses decorator metadata is found out. */
@Injectable()
export class Postbox {
  readonly sent: string[] = [];
  private waiting: (() => void)[] = [];

  put(line: string): void {
    this.sent.push(line);
    for (const resolve of this.waiting.splice(0)) resolve();
  }

  async holds(count: number): Promise<void> {
    while (this.sent.length < count) await new Promise<void>((resolve) => this.waiting.push(resolve));
  }
}

@Injectable()
export class LetterTasks {
  constructor(private readonly postbox: Postbox) {}

  @TaskHandler(SendLetter)
  send(@Payload() letter: Letter, @TaskCtx() task: TaskContext): string {
    if (letter.to === 'nobody' && task.retried < 2) throw new Error('address unknown');
    this.postbox.put(`${task.type} to ${letter.to} after ${task.retried} retries`);
    return 'delivered';
  }
}

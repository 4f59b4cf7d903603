import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { Injectable } from '@nestjs/common';
import { Payload, SkipRetry, TaskCtx, TaskHandler, type TaskContext } from 'nestjs-asynq';
import { MeasureFile, PublishReport, SayGoodbye, type FileFacts } from './tasks.js';
import { TextCounter } from './text-counter.js';

@Injectable()
export class FileHandlers {
  /** The return value is the result of the task. It is kept for the retention of the task. */
  @TaskHandler(MeasureFile)
  async measure(@Payload(MeasureFile, 'path') path: string, @TaskCtx() { signal }: TaskContext): Promise<FileFacts> {
    const digest = createHash('sha256');
    const counter = new TextCounter();
    try {
      // The signal stops the reading when the task times out or is cancelled, or at shutdown.
      for await (const chunk of createReadStream(path, { signal })) {
        digest.update(chunk);
        counter.add(chunk);
      }
    } catch (error) {
      // A missing file is still missing in a minute, so a retry does not help.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new SkipRetry(`no such file: ${path}`);
      throw error;
    }
    return { path, ...counter.counts, sha256: digest.digest('hex'), pid: process.pid };
  }

  /** An unreliable step: the first two attempts fail, the third succeeds. */
  @TaskHandler(PublishReport, { retryDelay: () => 500 })
  publish(@Payload() { files }: { files: number }, @TaskCtx() { retried }: TaskContext): string {
    if (retried < 2) throw new Error('the printer is on fire');
    return `a report on ${files} files`;
  }

  /** Without parameter decorators the parameters are the payload and the context. */
  @TaskHandler(SayGoodbye)
  goodbye({ name, since }: { name: string; since: number }): string {
    return `goodbye ${name}, ${((Date.now() - since) / 1000).toFixed(1)} s after it was enqueued`;
  }
}

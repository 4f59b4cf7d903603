import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Injectable, Logger } from '@nestjs/common';
import { Payload, SkipRetry, TaskCtx, TaskHandler, type TaskContext } from 'nestjs-asynq';
import { MeasureFile, PublishReport, SayGoodbye, type FileFacts } from './tasks.js';

const SPACE = new Set([0x20, 0x09, 0x0a, 0x0b, 0x0c, 0x0d]);
const NEWLINE = 0x0a;

@Injectable()
export class FileHandlers {
  private readonly logger = new Logger('Handlers');

  /** What a handler returns is the task's result, kept for its retention. */
  @TaskHandler(MeasureFile)
  async measure(@Payload() { path }: { path: string }, @TaskCtx() task: TaskContext): Promise<FileFacts> {
    const content = await readFile(path, { signal: task.signal }).catch((error: NodeJS.ErrnoException) => {
      // A file that is gone will not come back: no use in retrying.
      throw error.code === 'ENOENT' ? new SkipRetry(`no such file: ${path}`, { cause: error }) : error;
    });
    return { path, ...count(content), sha256: createHash('sha256').update(content).digest('hex') };
  }

  /** A flaky step: the first two attempts fail, the third succeeds. */
  @TaskHandler(PublishReport, { retryDelay: () => 500 })
  publish({ files }: { files: number }, task: TaskContext): string {
    if (task.retried < 2) throw new Error(`the printer is on fire (attempt ${task.retried + 1})`);
    return `report on ${files} files, published at attempt ${task.retried + 1}`;
  }

  @TaskHandler(SayGoodbye)
  goodbye({ name }: { name: string }): string {
    this.logger.log(`goodbye, ${name}`);
    return 'said';
  }
}

function count(content: Buffer): { bytes: number; lines: number; words: number } {
  let lines = 0;
  let words = 0;
  let inWord = false;
  for (const byte of content) {
    if (byte === NEWLINE) lines += 1;
    const space = SPACE.has(byte);
    if (!space && !inWord) words += 1;
    inWord = !space;
  }
  return { bytes: content.length, lines, words };
}

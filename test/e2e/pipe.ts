import { execFileSync } from 'node:child_process';
import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { vi } from 'vitest';

/** A named pipe: a file whose reader waits until the test writes it. So a task that reads it is under way for certain. */
export class Pipe {
  private writer: FileHandle | undefined;

  constructor(readonly path: string) {
    execFileSync('mkfifo', [path]);
  }

  /** Resolves when somebody reads it. */
  async untilRead(timeout: number): Promise<void> {
    const flags = constants.O_WRONLY | constants.O_NONBLOCK; // fails as long as nobody reads
    this.writer = await vi.waitFor(() => open(this.path, flags), { timeout, interval: 20 });
  }

  /** Its whole content: the reader comes to the end. */
  async write(text: string): Promise<void> {
    await this.writer!.write(text);
    await this.writer!.close();
  }
}

import type { LoggerService } from '@nestjs/common';
import { MultiBar, type SingleBar } from 'cli-progress';

const LOOK = { format: '{bar} {value}/{total} files', barCompleteChar: '█', barIncompleteChar: '░' };

/** The terminal during a survey: warnings and errors above, the progress bar below (only in a terminal). */
export class Screen implements LoggerService {
  private readonly bars = new MultiBar({
    ...LOOK,
    hideCursor: true,
    linewrap: true,
    forceRedraw: true,
    gracefulExit: true,
  });
  private bar: SingleBar | undefined;

  begin(total: number): void {
    this.bar = this.bars.create(total, 0);
  }

  advance(done: number): void {
    this.bar?.update(done);
  }

  end(): void {
    if (!this.bars.isActive) return;
    this.bars.update();
    this.bars.stop();
  }

  /** Nest's start messages would distract from the sample. */
  log(): void {}

  warn(message: unknown): void {
    this.print(`warning: ${message}`);
  }

  error(message: unknown): void {
    this.print(`error: ${message}`);
  }

  private print(line: string): void {
    if (this.bars.isActive) this.bars.log(`${line}\n`);
    else console.error(line);
  }
}

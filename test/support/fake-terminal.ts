import { PassThrough } from 'node:stream';
import type { Terminal } from '../../lib/cli/output/terminal.js';
import type { Clock } from '../../lib/clock.js';

/** A terminal that notes what is written to it, and whose keys are bytes. */
export class FakeTerminal implements Terminal {
  readonly stdin = Object.assign(new PassThrough(), {
    isTTY: true,
    setRawMode: (isRaw: boolean) => void this.rawModes.push(isRaw),
  });
  readonly stdout = Object.assign(new PassThrough(), { isTTY: true, columns: 80, rows: 24 });
  readonly stderr = new PassThrough();
  readonly version = '1.2.3';
  readonly rawModes: boolean[] = [];
  /** One for each write. */
  readonly written: string[] = [];
  readonly undoings = new Set<() => void>();

  constructor(
    readonly clock: Clock,
    readonly env: Readonly<Record<string, string>> = { TERM: 'xterm' },
  ) {
    this.stdout.on('data', (chunk: Buffer) => this.written.push(chunk.toString()));
  }

  interruption(): AbortSignal {
    return new AbortController().signal;
  }

  onEnd(undo: () => void): () => void {
    this.undoings.add(undo);
    return () => void this.undoings.delete(undo);
  }

  resize(columns: number, rows: number): void {
    Object.assign(this.stdout, { columns, rows });
    this.stdout.emit('resize');
  }
}

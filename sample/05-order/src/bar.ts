import { SingleBar } from 'cli-progress';

const LOOK = { format: '{bar} {value}/{total} rows', barCompleteChar: '█', barIncompleteChar: '░', hideCursor: true };

/** The progress of an import; only in a terminal. */
export class Bar {
  private readonly bar = new SingleBar(LOOK);

  constructor(total: number) {
    this.bar.start(total, 0);
  }

  show(done: number): void {
    this.bar.update(done);
  }

  end(): void {
    this.bar.stop();
  }
}

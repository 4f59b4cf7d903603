import { SystemClock } from '../../clock.js';
import { InvalidNoteError } from '../../errors.js';
import type { ContextMethod } from '../../threads/messages.js';

/** Between two messages of notes. */
const INTERVAL_MS = 50;
/** How many lines, and how many chunks, one message has: what a task keeps of them. */
const MOST = { log: 1_000, emit: 10_000 } as const;

/** What a handler in a thread says, collected for the server: a flood of it stays here, and what is older goes. */
export class ThreadNotes {
  private readonly clock = new SystemClock();
  private progressed: readonly unknown[] | undefined;
  private readonly collected: { [K in keyof typeof MOST]: unknown[] } = { log: [], emit: [] };
  private scheduled = false;

  constructor(private readonly send: (method: ContextMethod, args: readonly unknown[]) => void) {}

  progress(fraction: number, text: string | undefined): void {
    this.progressed = [fraction, text];
    this.sendSoon();
  }

  log(text: string): void {
    this.collect('log', text);
  }

  /** @throws InvalidNoteError */
  emit(chunk: unknown): void {
    this.collect('emit', plain(chunk));
  }

  flush(): void {
    this.scheduled = false;
    if (this.progressed) this.send('progress', this.progressed);
    this.progressed = undefined;
    for (const kind of ['log', 'emit'] as const) {
      for (const one of this.collected[kind].slice(-MOST[kind])) this.send(kind, [one]);
      this.collected[kind].length = 0;
    }
  }

  private collect(kind: keyof typeof MOST, value: unknown): void {
    const all = this.collected[kind];
    all.push(value);
    if (all.length >= 2 * MOST[kind]) all.splice(0, MOST[kind]);
    this.sendSoon();
  }

  private sendSoon(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    this.clock.after(INTERVAL_MS, () => this.flush());
  }
}

/** As JSON has it. What has no JSON is refused by the server. */
function plain(chunk: unknown): unknown {
  try {
    const text = JSON.stringify(chunk) as string | undefined;
    return text === undefined ? undefined : JSON.parse(text);
  } catch (error) {
    throw new InvalidNoteError(`a chunk must be JSON data: ${(error as Error).message}`, { cause: error });
  }
}

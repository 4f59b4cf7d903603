import type { FollowedTask } from '../broker/following.js';
import type { NoteHead, NoteKind, NotesRole } from '../broker/notes.js';
import type { TaskPlace } from '../broker/task-place.js';
import { decodeChunks, decodeLines, decodeProgress, type TaskLogLine, type TaskProgress } from '../task/notes.js';
import type { StoredState } from '../wire/states.js';
import type { ResultSettings } from './options.js';
import type { AwaitedTask, Results } from './results.js';

/** What happens to a task that is followed, in the form of Nest's MessageEvent. `R` is the type of the result. */
export type TaskUpdate<R = unknown> =
  /** Its state, at first and whenever it is another one; as asynq has it, so that a held task is a retry. */
  | { readonly type: 'state'; readonly data: { readonly state: StoredState } }
  /** The last one, when it is another. */
  | { readonly type: 'progress'; readonly data: TaskProgress }
  | { readonly type: 'log'; readonly data: TaskLogLine }
  | { readonly type: 'chunk'; readonly data: { readonly chunk: unknown } }
  /** The chunks before are those of an attempt that has ended: it has begun again. */
  | { readonly type: 'restart'; readonly data: Record<string, never> }
  /** Older lines, or chunks, are not kept any more. */
  | { readonly type: 'gap'; readonly data: { readonly of: NoteKind } }
  /** The last one. */
  | { readonly type: 'result'; readonly data: { readonly result: R } };

export interface UpdateSink {
  next(update: TaskUpdate): void;
  /** The end of a task without a result, as a wait for it rejects. */
  error(error: unknown): void;
  complete(): void;
}

/** @returns ends it, without a word */
export function followTask(
  results: Results,
  notes: Pick<NotesRole, 'pieces'>,
  awaited: AwaitedTask,
  settings: ResultSettings,
  sink: UpdateSink,
): () => void {
  const updates = new Updates(notes, { queue: awaited.queue, id: awaited.id }, sink);
  const stop = results.watch(awaited, settings, {
    seen: (task) => updates.push(task),
    resolve: (result) => {
      updates.end(() => {
        sink.next({ type: 'result', data: { result } });
        sink.complete();
      });
    },
    reject: (error) => updates.end(() => sink.error(error)),
  });
  return () => {
    updates.stop();
    stop();
  };
}

/** Makes updates of what is seen of a task, in order: what it has said is read first, then comes what was seen later. */
class Updates {
  private latest: FollowedTask | undefined;
  private running = false;
  private stopped = false;
  private ending: (() => void) | undefined;
  private state: StoredState | undefined;
  private progress: string | undefined;
  /** The number of the next piece. */
  private readonly next = { log: 0, chunk: 0 };
  private start = 0;
  /** Whether anything of a kind was seen: before that, what is dropped is a gap. */
  private readonly began = { log: false, chunk: false };

  constructor(
    private readonly notes: Pick<NotesRole, 'pieces'>,
    private readonly task: TaskPlace,
    private readonly sink: UpdateSink,
  ) {}

  push(task: FollowedTask): void {
    this.latest = task;
    void this.run();
  }

  end(ending: () => void): void {
    this.ending = ending;
    void this.run();
  }

  stop(): void {
    this.stopped = true;
  }

  private async run(): Promise<void> {
    if (this.running) return;
    this.running = true;
    while (this.latest && !this.stopped) {
      const task = this.latest;
      this.latest = undefined;
      await this.tell(task);
    }
    this.running = false;
    const { ending } = this;
    this.ending = undefined;
    if (!this.stopped) ending?.();
  }

  private async tell({ state, notes }: FollowedTask): Promise<void> {
    // What was said comes before the state that followed, but for the first state, and the one in which it is said.
    const isOver = state === 'completed' || state === 'archived' || state === 'retry';
    if (!isOver) this.tellState(state);
    if (notes) {
      await this.tellPieces('log', notes.log);
      await this.tellPieces('chunk', notes.chunk);
      const progress = notes.progress === this.progress ? undefined : decodeProgress(notes.progress);
      this.progress = notes.progress;
      if (progress) this.emit({ type: 'progress', data: progress });
    }
    this.tellState(state);
  }

  private tellState(state: StoredState): void {
    if (state === this.state) return;
    this.state = state;
    this.emit({ type: 'state', data: { state } });
  }

  private async tellPieces(kind: NoteKind, head: NoteHead): Promise<void> {
    if (kind === 'chunk' && head.start > this.start) {
      if (this.began.chunk) this.emit({ type: 'restart', data: {} });
      this.start = head.start;
      this.next.chunk = Math.max(this.next.chunk, head.start);
      this.began.chunk = false;
    }
    const from = Math.max(this.next[kind], head.first);
    if (head.next <= from) return;
    const numbers = Array.from({ length: head.next - from }, (_, n) => from + n);
    let pieces: (string | undefined)[];
    try {
      pieces = await this.notes.pieces(this.task, kind, numbers);
    } catch {
      return; // the task is seen again in some seconds
    }
    const isMissing = this.began[kind] ? from > this.next[kind] : head.dropped > 0;
    if (isMissing || pieces.includes(undefined)) this.emit({ type: 'gap', data: { of: kind } });
    this.next[kind] = head.next;
    this.began[kind] = true;
    for (const piece of pieces) {
      if (kind === 'log') for (const line of decodeLines(piece)) this.emit({ type: 'log', data: line });
      else for (const chunk of decodeChunks(piece)) this.emit({ type: 'chunk', data: { chunk } });
    }
  }

  private emit(update: TaskUpdate): void {
    if (!this.stopped) this.sink.next(update);
  }
}

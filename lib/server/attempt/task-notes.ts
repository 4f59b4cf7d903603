import { withTimeout } from '../../async.js';
import type { Lease } from '../../broker/broker.js';
import {
  NOTE_KINDS,
  NOTE_LIMITS,
  type NoteKind,
  type NotePiece,
  type Notes,
  type NotesRole,
} from '../../broker/notes.js';
import type { Clock, ClockTimer } from '../../clock.js';
import { InvalidNoteError } from '../../errors.js';
import { encodeLine, encodeProgress, type TaskProgress } from '../../task/notes.js';
import { describe } from '../../validation.js';

/** Between two writes of a task. */
const INTERVAL_MS = 200;
/** How long the end of an attempt waits for its last write. */
const LAST_WRITE_MS = 1_000;
/** What a piece has at most; one entry may be larger. */
const PIECE_ENTRIES = 100;
const PIECE_BYTES = 8_192;
/** Characters; a longer text is cut. */
const MAX_LINE = 4_000;
const MAX_PROGRESS_TEXT = 500;
/** A fraction from here on is a percentage. Below, it is an estimate that was a little too high. */
const PERCENT = 2;
/** Bytes of the JSON of a chunk. */
const MAX_CHUNK = 65_536;

export interface NotesDeps {
  readonly role: Pick<NotesRole, 'write'>;
  /** One that goes on by itself. */
  readonly clock: Clock;
}

/** Entries of a kind that are not written yet: JSON, and how many had to be left out. */
class Waiting {
  private entries: string[] = [];
  private bytes = 0;
  private leftOut = 0;

  constructor(private readonly kind: NoteKind) {}

  get isEmpty(): boolean {
    return this.entries.length === 0 && this.leftOut === 0;
  }

  /** Keeps no more than the store would. */
  add(json: string): void {
    this.entries.push(json);
    this.bytes += json.length;
    const most = NOTE_LIMITS[this.kind];
    if (this.entries.length <= 2 * most.entries && this.bytes <= 2 * most.bytes) return;
    // Half of them at once: to shift one by one is slow.
    const dropped = this.entries.splice(0, Math.ceil(this.entries.length / 2));
    this.leftOut += dropped.length;
    for (const one of dropped) this.bytes -= one.length;
  }

  /** Empties it. */
  take(): NotePiece[] {
    const pieces: NotePiece[] = [];
    let { leftOut } = this;
    let from = 0;
    while (from < this.entries.length) {
      let to = from;
      for (let bytes = 0; to < this.entries.length && to - from < PIECE_ENTRIES; to++) {
        bytes += this.entries[to]!.length + 1;
        if (to > from && bytes > PIECE_BYTES) break;
      }
      pieces.push({ kind: this.kind, count: to - from, text: `[${this.entries.slice(from, to).join(',')}]`, leftOut });
      leftOut = 0;
      from = to;
    }
    [this.entries, this.bytes, this.leftOut] = [[], 0, 0];
    return pieces;
  }
}

/**
 * What the handler of one attempt says: progress, log and chunks. A call only notes it, and never waits or fails for the store. It is
 * written a little later, with what was said meanwhile, one write at a time; the rest right before the attempt is settled.
 */
export class TaskNotes {
  private progressed: TaskProgress | undefined;
  private readonly waiting = { log: new Waiting('log'), chunk: new Waiting('chunk') };
  private hasEmitted = false;
  private timer: ClockTimer | undefined;
  private writing: Promise<void> | undefined;
  private closed = false;

  constructor(
    private readonly deps: NotesDeps,
    private readonly lease: Lease,
  ) {}

  progress(fraction: number, text?: string): void {
    if (typeof fraction !== 'number')
      throw new InvalidNoteError(
        `progress takes a number from 0 to 1, not ${describe(fraction)}; emit() takes data for who follows the task`,
      );
    if (text !== undefined && typeof text !== 'string') {
      throw new InvalidNoteError(`the text of progress must be a string, not ${describe(text)}`);
    }
    if (fraction >= PERCENT && Number.isFinite(fraction)) {
      throw new InvalidNoteError(
        `progress takes a number from 0 to 1, not ${fraction}; divide a percentage by 100: progress(${fraction / 100})`,
      );
    }
    if (Number.isNaN(fraction)) return; // 0 of 0 is done
    const within = Math.min(Math.max(fraction, 0), 1);
    this.progressed = {
      fraction: within,
      text: text && cut(text, MAX_PROGRESS_TEXT),
      at: new Date(this.deps.clock.now()),
    };
    this.writeSoon();
  }

  log(text: string): void {
    if (typeof text !== 'string') throw new InvalidNoteError(`log takes a string, not ${describe(text)}`);
    this.waiting.log.add(encodeLine(this.deps.clock.now(), cut(text, MAX_LINE)));
    this.writeSoon();
  }

  emit(chunk: unknown): void {
    this.waiting.chunk.add(encodeChunk(chunk));
    this.writeSoon();
  }

  /** Nothing more is taken. Resolves when all is written, or cannot be in time; `undefined`: nothing is left to write. */
  close(): Promise<unknown> | undefined {
    this.closed = true;
    this.timer?.cancel();
    if (!this.writing && !this.isDirty) return undefined;
    return withTimeout(this.writeAll(), LAST_WRITE_MS, this.deps.clock);
  }

  private get isDirty(): boolean {
    return this.progressed !== undefined || !this.waiting.log.isEmpty || !this.waiting.chunk.isEmpty;
  }

  /** What is said in one go is written together. */
  private writeSoon(): void {
    if (this.closed || this.writing || this.timer) return;
    this.timer = NOW;
    queueMicrotask(() => void this.writeOnce());
  }

  private async writeOnce(): Promise<void> {
    this.timer = undefined;
    if (this.closed || !this.isDirty) return;
    await this.write();
    if (this.closed) return;
    // Also without a note meanwhile: the next one waits for it.
    this.timer = this.deps.clock.after(INTERVAL_MS, () => void this.writeOnce());
  }

  private async writeAll(): Promise<void> {
    await this.writing;
    if (this.isDirty) await this.write();
  }

  private async write(): Promise<void> {
    const notes = this.take();
    this.writing = this.deps.role.write(this.lease, notes).then(
      (isOurs) => void (this.closed ||= !isOurs),
      () => undefined, // it may be stored or not; to say it twice would be worse
    );
    await this.writing;
    this.writing = undefined;
  }

  private take(): Notes {
    const progress = this.progressed && encodeProgress(this.progressed);
    this.progressed = undefined;
    const fresh = !this.hasEmitted && !this.waiting.chunk.isEmpty;
    this.hasEmitted ||= fresh;
    return { progress, fresh, pieces: NOTE_KINDS.flatMap((kind) => this.waiting[kind].take()) };
  }
}

/** A write that begins when the handler pauses. */
const NOW: ClockTimer = { cancel: () => undefined };

const cut = (text: string, most: number): string => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);

function encodeChunk(chunk: unknown): string {
  let json: string | undefined;
  try {
    json = JSON.stringify(chunk);
  } catch (error) {
    throw new InvalidNoteError(`a chunk cannot be encoded: ${(error as Error).message}`, { cause: error });
  }
  if (json === undefined) throw new InvalidNoteError(`emit takes what JSON can hold, not ${describe(chunk)}`);
  if (Buffer.byteLength(json) <= MAX_CHUNK) return json;
  throw new InvalidNoteError(
    `a chunk has ${Buffer.byteLength(json)} bytes of JSON, and may have ${MAX_CHUNK}; emit it in parts`,
  );
}

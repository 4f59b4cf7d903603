import type { SaidNotes } from '../../task/notes.js';
import {
  NOTE_LIMITS,
  type NoteHead,
  type NoteHeads,
  type NoteKind,
  type NotePiece,
  SHOWN_CHUNK_BYTES,
} from '../notes.js';

/** What a task keeps of a kind. */
export class NoteList {
  private first = 0;
  private entries = 0;
  private bytes = 0;
  private dropped = 0;
  private start = 0;
  private readonly pieces: { readonly count: number; readonly text: string; readonly bytes: number }[] = [];

  constructor(private readonly kind: NoteKind) {}

  get head(): NoteHead {
    return { first: this.first, next: this.first + this.pieces.length, dropped: this.dropped, start: this.start };
  }

  /** The last pieces, as long as they have no more bytes; but always one. */
  texts(most = Infinity): string[] {
    const found: string[] = [];
    let bytes = 0;
    for (const piece of this.pieces.toReversed()) {
      bytes += piece.bytes;
      if (bytes > most && found.length > 0) break;
      found.unshift(piece.text);
    }
    return found;
  }

  add({ count, text, leftOut }: NotePiece): void {
    const bytes = Buffer.byteLength(`${count} ${text}`); // as in Redis
    this.pieces.push({ count, text, bytes });
    this.entries += count;
    this.bytes += bytes;
    this.dropped += leftOut;
    const most = NOTE_LIMITS[this.kind];
    while ((this.entries > most.entries || this.bytes > most.bytes) && this.pieces.length > 1) this.dropFirst();
  }

  clear(): void {
    while (this.pieces.length > 0) this.dropFirst();
    this.dropped = 0;
    this.start = this.first;
  }

  textAt(n: number): string | undefined {
    return this.pieces[n - this.first]?.text;
  }

  private dropFirst(): void {
    const piece = this.pieces.shift()!;
    this.first += 1;
    this.entries -= piece.count;
    this.bytes -= piece.bytes;
    this.dropped += piece.count;
  }
}

/** What the handler of a task has said. `changes` counts the writes. */
export interface RecordedNotes {
  progress: string | undefined;
  readonly log: NoteList;
  readonly chunk: NoteList;
  changes: number;
}

/** As an inspector sees it. */
export const storedNotesOf = (notes: RecordedNotes | undefined): SaidNotes | undefined =>
  notes && {
    progress: notes.progress,
    log: notes.log.texts(),
    logDropped: notes.log.head.dropped,
    chunks: notes.chunk.texts(SHOWN_CHUNK_BYTES),
  };

/** As those see it who follow the task. */
export const headsOf = (notes: RecordedNotes | undefined): NoteHeads | undefined =>
  notes && { progress: notes.progress, log: notes.log.head, chunk: notes.chunk.head };

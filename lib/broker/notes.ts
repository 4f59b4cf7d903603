import type { Lease } from './consumer.js';
import type { TaskPlace } from './task-place.js';

/**
 * What a handler says while it runs: its progress, lines of a log, chunks for those who follow. Kept in the hash of the task, so that
 * it goes with the task. Lines and chunks are stored in pieces, which have numbers from 0 on: each is the JSON of some entries.
 */
export const NOTE_KINDS = ['log', 'chunk'] as const;
export type NoteKind = (typeof NOTE_KINDS)[number];

/** What a task keeps of a kind. Above that the oldest pieces are dropped, but not the newest. */
export interface NoteLimit {
  readonly entries: number;
  readonly bytes: number;
}

export const NOTE_LIMITS: Readonly<Record<NoteKind, NoteLimit>> = {
  log: { entries: 1_000, bytes: 65_536 },
  chunk: { entries: 10_000, bytes: 262_144 },
};

/** Some entries of a kind, to be stored together. */
export interface NotePiece {
  readonly kind: NoteKind;
  readonly count: number;
  /** A JSON array. */
  readonly text: string;
  /** How many entries before these were left out. */
  readonly leftOut: number;
}

export interface Notes {
  /** JSON; `undefined`: as it was. */
  readonly progress: string | undefined;
  /** Whether chunks of earlier attempts are dropped. */
  readonly fresh: boolean;
  readonly pieces: readonly NotePiece[];
}

/** What is stored of a kind: the pieces from `first` to before `next`. */
export interface NoteHead {
  readonly first: number;
  readonly next: number;
  /** How many entries are not there any more. */
  readonly dropped: number;
  /** The first piece of the last attempt that emitted chunks. */
  readonly start: number;
}

/** What is stored, but for the pieces. */
export interface NoteHeads {
  readonly progress: string | undefined;
  readonly log: NoteHead;
  readonly chunk: NoteHead;
}

/** An inspector reads so many bytes of chunks. */
export const SHOWN_CHUNK_BYTES = 65_536;

export const NO_NOTES: NoteHead = { first: 0, next: 0, dropped: 0, start: 0 };

export interface NotesRole {
  /** Stores what the handler of an active task has said. Returns `false`, without a write, when the lease is not ours any more. */
  write(lease: Lease, notes: Notes): Promise<boolean>;
  /** The texts of pieces, by their numbers; `undefined` where one is not there (any more). */
  pieces(task: TaskPlace, kind: NoteKind, numbers: readonly number[]): Promise<(string | undefined)[]>;
}

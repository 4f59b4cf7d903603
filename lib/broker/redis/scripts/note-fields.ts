import { NO_NOTES, type NoteHead, type NoteHeads, type NoteKind } from '../../notes.js';

/* Fields of the hash of a task for what its handler says: see lua/write-notes.lua. */
export const PROGRESS_FIELD = 'note:progress';

export const headField = (kind: NoteKind): string => `note:${kind}`;

export const pieceField = (kind: NoteKind, n: number): string => `note:${kind}#${n}`;

/** What a piece begins with before its JSON: how many entries it has. */
const COUNT = /^\d+ /;

export const pieceText = (stored: Buffer | null | undefined): string | undefined =>
  stored ? stored.toString().replace(COUNT, '') : undefined;

const HEAD = /^(\d+) (\d+) \d+ \d+ (\d+) (\d+)$/;

export function readHead(stored: Buffer | null | undefined): NoteHead {
  const found = stored && HEAD.exec(stored.toString());
  if (!found) return NO_NOTES;
  const [first, next, dropped, start] = found.slice(1).map(Number) as [number, number, number, number];
  return { first, next, dropped, start };
}

/** @param fields progress, and the heads of log and chunk; `undefined` when there is nothing */
export function readHeads([progress, log, chunk]: readonly (Buffer | null | undefined)[]): NoteHeads | undefined {
  if (!progress && !log && !chunk) return undefined;
  return { progress: progress?.toString(), log: readHead(log), chunk: readHead(chunk) };
}

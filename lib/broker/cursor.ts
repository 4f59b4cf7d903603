import { InvalidOptionError } from '../errors.js';
import { describe } from '../validation.js';

/*
 * Where a listing continues. A cursor is opaque to everyone above the contract: JSON in base64url,
 * with ids as base64, because ids that are no text must stay as they were.
 */

/** After the member with this score and id, which may be gone. The score as Redis spells it. */
export interface SortedPosition {
  readonly score: string;
  readonly id: Buffer;
  /** Highest score first. */
  readonly reverse: boolean;
}

/** After the first of these ids that still exists; the latest come first. */
export interface ListPosition {
  /** The position of the last one. */
  readonly seen: number;
  readonly anchors: readonly Buffer[];
}

/** Ids of one page, and of earlier ones: see {@link nextAnchors}. */
const OWN_ANCHORS = 4;
const OLD_ANCHORS = 4;

/**
 * The ids to remember after a page: its last few, then the last of each earlier page, in case a
 * whole page is gone (deleted, say) before the next one is read.
 */
export function nextAnchors(page: readonly Buffer[], before: ListPosition | undefined): Buffer[] {
  const old = before?.anchors ?? [];
  const lastOfPages = old.length > OWN_ANCHORS ? [old[0]!, ...old.slice(OWN_ANCHORS)] : old.slice(0, 1);
  return [...page.slice(-OWN_ANCHORS).toReversed(), ...lastOfPages.slice(0, OLD_ANCHORS)];
}

export const packCursor = (parts: readonly unknown[]): string =>
  Buffer.from(JSON.stringify(parts)).toString('base64url');

/** The first letter of a cursor of a sorted list: lowest score first, or highest score first. */
const FORWARD = 's';
const BACKWARD = 'r';

export const encodeSorted = ({ score, id, reverse }: SortedPosition): string =>
  packCursor([reverse ? BACKWARD : FORWARD, score, id.toString('base64')]);

export const encodeList = ({ seen, anchors }: ListPosition): string =>
  packCursor(['l', seen, ...anchors.map((id) => id.toString('base64'))]);

/** @throws InvalidOptionError */
export function decodeSorted(cursor: string | undefined): SortedPosition | undefined {
  if (cursor === undefined) return undefined;
  const [kind, score, id] = unpackCursor(cursor);
  const known = kind === FORWARD || kind === BACKWARD;
  if (!known || typeof score !== 'string' || !SCORE.test(score) || typeof id !== 'string') throw foreignCursor(cursor);
  return { score, id: Buffer.from(id, 'base64'), reverse: kind === BACKWARD };
}

/**
 * The direction of a sorted list: that of its cursor, if any. @throws InvalidOptionError when
 * another one is requested
 */
export function directionOf(position: SortedPosition | undefined, reverse: boolean | undefined): boolean {
  if (!position) return reverse ?? false;
  if (reverse === undefined || reverse === position.reverse) return position.reverse;
  throw new InvalidOptionError(
    'this cursor goes in the other direction; leave the direction out, or begin without the cursor',
  );
}

/** @throws InvalidOptionError */
export function requireForward(state: string, reverse: boolean | undefined): void {
  if (reverse !== true) return;
  throw new InvalidOptionError(`tasks that are ${state} are listed in their own order only, not from the end`);
}

/** @throws InvalidOptionError */
export function decodeList(cursor: string | undefined): ListPosition | undefined {
  if (cursor === undefined) return undefined;
  const [kind, seen, ...anchors] = unpackCursor(cursor);
  const usable = kind === 'l' && Number.isSafeInteger(seen) && (seen as number) >= 0;
  if (!usable || anchors.length > OWN_ANCHORS + OLD_ANCHORS || !anchors.every((id) => typeof id === 'string')) {
    throw foreignCursor(cursor);
  }
  return { seen: seen as number, anchors: anchors.map((id) => Buffer.from(id as string, 'base64')) };
}

const SCORE = /^-?(inf|\d+(\.\d+)?(e[+-]?\d+)?)$/;

/** @throws InvalidOptionError */
export function unpackCursor(cursor: string): unknown[] {
  try {
    const bytes = Buffer.from(cursor, 'base64url');
    const parts: unknown = JSON.parse(bytes.toString());
    // Node passes over characters that are none of base64url: one cursor has one spelling.
    if (Array.isArray(parts) && bytes.toString('base64url') === cursor) return parts;
  } catch {
    // Said below, as of everything else that is no cursor.
  }
  throw foreignCursor(cursor);
}

export const foreignCursor = (cursor: string): InvalidOptionError =>
  new InvalidOptionError(`${describe(cursor)} is not a cursor of this list; pass what the page before gave`);

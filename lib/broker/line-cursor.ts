import { foreignCursor, packCursor, unpackCursor } from './cursor.js';

/** Where a listing of the lines of a fair queue continues, as list-lines.lua returns it. */
export interface LinePosition {
  readonly source: string;
  readonly scan: string;
  readonly ends: string;
  readonly done: string;
  readonly key: string;
  readonly score: string;
}

/** The first letter of such a cursor. */
const LINES = 'f';

const SOURCES = ['ring', 'shares', 'key'];
const DONE = ['', 'some', 'all'];

/** Where the lines begin, or the one of a key. */
export const firstLine = (key: string | undefined): LinePosition => ({
  source: key === undefined ? 'ring' : 'key',
  scan: '0',
  ends: '',
  done: '',
  key: key ?? '',
  score: '',
});

export const encodeLine = ({ source, scan, ends, done, key, score }: LinePosition): string =>
  packCursor([LINES, source, scan, ends, done, key, score]);

/** `undefined` for a cursor of another kind. @param only the key whose line is listed. @throws InvalidOptionError */
export function decodeLine(cursor: string | undefined, only: string | undefined): LinePosition | undefined {
  if (cursor === undefined) return undefined;
  const [kind, ...parts] = unpackCursor(cursor);
  if (kind !== LINES) return undefined;
  const [source, scan, ends, done, key, score] = parts.map(String) as [string, string, string, string, string, string];
  const known = parts.length === 6 && parts.every((part) => typeof part === 'string');
  const usable = SOURCES.includes(source) && DONE.includes(done) && /^\d+$/.test(scan) && /^\d*$/.test(ends);
  const isOfKey = source === 'key' ? key === only : only === undefined;
  if (!known || !usable || !isOfKey || !/^(\d+(\.\d+)?(e\+?\d+)?)?$/.test(score)) throw foreignCursor(cursor);
  return { source, scan, ends, done, key, score };
}

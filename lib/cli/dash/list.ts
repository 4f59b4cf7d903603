/** Where somebody is in a list whose rows come and go. */
export interface List {
  /** Of the row that is selected, or was until it went. */
  readonly index: number;
  /** The first row on the screen. */
  readonly top: number;
  /** Of the selected row; `undefined` until there are rows. */
  readonly id: string | undefined;
  /** The selected row has gone. Nothing is selected until somebody moves: what has taken its place was never chosen. */
  readonly lost: boolean;
}

export const AT_START: List = { index: 0, top: 0, id: undefined, lost: false };
/** For rows that are still to come: the last of them. */
export const AT_END: List = { ...AT_START, index: Number.MAX_SAFE_INTEGER };

/** The id that an action is meant for. */
export const selectedOf = (list: List): string | undefined => (list.lost ? undefined : list.id);

/**
 * The list with the rows as they are now: the selection stays with its row.
 *
 * @param height rows on the screen
 * @param actedOn rows that have gone because of what somebody did here: the next one is selected
 */
export function follow(list: List, ids: readonly string[], height: number, actedOn: ReadonlySet<string>): List {
  if (ids.length === 0) return { ...AT_START, id: list.id, lost: list.id !== undefined };
  const found = list.id === undefined ? -1 : ids.indexOf(list.id);
  if (found >= 0) return scroll({ ...list, index: found, lost: false }, ids.length, height);
  const index = clamp(list.index, ids.length);
  const lost = list.id !== undefined && !actedOn.has(list.id);
  return scroll({ ...list, index, lost, id: lost ? list.id : ids[index] }, ids.length, height);
}

/** The row at `index`, or the nearest there is, selected and on the screen. */
export function select(list: List, ids: readonly string[], height: number, index: number): List {
  if (ids.length === 0) return list;
  const nearest = clamp(index, ids.length);
  return scroll({ ...list, index: nearest, id: ids[nearest], lost: false }, ids.length, height);
}

function scroll(list: List, count: number, height: number): List {
  const last = Math.max(0, count - height);
  const top = Math.min(Math.max(list.top, list.index - height + 1), list.index, last);
  return { ...list, top: Math.max(0, top) };
}

const clamp = (index: number, count: number): number => Math.min(Math.max(index, 0), count - 1);

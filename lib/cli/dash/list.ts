/** The position in a list whose rows come and go. */
export interface List {
  /** The index of the selected row, or of the row that was selected until it disappeared. */
  readonly index: number;
  /** The first row on the screen. */
  readonly top: number;
  /** The id of the selected row; `undefined` until there are rows. */
  readonly id: string | undefined;
  /** The selected row disappeared. Nothing is selected until the user moves: nobody chose the row that took its place. */
  readonly lost: boolean;
}

export const AT_START: List = { index: 0, top: 0, id: undefined, lost: false };
/** Selects the last of the rows that are still to be read. */
export const AT_END: List = { ...AT_START, index: Number.MAX_SAFE_INTEGER };

/** The id that an action applies to. */
export const selectedOf = (list: List): string | undefined => (list.lost ? undefined : list.id);

/**
 * The list for new rows: the selection stays with its row.
 *
 * @param height rows on the screen
 * @param actedOn rows that disappear because of an action here: the next row is selected
 */
export function follow(list: List, ids: readonly string[], height: number, actedOn: ReadonlySet<string>): List {
  if (ids.length === 0) return { ...AT_START, id: list.id, lost: list.id !== undefined };
  const found = list.id === undefined ? -1 : ids.indexOf(list.id);
  if (found >= 0) return scroll({ ...list, index: found, lost: false }, ids.length, height);
  const index = clamp(list.index, ids.length);
  const lost = list.id !== undefined && !actedOn.has(list.id);
  return scroll({ ...list, index, lost, id: lost ? list.id : ids[index] }, ids.length, height);
}

/** Selects the row at `index`, or the nearest one, and scrolls to it. */
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

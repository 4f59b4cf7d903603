import { cut, padEnd, padStart, plain, widthOf } from '../output/text.js';
import type { Line, Segment, Style } from './styled-line.js';

export interface GridColumn<Row> {
  readonly title: string;
  readonly cell: (row: Row) => string;
  readonly style?: (row: Row) => Style | undefined;
  /** Aligned right, as numbers are. */
  readonly right?: boolean;
  /** The least width to which the column may be cut; without it the column is shown whole or not at all. */
  readonly least?: number;
  /** Without room the column with the highest rank is left out first. */
  readonly rank: number;
}

interface Track<Row> {
  readonly column: GridColumn<Row>;
  readonly cells: readonly string[];
  readonly natural: number;
  width: number;
}

const COLUMN_GAP_WIDTH = 2;

/** A head and aligned rows that fit into `width`: columns are cut, or left out by rank. */
export function layOut<Row>(
  columns: readonly GridColumn<Row>[],
  rows: readonly Row[],
  width: number,
): { readonly head: readonly Segment[]; readonly rows: readonly (readonly Segment[])[] } {
  const tracks = fit(
    columns.map((column) => measure(column, rows)),
    width,
  );
  const head = tracks.map(({ column, width }, index) =>
    pad({ text: column.title, style: 'head' }, column, width, index),
  );
  const lines = rows.map((row, number) =>
    tracks.map(({ column, cells, width }, index) =>
      pad({ text: cells[number]!, style: column.style?.(row) }, column, width, index),
    ),
  );
  return { head, rows: lines };
}

function measure<Row>(column: GridColumn<Row>, rows: readonly Row[]): Track<Row> {
  const cells = rows.map((row) => plain(column.cell(row)));
  const natural = Math.max(widthOf(column.title), ...cells.map(widthOf));
  return { column, cells, natural, width: Math.min(natural, column.least ?? natural) };
}

function fit<Row>(all: Track<Row>[], width: number): Track<Row>[] {
  let tracks = all;
  while (tracks.length > 1 && totalOf(tracks) > width) {
    const last = tracks.reduce((a, b) => (b.column.rank >= a.column.rank ? b : a));
    tracks = tracks.filter((track) => track !== last);
  }
  let spare = width - totalOf(tracks);
  if (spare < 0) tracks[0]!.width = width;
  for (const track of [...tracks].sort((a, b) => a.column.rank - b.column.rank)) {
    const more = Math.min(track.natural - track.width, Math.max(0, spare));
    track.width += more;
    spare -= more;
  }
  return tracks;
}

const totalOf = <Row>(tracks: readonly Track<Row>[]): number =>
  tracks.reduce((sum, { width }) => sum + width, COLUMN_GAP_WIDTH * (tracks.length - 1));

function pad<Row>({ text, style }: Segment, { right }: GridColumn<Row>, width: number, index: number): Segment {
  const short = cut(text, width);
  const padded = right ? padStart(short, width) : padEnd(short, width);
  return { text: index === 0 ? padded : ' '.repeat(COLUMN_GAP_WIDTH) + padded, style };
}

/** A row after two cells that show whether it is selected and marked. */
export function rowLine(segments: readonly Segment[], selected: boolean, marked: boolean): Line {
  const gutter = `${selected ? '>' : ' '}${marked ? '*' : ' '}`;
  return { segments: [{ text: gutter, style: marked ? 'warning' : undefined }, ...segments], inverted: selected };
}

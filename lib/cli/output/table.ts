import { cut, padEnd, padStart, plain, widthOf } from './text.js';

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => string | number;
  /** Whether it may be cut on a narrow screen. Ids and names must not be. */
  readonly shrinks?: boolean;
}

export interface Screen {
  /** Columns of the terminal; `Infinity` when output is not a terminal. */
  readonly width: number;
  readonly bold: (text: string) => string;
}

const COLUMN_GAP = '  ';
/** A column is not cut to less. */
const MIN_COLUMN_WIDTH = 12;

interface Layout {
  readonly title: string;
  readonly cells: readonly string[];
  readonly right: boolean;
  readonly shrinks: boolean;
  width: number;
}

/** Lines of a table with numbers aligned right; on a screen too narrow for it, blocks of `title: value`. */
export function renderTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[], screen: Screen): string[] {
  const layouts = columns.map((column) => layOut(column, rows));
  if (!fit(layouts, screen.width)) return renderBlocks(layouts, rows.length, screen);
  const head = screen.bold(line(layouts, ({ title }) => title));
  return [head, ...rows.map((_, index) => line(layouts, ({ cells }) => cells[index]!))];
}

function layOut<Row>({ title, cell, shrinks = false }: Column<Row>, rows: readonly Row[]): Layout {
  const values = rows.map(cell);
  const cells = values.map((value) => plain(String(value)));
  const width = cells.reduce((widest, text) => Math.max(widest, widthOf(text)), widthOf(title));
  return {
    title,
    cells,
    width,
    shrinks,
    right: values.length > 0 && values.every((value) => typeof value === 'number'),
  };
}

/** Narrows the widest columns that may shrink until a line fits; returns `false` if that is not enough. */
function fit(layouts: readonly Layout[], width: number): boolean {
  const gaps = COLUMN_GAP.length * (layouts.length - 1);
  const shrinking = layouts.filter(({ shrinks }) => shrinks);
  for (const layout of shrinking) layout.width = Math.min(layout.width, Math.max(width, MIN_COLUMN_WIDTH));
  for (let excess = layouts.reduce((sum, layout) => sum + layout.width, gaps) - width; excess > 0; excess--) {
    const widest = shrinking.reduce<Layout | undefined>((a, b) => (a && a.width >= b.width ? a : b), undefined);
    if (!widest || widest.width <= MIN_COLUMN_WIDTH) return false;
    widest.width--;
  }
  return true;
}

function line(layouts: readonly Layout[], textOf: (layout: Layout) => string): string {
  const cells = layouts.map((layout) => {
    const text = cut(textOf(layout), layout.width);
    return layout.right ? padStart(text, layout.width) : padEnd(text, layout.width);
  });
  return cells.join(COLUMN_GAP).trimEnd();
}

function renderBlocks(layouts: readonly Layout[], count: number, screen: Screen): string[] {
  const blocks = Array.from({ length: count }, (_, index) =>
    renderFields(
      layouts.map(({ title, cells }) => [title, cells[index]!]),
      screen,
    ),
  );
  return blocks.flatMap((lines, index) => (index === 0 ? lines : ['', ...lines]));
}

/** Lines of `title: value` with the values aligned. */
export function renderFields(
  fields: readonly (readonly [title: string, value: string | number])[],
  screen: Screen,
): string[] {
  const widest = fields.reduce((width, [title]) => Math.max(width, widthOf(title)), 0);
  return fields.map(([title, value]) => {
    const head = padEnd(`${title}:`, widest + 2);
    return `${screen.bold(head)}${plain(String(value))}`.trimEnd();
  });
}

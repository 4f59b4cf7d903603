import type { SingleBar as SingleBarType } from 'cli-progress';
import type { BulkOptions } from '../../inspector/bulk.js';
import { columnsOf, isScreen, type Terminal } from './terminal.js';
import { cut, plain } from './text.js';

type Report = NonNullable<BulkOptions['onProgress']>;

/** The columns of ` [`, `] 100% ` and one that stays empty. */
const COLUMNS_BESIDE_BAR = 11;
const MAX_BAR_COLUMNS = 40;

/** Shows a bar on standard error while the work reports progress; nothing if that is not a terminal. */
export async function withProgress<T>(
  terminal: Terminal,
  label: string,
  work: (report?: Report) => Promise<T>,
): Promise<T> {
  const { stderr } = terminal;
  if (!isScreen(stderr, terminal)) return work();
  const { SingleBar } = await import('cli-progress');
  let bar: SingleBarType | undefined;
  const begin = (total: number): SingleBarType => {
    const room = columnsOf(stderr, 80) - COLUMNS_BESIDE_BAR - 2 * String(total).length;
    const barsize = Math.max(1, Math.min(MAX_BAR_COLUMNS, Math.floor(room / 2)));
    const format = '{label} [{bar}] {percentage}% {value}/{total}';
    const made = new SingleBar({ stream: stderr, barsize, format, hideCursor: true, emptyOnZero: true });
    made.start(total, 0, { label: cut(plain(label), Math.max(1, room - barsize)) });
    return made;
  };
  try {
    return await work(({ done, total }) => (bar ??= begin(total)).update(done));
  } finally {
    bar?.stop();
  }
}

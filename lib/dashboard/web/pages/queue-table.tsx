import { useMemo, useRef, useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import { type UnreadableQueue, isUnreadable, type Queue, type QueueRow, type State, STATES } from '../api/types.js';
import { live, type Moment } from '../live/live.js';
import { perform } from '../live/perform.js';
import { rates, recent } from '../live/series.js';
import { useMay } from '../state/config.js';
import { favourites, toggleFavourite } from '../state/favourites.js';
import { paths } from '../state/router.js';
import { useStore } from '../store.js';
import { bytes, compact, count, duration, orUnknown, percent, plural, rate } from '../text/format.js';
import { visible } from '../text/visible.js';
import { Button } from '../ui/button.js';
import { Spark } from '../ui/spark.js';
import { ACTIONS_HEAD, type Head, TableHead } from '../ui/table-head.js';
import { Text } from '../ui/text.js';
import { LATE_AFTER_MS, type Trouble } from './queue-health.js';
import {
  columnName,
  COLUMNS,
  keepOrder,
  pressed,
  printSorting,
  type Sorting,
  sortQueues,
  type Column,
  STATE_COLUMNS,
  statesOf,
} from './queue-order.js';

/** The states of a queue's tasks as one thin bar. */
function StateBar({ row }: { row: Queue }) {
  const parts = STATES.filter((state) => row[state] > 0);
  return (
    <span class="mix" aria-hidden="true">
      {parts.map((state) => (
        <span key={state} class={`color-${state}`} style={{ flexGrow: row[state] }} />
      ))}
    </span>
  );
}

export function PauseButton({ row, small = true }: { row: Queue; small?: boolean }) {
  const name = visible(row.queue);
  const press = (): Promise<boolean> =>
    row.paused
      ? perform(`Queue “${name}” is resumed.`, () => api.resume(row.queue))
      : perform(`Queue “${name}” is paused.`, () => api.pause(row.queue));
  const does = row.paused ? 'Resume' : 'Pause';
  return (
    <Button small={small} onClick={press} label={`${does} queue ${name}`}>
      {does}
    </Button>
  );
}

function Throughput({ queue, moments }: { queue: string; moments: readonly Moment[] }) {
  const values = useMemo(() => rates(moments, (sample) => sample.processed_total, queue), [moments, queue]);
  return (
    <td class="number throughput" data-label="tasks/s">
      <Spark times={moments.map(({ t }) => t)} values={values} color="accent" />
      {orUnknown(recent(values), rate)}
    </td>
  );
}

function Counts({ row, states }: { row: Queue; states: readonly State[] }) {
  return states.map((state) => (
    <td key={state} class="number" data-label={state}>
      <a class={row[state] === 0 ? 'none' : ''} href={paths.list(row.queue, state)} title={count(row[state])}>
        {compact(row[state])}
        <span class="sr-only"> {state}</span>
      </a>
    </td>
  ));
}

const isState = (column: Column): column is Column & State => STATE_COLUMNS.some((state) => state === column);

/**
 * How long the oldest pending task has waited; undefined if there is none, or if it is not known.
 */
export const oldest = ({ pending, oldest_pending_ms }: Queue): string | undefined =>
  pending > 0 && oldest_pending_ms > 0 ? duration(oldest_pending_ms / 1000) : undefined;

function Star({ queue }: { queue: string }) {
  const chosen = useStore(favourites, (names) => names.has(queue));
  return (
    <button
      type="button"
      class="star"
      aria-pressed={chosen}
      aria-label={`Favourite: ${visible(queue)}`}
      onClick={() => toggleFavourite(queue)}
    >
      {chosen ? '★' : '☆'}
    </button>
  );
}

const Name = ({ queue }: { queue: string }) => (
  <>
    <Star queue={queue} />
    <a href={paths.queue(queue)} data-open>
      <Text value={queue} titled class="cut" />
    </a>
  </>
);

interface RowProps {
  row: Queue;
  moments: readonly Moment[];
  troubles: readonly Trouble[];
  /** Those with a column. */
  states: readonly State[];
}

function ReadableRow({ row, moments, troubles, states }: RowProps) {
  const may = useMay();
  const late = row.oldest_pending_ms > LATE_AFTER_MS;
  return (
    <tr data-row>
      <th scope="row" class="name">
        <Name queue={row.queue} />
        {troubles.map(({ name, text }) => (
          <span key={name} class={name === 'failing' ? 'flag bad' : 'flag'} title={text}>
            {name}
          </span>
        ))}
        <StateBar row={row} />
      </th>
      <Throughput queue={row.queue} moments={moments} />
      <Counts row={row} states={states} />
      <td class={`number${late ? ' warn' : ''}`} data-label="oldest pending">
        {oldest(row) ?? <span class="none">–</span>}
      </td>
      <td class="number" data-label="failed today" title={`${count(row.failed)} of ${count(row.processed)}`}>
        <a class={row.failed === 0 ? 'none' : ''} href={paths.queue(row.queue)}>
          {percent(row.failed, row.processed)}
          <span class="sr-only"> failed today: what fails</span>
        </a>
      </td>
      <td class="number" data-label="memory">
        {bytes(row.memory_usage_bytes)}
      </td>
      {may('act') && <td class="row-actions">{may('act', row.queue) && <PauseButton row={row} />}</td>}
    </tr>
  );
}

const UnreadableRow = ({ row, columns }: { row: UnreadableQueue; columns: number }) => (
  <tr data-row class="bad-row">
    <th scope="row" class="name">
      <Name queue={row.queue} />
      <span class="flag bad">cannot be read</span>
    </th>
    <td colSpan={columns - 1} class="wrap">
      <Text value={row.error} />
    </td>
  </tr>
);

/**
 * How many rows are drawn at first, and added later. Every row changes with every sample, so
 * thousands would keep the browser busy.
 */
const ROWS_PER_CHUNK = 200;

interface QueueTableProps {
  rows: readonly QueueRow[];
  troubles: ReadonlyMap<string, readonly Trouble[]>;
  sorting: Sorting;
  onSort: (sorting: Sorting) => void;
}

/**
 * Sorts the rows, but leaves them where they are while the pointer or the focus is among them: a
 * row must not move from under it.
 */
function useSorted(props: QueueTableProps, body: { current: HTMLElement | null }): QueueRow[] {
  const { rows, troubles, sorting } = props;
  const moments = useStore(live, ({ moments }) => moments);
  const chosen = useStore(favourites);
  const last = useRef<{ by?: string; names: readonly string[] }>({ names: [] });
  const by = printSorting(sorting);
  const held = last.current.by === by && body.current?.matches(':hover, :focus-within');
  const sorted = held
    ? keepOrder(rows, last.current.names)
    : sortQueues(rows, sorting, { moments, favourites: chosen, troubles });
  last.current = { by, names: sorted.map(({ queue }) => queue) };
  return sorted;
}

function useHeads({ sorting, onSort }: QueueTableProps, states: readonly State[]): Head[] {
  const may = useMay();
  const columns = COLUMNS.filter((column) => !isState(column) || states.includes(column));
  const heads = columns.map((column): Head => ({
    name: columnName(column),
    number: column !== 'queue',
    sorted: sorting.column === column ? (sorting.descending ? 'descending' : 'ascending') : 'none',
    onSort: () => onSort(pressed(column, sorting)),
  }));
  return may('act') ? [...heads, ACTIONS_HEAD] : heads;
}

export function QueueTable(props: QueueTableProps) {
  const [shown, setShown] = useState(ROWS_PER_CHUNK);
  const moments = useStore(live, ({ moments }) => moments);
  const body = useRef<HTMLTableSectionElement>(null);
  const rows = useSorted(props, body);
  const states = statesOf(props.rows, props.sorting);
  const heads = useHeads(props, states);
  return (
    <div class="table-card">
      <table class="grid-table cards queues">
        <TableHead heads={heads} />
        <tbody ref={body}>
          {rows
            .slice(0, shown)
            .map((row) =>
              isUnreadable(row) ? (
                <UnreadableRow key={row.queue} row={row} columns={heads.length} />
              ) : (
                <ReadableRow
                  key={row.queue}
                  row={row}
                  moments={moments}
                  states={states}
                  troubles={props.troubles.get(row.queue) ?? []}
                />
              ),
            )}
        </tbody>
      </table>
      {rows.length > shown && (
        <button type="button" class="button plain small" onClick={() => setShown(shown + ROWS_PER_CHUNK)}>
          More of {plural(rows.length, 'queue')}
        </button>
      )}
    </div>
  );
}

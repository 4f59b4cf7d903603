import { useMemo, useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import { type UnreadableQueue, isUnreadable, type Queue, type QueueRow, STATES, type State } from '../api/types.js';
import { live, type Moment } from '../live/live.js';
import { perform } from '../live/perform.js';
import { rates, recent } from '../live/series.js';
import { useMay } from '../state/config.js';
import { paths } from '../state/router.js';
import { useStore } from '../store.js';
import { bytes, compact, count, duration, orUnknown, percent, plural, rate } from '../text/format.js';
import { visible } from '../text/visible.js';
import { Button } from '../ui/button.js';
import { Spark } from '../ui/spark.js';
import { ACTIONS_HEAD, numberHeads, TableHead } from '../ui/table-head.js';
import { Text } from '../ui/text.js';

const COLUMNS: readonly State[] = [
  'pending',
  'active',
  'aggregating',
  'waiting',
  'held',
  'scheduled',
  'retry',
  'archived',
  'completed',
];

const NUMBER_HEADS = [
  'tasks/s',
  ...COLUMNS.map((state) => (state === 'aggregating' ? 'grouped' : state)),
  'oldest',
  'failed',
  'memory',
];

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

function Counts({ row }: { row: Queue }) {
  return COLUMNS.map((state) => (
    <td key={state} class="number" data-label={state}>
      <a class={row[state] === 0 ? 'none' : ''} href={paths.list(row.queue, state)} title={count(row[state])}>
        {compact(row[state])}
        <span class="sr-only"> {state}</span>
      </a>
    </td>
  ));
}

/**
 * How long the oldest pending task has waited; undefined if there is none, or if it is not known.
 */
export const oldest = ({ pending, oldest_pending_ms }: Queue): string | undefined =>
  pending > 0 && oldest_pending_ms > 0 ? duration(oldest_pending_ms / 1000) : undefined;

function ReadableRow({ row, moments }: { row: Queue; moments: readonly Moment[] }) {
  const may = useMay();
  const late = row.oldest_pending_ms > 60_000;
  return (
    <tr data-row>
      <th scope="row" class="name">
        <a href={paths.queue(row.queue)} data-open>
          <Text value={row.queue} titled class="cut" />
        </a>
        {row.paused && <span class="flag">paused</span>}
        <StateBar row={row} />
      </th>
      <Throughput queue={row.queue} moments={moments} />
      <Counts row={row} />
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
      <a href={paths.queue(row.queue)} data-open>
        <Text value={row.queue} titled class="cut" />
      </a>
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

export function QueueTable({ rows }: { rows: readonly QueueRow[] }) {
  const [shown, setShown] = useState(ROWS_PER_CHUNK);
  const moments = useStore(live, ({ moments }) => moments);
  const may = useMay();
  return (
    <div class="table-card">
      <table class="grid-table cards queues">
        <TableHead heads={['queue', ...numberHeads(...NUMBER_HEADS), ...(may('act') ? [ACTIONS_HEAD] : [])]} />
        <tbody>
          {rows
            .slice(0, shown)
            .map((row) =>
              isUnreadable(row) ? (
                <UnreadableRow key={row.queue} row={row} columns={NUMBER_HEADS.length + (may('act') ? 2 : 1)} />
              ) : (
                <ReadableRow key={row.queue} row={row} moments={moments} />
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

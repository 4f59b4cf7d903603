import { useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import type { Durations as Reply } from '../api/types.js';
import { Ago } from '../live/time.js';
import { useRefreshInterval } from '../state/config.js';
import { useResource } from '../state/resource.js';
import { count, duration, percent, plural } from '../text/format.js';
import { Failure } from '../ui/placeholder.js';
import { numberHeads, TableHead } from '../ui/table-head.js';
import { Text } from '../ui/text.js';
import { QueueLink } from './queue-link.js';

const FIRST_TYPES = 8;

const time = (milliseconds: number): string => duration(milliseconds / 1000);

function Row({ row, queue }: { row: Reply['types'][number]; queue: string | undefined }) {
  return (
    <tr>
      <th scope="row" class="task">
        <Text value={row.type} titled class="cut" />
      </th>
      {queue === undefined && (
        <td data-label="queue">
          <QueueLink name={row.queue} />
        </td>
      )}
      <td class="number" data-label="p50">
        {time(row.p50_ms)}
      </td>
      <td class="number" data-label="p95">
        {time(row.p95_ms)}
      </td>
      <td class="number" data-label="longest">
        {time(row.longest_ms)}
      </td>
      <td class="number" data-label="attempts">
        {count(row.attempts)}
      </td>
      <td class="number" data-label="failed">
        {row.failed === 0 ? <span class="none">0</span> : `${count(row.failed)} (${percent(row.failed, row.attempts)})`}
      </td>
    </tr>
  );
}

/** How long the handlers of each type take, as far as the event stream of the fleet shows. */
export function Durations({ queue }: { queue?: string }) {
  const [all, setAll] = useState(false);
  const { data, error, reload } = useResource(`durations ${queue ?? ''}`, (signal) => api.durations(queue, signal), {
    every: useRefreshInterval(5),
  });
  if (!data) return error ? <Failure error={error} retry={reload} /> : null;
  const shown = all ? data.types : data.types.slice(0, FIRST_TYPES);
  return (
    <section class="table-card durations" aria-label="Durations by type">
      <header>
        <h2>Durations by type</h2>
        <p class="faint">
          {data.from === null ? (
            'Nothing is known: servers of ours tell it when their option eventStream is on.'
          ) : (
            <>
              of the last {plural(data.attempts, 'attempt')} in the event stream, the oldest <Ago at={data.from} />; the
              slowest first
            </>
          )}
        </p>
      </header>
      {shown.length > 0 && (
        <table class="grid-table cards tasks">
          <TableHead
            heads={[
              'type',
              ...(queue === undefined ? ['queue'] : []),
              ...numberHeads('p50', 'p95', 'longest', 'attempts', 'failed'),
            ]}
          />
          <tbody>
            {shown.map((row) => (
              <Row key={`${row.queue} ${row.type}`} row={row} queue={queue} />
            ))}
          </tbody>
        </table>
      )}
      {shown.length < data.types.length && (
        <p class="more-rows">
          <button type="button" class="button plain small" onClick={() => setAll(true)}>
            All {plural(data.types.length, 'type')}
          </button>
        </p>
      )}
    </section>
  );
}

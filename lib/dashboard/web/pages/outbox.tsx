import { useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import type { Outbox, OutboxSender, PoisonedRow } from '../api/outbox-types.js';
import { perform } from '../live/perform.js';
import { useMay, useRefreshInterval } from '../state/config.js';
import { useResource } from '../state/resource.js';
import { count, duration } from '../text/format.js';
import { Button } from '../ui/button.js';
import { FormDialog } from '../ui/dialog.js';
import { Failure, Loading } from '../ui/placeholder.js';
import { Stats } from '../ui/stats.js';
import { ACTIONS_HEAD, numberHeads, TableHead } from '../ui/table-head.js';
import { Text } from '../ui/text.js';
import { Page } from './page.js';
import { QueueLink } from './queue-link.js';

const since = (milliseconds: number): string => duration(milliseconds / 1000);

const statsOf = ({ fresh, taken, poisoned, oldest_ms }: Outbox): [string, string][] => [
  ['waiting', count(fresh)],
  ['under way', count(taken)],
  ['oldest', oldest_ms === 0 ? '–' : since(oldest_ms)],
  ['poisoned', count(poisoned)],
];

function Senders({ senders }: { senders: readonly OutboxSender[] }) {
  return (
    <section aria-label="Relays">
      <h2>Relays</h2>
      {senders.length === 0 ? (
        <p class="faint">No relay has run yet.</p>
      ) : (
        <div class="table-card">
          <table class="grid-table cards tasks">
            <TableHead heads={['sender', 'relay', ...numberHeads('under way', 'lease')]} />
            <tbody>
              {senders.map(({ id, owner, taken, lease_ms }) => (
                <tr key={id}>
                  <th scope="row" class="task">
                    <Text value={id} titled class="cut mono id" />
                  </th>
                  <td data-label="relay" class="wide">
                    {owner === null ? (
                      <span class="none">none</span>
                    ) : (
                      <Text value={owner} titled class="cut mono id" />
                    )}
                  </td>
                  <td class="number" data-label="under way">
                    {count(taken)}
                  </td>
                  <td class="number" data-label="lease">
                    {lease_ms === 0 ? 'over' : since(lease_ms)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Actions({ row, reload }: { row: PoisonedRow; reload: () => void }) {
  const may = useMay();
  const [asks, setAsks] = useState(false);
  const retry = async (): Promise<void> => {
    await perform(`Row ${row.row} is tried again.`, () => api.retryRow(row.row));
    reload();
  };
  const remove = async (): Promise<void> => {
    await api.deleteRow(row.row);
    reload();
  };
  return (
    <>
      {may('act', row.queue) && (
        <Button small onClick={retry} label={`Try again: row ${row.row}`}>
          Try again
        </Button>
      )}
      {may('destroy', row.queue) && (
        <Button small kind="danger" onClick={() => setAsks(true)} label={`Delete: row ${row.row}`}>
          Delete
        </Button>
      )}
      {asks && (
        <FormDialog
          title={`Delete row ${row.row}?`}
          does="Delete"
          danger
          onSubmit={remove}
          onClose={() => setAsks(false)}
        >
          <p>Its task is lost. This cannot be undone.</p>
        </FormDialog>
      )}
    </>
  );
}

function Poisoned() {
  const may = useMay();
  const [after, setAfter] = useState(0);
  const { data, error, reload } = useResource(`poisoned ${after}`, (signal) => api.poisoned({ after }, signal), {
    every: useRefreshInterval(2.5),
  });
  const rows = data?.rows ?? [];
  const next = data?.next ?? null;
  return (
    <section aria-label="Poisoned rows">
      <h2>Poisoned rows</h2>
      {!data && (error ? <Failure error={error} retry={reload} /> : <Loading />)}
      {data && rows.length === 0 && <p class="faint">No row is poisoned.</p>}
      {rows.length > 0 && (
        <div class="table-card">
          <table class="grid-table cards tasks">
            <TableHead
              heads={['task', 'queue', 'error', ...numberHeads('age'), ...(may('act') ? [ACTIONS_HEAD] : [])]}
            />
            <tbody>
              {rows.map((row) => (
                <tr key={row.row} data-row tabIndex={-1}>
                  <th scope="row" class="task">
                    <Text value={row.type} titled class="cut" />
                    <Text value={row.task_id} titled class="cut mono id" />
                  </th>
                  <td data-label="queue">
                    <QueueLink name={row.queue} />
                  </td>
                  <td data-label="error" class="wide">
                    <Text value={row.error} class="wrap" />
                  </td>
                  <td class="number" data-label="age">
                    {since(row.age_ms)}
                  </td>
                  {may('act') && (
                    <td class="row-actions">
                      <Actions row={row} reload={reload} />
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {after > 0 && <Button onClick={() => setAfter(0)}>First page</Button>}
      {next !== null && <Button onClick={() => setAfter(next)}>Next page</Button>}
    </section>
  );
}

/** Rows of the outbox that Redis does not have, the relays, and rows that somebody must look at. */
export function OutboxPage() {
  const { data, error, reload } = useResource('outbox', (signal) => api.outbox(signal), {
    every: useRefreshInterval(1),
  });
  if (!data) return <Page title="Outbox">{error ? <Failure error={error} retry={reload} /> : <Loading />}</Page>;
  return (
    <Page title="Outbox">
      {error && <Failure error={error} retry={reload} />}
      <Stats stats={statsOf(data)} />
      <Poisoned />
      <Senders senders={data.senders} />
    </Page>
  );
}

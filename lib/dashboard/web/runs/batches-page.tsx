import { api } from '../api/endpoints.js';
import type { Batch } from '../api/link-types.js';
import { perform } from '../live/perform.js';
import { Ago } from '../live/time.js';
import { Page } from '../pages/page.js';
import { useMay, useRefreshInterval } from '../state/config.js';
import { useResource } from '../state/resource.js';
import { paths } from '../state/router.js';
import { count, percent } from '../text/format.js';
import { visible } from '../text/visible.js';
import { Button } from '../ui/button.js';
import { Empty, Failure, Loading } from '../ui/placeholder.js';
import { StateChip } from '../ui/state.js';
import { ACTIONS_HEAD, numberHeads, TableHead } from '../ui/table-head.js';
import { Text } from '../ui/text.js';
import { Pages, SIZE, usePage } from './pages.js';
import { QueueLink } from '../pages/queue-link.js';

/** How many members have ended, as a bar with its number. */
function Progress({ batch }: { batch: Batch }) {
  const { total, pending, name } = batch;
  const ended = total - pending;
  return (
    <span class="batch-progress">
      <progress aria-label={`Members of ${visible(name)} that have ended`} max={Math.max(total, 1)} value={ended} />
      <span class="number">{total === 0 ? '–' : percent(ended, total)}</span>
    </span>
  );
}

/** How many have failed, and the archived ones by queue. */
const Failed = ({ batch: { id, name, failed, failed_in: queues } }: { batch: Batch }) => (
  <>
    {count(failed)}
    {queues.map((queue) => (
      <div key={queue}>
        <a
          href={paths.list(queue, 'archived', { id: `${id}~` })}
          aria-label={`Archived members of ${visible(name)} in ${visible(queue)}`}
        >
          <Text value={queue} titled class="cut" />
        </a>
      </div>
    ))}
  </>
);

function Actions({ batch, reload }: { batch: Batch; reload: () => void }) {
  const may = useMay();
  const { queue, id, name, state } = batch;
  const act = async (done: string, action: () => Promise<unknown>): Promise<void> => {
    await perform(`Batch “${visible(name)}” is ${done}.`, action);
    reload();
  };
  if (state === 'open' && may('act', queue)) {
    return (
      <Button small onClick={() => act('closed', () => api.closeBatch(queue, id))} label={`Close ${visible(name)}`}>
        Close
      </Button>
    );
  }
  if (state === 'open' || state === 'closed' || !may('destroy', queue)) return null;
  return (
    <Button small onClick={() => act('deleted', () => api.deleteBatch(queue, id))} label={`Delete ${visible(name)}`}>
      Delete
    </Button>
  );
}

function Row({ batch, reload }: { batch: Batch; reload: () => void }) {
  const may = useMay();
  return (
    <tr data-row tabIndex={-1}>
      <th scope="row" class="task">
        <Text value={batch.name} titled class="cut" />
        <Text value={batch.id} titled class="cut mono id" />
      </th>
      <td data-label="state">
        <StateChip state={batch.state} />
      </td>
      <td data-label="queue">
        <QueueLink name={batch.queue} />
      </td>
      <td data-label="ended" class="wide">
        <Progress batch={batch} />
      </td>
      <td class="number" data-label="members">
        {count(batch.total)}
      </td>
      <td class="number" data-label="pending">
        {count(batch.pending)}
      </td>
      <td class="number" data-label="succeeded">
        {count(batch.succeeded)}
      </td>
      <td class="number" data-label="failed">
        <Failed batch={batch} />
      </td>
      <td class="number" data-label="opened">
        <Ago at={batch.opened_at} />
      </td>
      {may('act') && (
        <td class="row-actions">
          <Actions batch={batch} reload={reload} />
        </td>
      )}
    </tr>
  );
}

/** Batches with their progress, newest first. */
export function BatchesPage() {
  const may = useMay();
  const page = usePage();
  const { data, error, reload } = useResource(
    `batches ${page}`,
    (signal) => api.batches({ page, size: SIZE }, signal),
    {
      every: useRefreshInterval(1),
      keep: true,
    },
  );
  const batches = data?.batches ?? [];
  const numbers = numberHeads('members', 'pending', 'succeeded', 'failed', 'opened');
  return (
    <Page title="Batches">
      {!data && (error ? <Failure error={error} retry={reload} /> : <Loading />)}
      {data && batches.length === 0 && <Empty title="No batches">Batches appear here when they are opened.</Empty>}
      {batches.length > 0 && (
        <div class="table-card">
          <table class="grid-table cards tasks batches">
            <TableHead
              heads={['batch', 'state', 'queue', 'ended', ...numbers, ...(may('act') ? [ACTIONS_HEAD] : [])]}
            />
            <tbody>
              {batches.map((batch) => (
                <Row key={batch.id} batch={batch} reload={reload} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      <Pages page={page} isLast={batches.length < SIZE} to={(next) => paths.batches({ page: next })} />
    </Page>
  );
}

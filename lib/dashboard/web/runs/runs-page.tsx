import { api } from '../api/endpoints.js';
import type { WorkflowRun } from '../api/link-types.js';
import { Ago } from '../live/time.js';
import { Page } from '../pages/page.js';
import { useRefreshInterval } from '../state/config.js';
import { useResource } from '../state/resource.js';
import { paths } from '../state/router.js';
import { count } from '../text/format.js';
import { Empty, Failure, Loading } from '../ui/placeholder.js';
import { StateChip } from '../ui/state.js';
import { numberHeads, TableHead } from '../ui/table-head.js';
import { Text } from '../ui/text.js';
import { Pages, SIZE, usePage } from './pages.js';
import { QueueLink } from '../pages/queue-link.js';

function Row({ run }: { run: WorkflowRun }) {
  return (
    <tr data-row>
      <th scope="row" class="task">
        <a href={paths.workflowRun(run.queue, run.id)} data-open>
          <Text value={run.id} titled class="cut" />
        </a>
      </th>
      <td data-label="state">
        <StateChip state={run.state} />
      </td>
      <td data-label="queue">
        <QueueLink name={run.queue} />
      </td>
      <td class="number" data-label="steps">
        {count(run.steps)}
      </td>
      <td class="number" data-label="open">
        {count(run.open)}
      </td>
      <td class="number" data-label="failed">
        {count(run.failed)}
      </td>
      <td class="number" data-label="started">
        <Ago at={run.started_at} />
      </td>
      <td class="number" data-label="ended">
        <Ago at={run.ended_at} none="not yet" />
      </td>
    </tr>
  );
}

/** The runs of workflows, newest first. */
export function RunsPage() {
  const page = usePage();
  const { data, error, reload } = useResource(`runs ${page}`, (signal) => api.workflows({ page, size: SIZE }, signal), {
    every: useRefreshInterval(2.5),
    keep: true,
  });
  const runs = data?.runs ?? [];
  return (
    <Page title="Workflows">
      {!data && (error ? <Failure error={error} retry={reload} /> : <Loading />)}
      {data && runs.length === 0 && <Empty title="No runs">Runs of workflows appear here when they are started.</Empty>}
      {runs.length > 0 && (
        <div class="table-card">
          <table class="grid-table cards tasks runs">
            <TableHead
              heads={['run', 'state', 'queue', ...numberHeads('steps', 'open', 'failed', 'started', 'ended')]}
            />
            <tbody>
              {runs.map((run) => (
                <Row key={`${run.queue} ${run.id}`} run={run} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      <Pages page={page} isLast={runs.length < SIZE} to={(next) => paths.workflows({ page: next })} />
    </Page>
  );
}

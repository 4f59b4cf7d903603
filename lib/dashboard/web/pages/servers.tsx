import { useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import type { Server, Worker } from '../api/fleet-types.js';
import { Ago, Elapsed } from '../live/time.js';
import { useMay, useRefreshInterval } from '../state/config.js';
import { useResource } from '../state/resource.js';
import { paths } from '../state/router.js';
import { Cancel } from '../task/cancel.js';
import { plural } from '../text/format.js';
import { visible } from '../text/visible.js';
import { Button } from '../ui/button.js';
import { Empty, Failure, Loading } from '../ui/placeholder.js';
import { ACTIONS_HEAD, numberHeads, TableHead } from '../ui/table-head.js';
import { Text } from '../ui/text.js';
import { Page } from './page.js';
import { QueueLink } from './queue-link.js';

function WorkerRow({ worker, onCancel }: { worker: Worker; onCancel: () => void }) {
  const may = useMay();
  return (
    <tr data-row>
      <th scope="row" class="task">
        <a href={paths.task(worker.queue, worker.task_id)} data-open>
          <Text value={worker.task_type} titled class="cut" />
          <Text value={worker.task_id} titled class="cut mono id" />
        </a>
      </th>
      <td data-label="queue">
        <QueueLink name={worker.queue} />
      </td>
      <td class="number" data-label="running for">
        <Elapsed since={worker.start_time} />
      </td>
      <td class="number" data-label="deadline">
        <Ago at={worker.deadline} />
      </td>
      {may('act') && (
        <td class="row-actions">
          {may('act', worker.queue) && (
            <Button small onClick={onCancel} label={`Cancel task ${visible(worker.task_id)}`}>
              Cancel
            </Button>
          )}
        </td>
      )}
    </tr>
  );
}

function Workers({ workers, reload }: { workers: readonly Worker[]; reload: () => void }) {
  const may = useMay();
  const [asked, setAsked] = useState<Worker>();
  return (
    <>
      <table class="grid-table cards tasks workers">
        <TableHead
          heads={['task', 'queue', ...numberHeads('running for', 'deadline'), ...(may('act') ? [ACTIONS_HEAD] : [])]}
        />
        <tbody>
          {workers.map((worker) => (
            <WorkerRow key={worker.task_id} worker={worker} onCancel={() => setAsked(worker)} />
          ))}
        </tbody>
      </table>
      {asked && (
        <Cancel task={{ queue: asked.queue, id: asked.task_id }} onDone={reload} onClose={() => setAsked(undefined)} />
      )}
    </>
  );
}

function Queues({ server }: { server: Server }) {
  const queues = Object.entries(server.queue_priorities).sort((a, b) => b[1] - a[1]);
  return (
    <ul class="tags">
      {queues.map(([queue, priority]) => (
        <li key={queue}>
          <a href={paths.queue(queue)}>
            <Text value={queue} />
          </a>{' '}
          <span class="faint number">{priority}</span>
        </li>
      ))}
      {server.strict_priority_enabled && <li class="faint">strict priority</li>}
    </ul>
  );
}

function ServerCard({ server, reload }: { server: Server; reload: () => void }) {
  const workers = [...(server.active_workers ?? [])].sort((a, b) => a.start_time.localeCompare(b.start_time));
  return (
    <section class="card server" aria-label={`Server ${visible(server.host)}, ${server.pid}`}>
      <header>
        <h2>
          <Text value={server.host} /> <span class="faint">pid {server.pid}</span>
        </h2>
        <span class={server.status === 'active' ? 'chip color-active' : 'chip color-retry'}>
          <Text value={server.status} class="cut" />
        </span>
      </header>
      <div class="server-line">
        <span class="load">
          <meter min={0} max={server.concurrency} value={workers.length} aria-label="Busy slots" />
          <b class="number">
            {workers.length} of {server.concurrency}
          </b>{' '}
          busy
        </span>
        <span class="faint">
          started <Ago at={server.start_time} />
        </span>
        <Queues server={server} />
      </div>
      {workers.length > 0 && <Workers workers={workers} reload={reload} />}
    </section>
  );
}

/** The running servers and what they work on. */
export function ServersPage() {
  const { data, error, reload } = useResource('servers', (signal) => api.servers(signal), {
    every: useRefreshInterval(1),
  });
  const servers = [...(data?.servers ?? [])].sort((a, b) => a.host.localeCompare(b.host) || a.pid - b.pid);
  return (
    <Page title="Servers">
      {!data && (error ? <Failure error={error} retry={reload} /> : <Loading />)}
      {data && servers.length === 0 && (
        <Empty title="No server is running">Tasks wait until a server starts. The console runs no tasks.</Empty>
      )}
      {servers.length > 0 && <h2>{plural(servers.length, 'server')}</h2>}
      {servers.map((server) => (
        <ServerCard key={server.id} server={server} reload={reload} />
      ))}
    </Page>
  );
}

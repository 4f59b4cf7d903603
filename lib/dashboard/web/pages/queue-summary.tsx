import { ApiError } from '../api/client.js';
import { api } from '../api/endpoints.js';
import { isUnreadable, type Queue } from '../api/types.js';
import { useRefreshInterval } from '../state/config.js';
import { useResource } from '../state/resource.js';
import { paths } from '../state/router.js';
import { bytes, count, duration, percent, UNKNOWN } from '../text/format.js';
import { Failure, Loading } from '../ui/placeholder.js';
import { Text } from '../ui/text.js';
import { DaysCard, useDays } from './days-card.js';
import { Durations } from './durations.js';
import { Failures } from './failures.js';
import { LiveCharts } from './live-charts.js';
import { oldest } from './queue-table.js';
import { isServed } from './served.js';

function Stats({ row }: { row: Queue }) {
  const stats: [string, string][] = [
    ['tasks stored', count(row.size)],
    ['oldest pending', row.pending > 0 ? (oldest(row) ?? UNKNOWN) : 'none'],
    ...(row.held > 0 ? [['oldest held', duration(row.oldest_held_ms / 1000)] as [string, string]] : []),
    ['processed today', count(row.processed)],
    ['failed today', `${count(row.failed)} (${percent(row.failed, row.processed)})`],
    ['processed ever', count(row.processed_total)],
    ['failed ever', count(row.failed_total)],
    ['memory, about', bytes(row.memory_usage_bytes)],
  ];
  return (
    <dl class="stats">
      {stats.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class="number">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Groups({ queue }: { queue: string }) {
  const { data, error, reload } = useResource(`groups ${queue}`, (signal) => api.groups(queue, signal), {
    every: useRefreshInterval(2.5),
  });
  if (!data) return error ? <Failure error={error} retry={reload} /> : <Loading rows={2} />;
  const groups = data.groups ?? [];
  if (groups.length === 0) return <p class="faint">No group has tasks.</p>;
  return (
    <ul class="groups">
      {groups.map(({ group, size }) => (
        <li key={group} data-row>
          <a href={paths.list(queue, 'aggregating', { group })} data-open>
            <Text value={group} titled class="cut" />
            <span class="number">{count(size)}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

export const GroupsCard = ({ queue }: { queue: string }) => (
  <section class="card">
    <header>
      <h2>Groups</h2>
    </header>
    <Groups queue={queue} />
  </section>
);

/** Warns when no server takes tasks of the queue: otherwise its tasks look like any others. */
function Unserved({ queue }: { queue: string }) {
  const { data } = useResource('servers', (signal) => api.servers(signal), { every: useRefreshInterval(5) });
  if (!data || isServed(queue, data.servers ?? [])) return null;
  return (
    <p class="warning" role="status">
      <b>No running server takes tasks from this queue.</b> Its pending tasks wait until a server with this queue
      starts. <a href={paths.servers()}>Servers</a>
    </p>
  );
}

export function QueueSummary({ queue }: { queue: string }) {
  const days = useDays();
  const { data, error, reload } = useResource(`queue ${queue} ${days}`, (signal) => api.queue(queue, days, signal), {
    every: useRefreshInterval(2.5),
    keep: true,
  });
  if (!data) return error ? <Failure error={error} retry={reload} /> : <Loading rows={8} />;
  const { current } = data;
  if (isUnreadable(current)) return <Failure error={new ApiError(current.error, 200, 'UNREADABLE')} retry={reload} />;
  return (
    <>
      <LiveCharts queue={queue} days={data.history} />
      {current.pending + current.held > 0 && !current.paused && <Unserved queue={queue} />}
      <Stats row={current} />
      {current.retry + current.archived > 0 && <Failures queue={queue} />}
      <Durations queue={queue} />
      <div class="halves">
        <DaysCard stats={{ [queue]: data.history }} />
        <GroupsCard queue={queue} />
      </div>
    </>
  );
}

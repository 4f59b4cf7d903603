import { useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import type { RedisInfo } from '../api/fleet-types.js';
import { isUnreadable, type Queue } from '../api/types.js';
import { live } from '../live/live.js';
import { useRefreshInterval } from '../state/config.js';
import { useResource } from '../state/resource.js';
import { paths } from '../state/router.js';
import { useStore } from '../store.js';
import { bytes, count, duration, percent } from '../text/format.js';
import { Empty, Failure, Loading } from '../ui/placeholder.js';
import { Stats } from '../ui/stats.js';
import { Text } from '../ui/text.js';
import { Page } from './page.js';
import { QueueLink } from './queue-link.js';

function Numbers({ info }: { info: RedisInfo }) {
  const orNone = (value: number | null, show: (value: number) => string): string =>
    value === null ? '–' : show(value);
  const limit = info.maxmemory
    ? ` of ${bytes(info.maxmemory)} (${percent(info.used_memory ?? 0, info.maxmemory)})`
    : '';
  const stats: [string, string][] = [
    ['version', info.version ?? '–'],
    ['role', info.cluster ? 'cluster' : (info.role ?? '–')],
    ['memory', `${orNone(info.used_memory, bytes)}${limit}`],
    ['when memory is full', info.maxmemory_policy ?? '–'],
    ['clients', orNone(info.connected_clients, count)],
    ['commands per second', orNone(info.ops_per_second, count)],
    ['up for', orNone(info.uptime_seconds, duration)],
  ];
  return <Stats stats={stats} />;
}

const Warnings = ({ warnings }: { warnings: readonly string[] }) => (
  <ul class="warnings">
    {warnings.map((warning) => (
      <li key={warning} class="warning">
        <b>Warning.</b> <Text value={warning} />
      </li>
    ))}
  </ul>
);

function Memory() {
  const rows = useStore(live, ({ queues }) => queues);
  const queues = (rows ?? [])
    .filter((row): row is Queue => !isUnreadable(row))
    .sort((a, b) => b.memory_usage_bytes - a.memory_usage_bytes);
  const top = Math.max(1, ...queues.map(({ memory_usage_bytes }) => memory_usage_bytes));
  if (queues.length === 0) return null;
  return (
    <section class="card" aria-label="Memory by queue">
      <header>
        <h2>Memory by queue</h2>
        <span class="faint">estimated from samples</span>
      </header>
      <ul class="shares">
        {queues.map((row) => (
          <li key={row.queue}>
            <QueueLink name={row.queue} />
            <span class="share" aria-hidden="true">
              <span style={{ width: `${(row.memory_usage_bytes / top) * 100}%` }} />
            </span>
            <span class="number">{bytes(row.memory_usage_bytes)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Locations({ info }: { info: RedisInfo }) {
  if (!info.cluster) return null;
  return (
    <section class="card" aria-label="Cluster">
      <header>
        <h2>Cluster</h2>
      </header>
      <ul class="locations">
        {(info.queue_locations ?? []).map(({ queue, keyslot, nodes }) => (
          <li key={queue}>
            <a href={paths.queue(queue)}>
              <Text value={queue} class="wrap" />
            </a>{' '}
            <span class="faint">slot {keyslot}</span> <Text value={(nodes ?? []).join(', ')} class="wrap" />
          </li>
        ))}
      </ul>
      {info.raw_cluster_nodes && (
        <details>
          <summary>CLUSTER NODES</summary>
          <div class="scroll-x" tabIndex={0} role="region" aria-label="CLUSTER NODES">
            <pre class="info">
              <Text value={info.raw_cluster_nodes} lines />
            </pre>
          </div>
        </details>
      )}
    </section>
  );
}

function Info({ info }: { info: Readonly<Record<string, string>> }) {
  const [filter, setFilter] = useState('');
  const all = Object.entries(info).filter(([name]) => name.includes(filter.trim().toLowerCase()));
  return (
    <section class="card" aria-label="INFO">
      <header>
        <h2>INFO</h2>
        <input
          type="search"
          value={filter}
          placeholder="Filter fields"
          aria-label="Filter fields"
          data-search
          title="Key: /"
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
      </header>
      <dl class="info-grid">
        {all.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <Text value={value} class="wrap" />
            </dd>
          </div>
        ))}
      </dl>
      {all.length === 0 && <p class="faint">No field matches.</p>}
    </section>
  );
}

export function RedisPage() {
  const { data, error, reload } = useResource('redis', (signal) => api.redis(signal), {
    every: useRefreshInterval(2.5),
  });
  if (!data) return <Page title="Redis">{error ? <Failure error={error} retry={reload} /> : <Loading />}</Page>;
  const isRedis = Object.keys(data.info ?? {}).length > 0;
  return (
    <Page title="Redis" above={<Text value={data.address} />}>
      {data.warnings.length > 0 && <Warnings warnings={data.warnings} />}
      {isRedis && <Numbers info={data} />}
      <Memory />
      <Locations info={data} />
      {isRedis ? (
        <Info info={data.info} />
      ) : (
        <Empty title="No information about Redis">
          The application keeps its tasks in memory, or Redis gives no information.
        </Empty>
      )}
    </Page>
  );
}

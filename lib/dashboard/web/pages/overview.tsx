import { isUnreadable, type Queue, type QueueRow } from '../api/types.js';
import { live } from '../live/live.js';
import { replaceQuery, useRoute } from '../state/router.js';
import { useStore } from '../store.js';
import { bytes, count, percent, plural, UNKNOWN } from '../text/format.js';
import { Empty, Loading } from '../ui/placeholder.js';
import { AllDays } from './all-days.js';
import { FindTask } from './find-task.js';
import { LiveCharts } from './live-charts.js';
import { Page } from './page.js';
import { QueueTable } from './queue-table.js';

const total = (queues: readonly Queue[], pick: (queue: Queue) => number): number =>
  queues.reduce((sum, queue) => sum + pick(queue), 0);

function Totals({ rows }: { rows: readonly QueueRow[] }) {
  const queues = rows.filter((row): row is Queue => !isUnreadable(row));
  const unread = rows.length - queues.length;
  const processed = total(queues, (queue) => queue.processed);
  const failed = total(queues, (queue) => queue.failed);
  const stats: [string, string][] = [
    ['tasks stored', count(total(queues, ({ size }) => size))],
    ['pending', count(total(queues, ({ pending }) => pending))],
    ['running now', count(total(queues, ({ active }) => active))],
    ['processed today', count(processed)],
    ['failed today', `${count(failed)} (${percent(failed, processed)})`],
    ['archived', count(total(queues, ({ archived }) => archived))],
    ['memory of tasks', bytes(total(queues, (queue) => queue.memory_usage_bytes))],
  ];
  return (
    <section aria-label="Totals">
      <dl class="stats">
        {stats.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd class="number">{queues.length > 0 || unread === 0 ? value : UNKNOWN}</dd>
          </div>
        ))}
      </dl>
      {unread > 0 && <p class="faint">Not counting {plural(unread, 'queue')} that cannot be read.</p>}
    </section>
  );
}

/** Before the first reply the page cannot say whether there are queues. */
const NotYet = () => (
  <Empty title="No data yet">The queues appear as soon as they can be read. The page keeps trying.</Empty>
);

const NoQueues = () => (
  <Empty title="No queue yet">
    A queue is created with its first task. Enqueue one from your application or from this console.
  </Empty>
);

export function Overview() {
  const status = useStore(live, ({ status }) => status);
  const queues = useStore(live, ({ queues }) => queues);
  const { query } = useRoute();
  const filter = query['filter'] ?? '';
  if (queues === undefined) {
    return <Page title="Overview">{status === 'connecting' ? <Loading rows={8} /> : <NotYet />}</Page>;
  }
  const shown = queues.filter(({ queue }) => queue.toLowerCase().includes(filter.toLowerCase()));
  return (
    <Page title="Overview" actions={queues.length > 0 && <FindTask rows={queues} />}>
      <LiveCharts />
      <Totals rows={queues} />
      <section aria-label="Queues">
        <div class="bar-line">
          <h2>{plural(queues.length, 'queue')}</h2>
          <input
            type="search"
            value={filter}
            placeholder="Filter queues"
            aria-label="Filter queues"
            data-search
            onInput={(event) => replaceQuery({ ...query, filter: event.currentTarget.value })}
          />
        </div>
        {queues.length === 0 && <NoQueues />}
        {queues.length > 0 && shown.length === 0 && <Empty title={`No queue matches “${filter}”`} />}
        {shown.length > 0 && <QueueTable rows={shown} />}
      </section>
      <AllDays />
    </Page>
  );
}

import { isUnreadable, type Queue, type QueueRow } from '../api/types.js';
import { live } from '../live/live.js';
import { favourites } from '../state/favourites.js';
import { replaceQuery, type RouteQuery, useRoute } from '../state/router.js';
import { useStore } from '../store.js';
import { bytes, count, percent, plural, UNKNOWN } from '../text/format.js';
import { Empty, Loading } from '../ui/placeholder.js';
import { AllDays, useAllDays } from './all-days.js';
import { Durations } from './durations.js';
import { sumDays } from './sum-days.js';
import { FindTask } from './find-task.js';
import { LiveCharts } from './live-charts.js';
import { Page } from './page.js';
import { troublesOf } from './queue-health.js';
import { BY_HEALTH, type Column, columnName, COLUMNS, parseSorting, pressed, printSorting } from './queue-order.js';
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

/** Which queues are shown. */
const SHOWN = ['all', 'unhealthy', 'favourites'] as const;
type Shown = (typeof SHOWN)[number];
const NONE: Readonly<Record<Shown, string>> = {
  all: 'No queue',
  unhealthy: 'No queue is unhealthy',
  favourites: 'No favourite yet: press the star of a queue',
};

/** The filter, what is shown, and the order: all in the address. */
function Choice({ counts }: { counts: Readonly<Record<Shown, number>> }) {
  const { query } = useRoute();
  const change = (changed: RouteQuery): void => replaceQuery({ ...query, ...changed });
  const sorting = parseSorting(query['sort']);
  return (
    <div class="queue-choice">
      <select
        aria-label="Show queues"
        value={query['show'] ?? 'all'}
        onChange={({ currentTarget: { value } }) => change({ show: value === 'all' ? undefined : value })}
      >
        {SHOWN.map((one) => (
          <option key={one} value={one}>{`${one} (${counts[one]})`}</option>
        ))}
      </select>
      <select
        aria-label="Sort queues"
        value={sorting.column ?? ''}
        onChange={({ currentTarget: { value } }) =>
          change({ sort: value && printSorting(pressed(value as Column, BY_HEALTH)) })
        }
      >
        <option value="">unhealthy first</option>
        {COLUMNS.map((column) => (
          <option key={column} value={column}>{`by ${columnName(column)}`}</option>
        ))}
      </select>
      <input
        type="search"
        value={query['filter'] ?? ''}
        placeholder="Filter queues"
        aria-label="Filter queues"
        data-search
        title="Key: /"
        onInput={(event) => change({ filter: event.currentTarget.value })}
      />
    </div>
  );
}

function Queues({ queues }: { queues: readonly QueueRow[] }) {
  const { query } = useRoute();
  const moments = useStore(live, ({ moments }) => moments);
  const chosen = useStore(favourites);
  const troubles = new Map(queues.map((row) => [row.queue, troublesOf(row, moments)]));
  const isIn: Readonly<Record<Shown, (row: QueueRow) => boolean>> = {
    all: () => true,
    unhealthy: ({ queue }) => (troubles.get(queue)?.length ?? 0) > 0,
    favourites: ({ queue }) => chosen.has(queue),
  };
  const countOf = (one: Shown): number => queues.filter(isIn[one]).length;
  const show = SHOWN.find((one) => one === query['show']) ?? 'all';
  const filter = query['filter'] ?? '';
  const shown = queues.filter((row) => isIn[show](row) && row.queue.toLowerCase().includes(filter.toLowerCase()));
  return (
    <section aria-label="Queues">
      <div class="bar-line">
        <h2>{plural(queues.length, 'queue')}</h2>
        <Choice counts={{ all: queues.length, unhealthy: countOf('unhealthy'), favourites: countOf('favourites') }} />
      </div>
      {queues.length === 0 && <NoQueues />}
      {queues.length > 0 && shown.length === 0 && (
        <Empty title={filter === '' ? NONE[show] : `No queue matches “${filter}”`} />
      )}
      {shown.length > 0 && (
        <QueueTable
          rows={shown}
          troubles={troubles}
          sorting={parseSorting(query['sort'])}
          onSort={(sorting) => replaceQuery({ ...query, sort: printSorting(sorting) })}
        />
      )}
    </section>
  );
}

export function Overview() {
  const status = useStore(live, ({ status }) => status);
  const queues = useStore(live, ({ queues }) => queues);
  const days = useAllDays();
  if (queues === undefined) {
    return <Page title="Overview">{status === 'connecting' ? <Loading rows={8} /> : <NotYet />}</Page>;
  }
  return (
    <Page title="Overview" actions={queues.length > 0 && <FindTask rows={queues} />}>
      <LiveCharts days={days.data && sumDays(days.data.stats)} />
      <Totals rows={queues} />
      <Queues queues={queues} />
      <Durations />
      <AllDays days={days} />
    </Page>
  );
}

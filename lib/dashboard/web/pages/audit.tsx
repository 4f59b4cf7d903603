import { api } from '../api/endpoints.js';
import type { AuditEntry } from '../api/fleet-types.js';
import { Ago } from '../live/time.js';
import { useRefreshInterval } from '../state/config.js';
import { useResource } from '../state/resource.js';
import { navigate, paths, useRoute } from '../state/router.js';
import { plural } from '../text/format.js';
import { Empty, Failure, Loading } from '../ui/placeholder.js';
import { numberHeads, TableHead } from '../ui/table-head.js';
import { Text } from '../ui/text.js';
import { Turn } from '../ui/turns.js';
import { chosenFilters, FilterBar } from './audit-filters.js';
import { actionText, resultText } from './audit-text.js';
import { Page } from './page.js';
import { QueueLink } from './queue-link.js';

const PAGE_SIZE = 50;

const COLORS: Readonly<Record<AuditEntry['outcome'], string>> = {
  done: 'color-completed',
  failed: 'color-archived',
  refused: 'color-retry',
  started: 'color-scheduled',
};

const TaskLink = ({ queue, id }: { queue: string | undefined; id: string }) =>
  queue === undefined ? (
    <Text value={id} titled class="cut mono id" />
  ) : (
    <a href={paths.task(queue, id)}>
      <Text value={id} titled class="cut mono id" />
    </a>
  );

/** The task, group or schedule that the change concerns, and the task it made. */
function Target({ entry }: { entry: AuditEntry }) {
  const { queue, to_queue: target, task_id: task, new_task_id: made, group, schedule } = entry;
  return (
    <>
      {task !== undefined && <TaskLink queue={queue} id={task} />}
      {schedule !== undefined && (
        <a href={paths.schedule(schedule)}>
          <Text value={schedule} titled class="cut mono id" />
        </a>
      )}
      {group !== undefined && (
        <span>
          group <Text value={group} titled class="cut" />
        </span>
      )}
      {made !== undefined && (
        <span class="made">
          <span class="faint">made</span> <TaskLink queue={target ?? queue} id={made} />
        </span>
      )}
      {[task, schedule, group, made].every((part) => part === undefined) && <span class="none">–</span>}
    </>
  );
}

function Row({ entry }: { entry: AuditEntry }) {
  return (
    <tr data-row>
      <th scope="row" class="change">
        <Text value={actionText(entry)} />
        {entry.missing !== undefined && (
          <span class="problem-text">
            {plural(entry.missing, 'change')} or refused {entry.missing === 1 ? 'attempt' : 'attempts'} before this one
            are missing; see the log
          </span>
        )}
      </th>
      <td data-label="queue">
        {entry.queue === undefined ? <span class="none">–</span> : <QueueLink name={entry.queue} />}
        {entry.to_queue !== undefined && (
          <span class="made">
            <span class="faint">→</span> <QueueLink name={entry.to_queue} />
          </span>
        )}
      </td>
      <td data-label="about" class="about">
        <Target entry={entry} />
      </td>
      <td data-label="by">
        <Text value={entry.actor} titled class="cut" />
      </td>
      <td data-label="result">
        <span class={`chip ${COLORS[entry.outcome]}`}>
          <Text value={resultText(entry)} />
        </span>
        {entry.code !== undefined && <Text value={entry.code} titled class="cut mono id" />}
      </td>
      <td class="number" data-label="when">
        <Ago at={entry.at} />
      </td>
    </tr>
  );
}

const Table = ({ entries, dim }: { entries: readonly AuditEntry[]; dim: boolean }) => (
  <div class={`table-card${dim ? ' dim' : ''}`}>
    <table class="grid-table cards tasks audit">
      <TableHead heads={['change', 'queue', 'about', 'by', 'result', ...numberHeads('when')]} />
      <tbody>
        {entries.map((entry) => (
          <Row key={entry.id} entry={entry} />
        ))}
      </tbody>
    </table>
  </div>
);

interface PagerProps {
  cursor: string | undefined;
  next: string | null;
  /** Undefined: the newest entries. */
  onTurn: (cursor: string | undefined) => void;
}

const Pager = ({ cursor, next, onTurn }: PagerProps) => (
  <div class="pager">
    <Turn to="prev" disabled={cursor === undefined} onClick={() => onTurn(undefined)}>
      Newest
    </Turn>
    <Turn to="next" disabled={next === null} onClick={() => onTurn(next ?? undefined)}>
      Older
    </Turn>
  </div>
);

/**
 * Every change made through the console, in all processes, newest first: what, by whom, and the
 * result.
 */
export function AuditPage() {
  const { path, query } = useRoute();
  const { cursor } = query;
  const filters = chosenFilters(query);
  const key = JSON.stringify([filters, cursor]);
  const { data, error, loading, reload } = useResource(
    `audit ${key}`,
    (signal) => api.audit({ ...filters, cursor, size: PAGE_SIZE }, signal),
    { every: useRefreshInterval(2.5), keep: true },
  );
  const entries = data?.entries ?? [];
  const next = loading ? null : (data?.next_cursor ?? null);
  return (
    <Page title="Audit trail">
      <FilterBar filters={filters} onSearch={(wanted) => navigate(path, wanted)} />
      {error && !data && <Failure error={error} retry={reload} />}
      {!data && !error && <Loading rows={8} />}
      {data && entries.length === 0 && (
        <Empty title="No change">
          {Object.keys(filters).length > 0
            ? 'No change matches this search.'
            : 'Changes made through the console appear here.'}
        </Empty>
      )}
      {entries.length > 0 && <Table entries={entries} dim={loading} />}
      {(cursor !== undefined || next !== null) && (
        <Pager cursor={cursor} next={next} onTurn={(to) => navigate(path, { ...filters, cursor: to })} />
      )}
    </Page>
  );
}

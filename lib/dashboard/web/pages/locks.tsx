import { api } from '../api/endpoints.js';
import type { Lock } from '../api/lock-types.js';
import { Ago } from '../live/time.js';
import { useRefreshInterval } from '../state/config.js';
import { useResource } from '../state/resource.js';
import { paths, useRoute } from '../state/router.js';
import { Empty, Failure, Loading } from '../ui/placeholder.js';
import { StateChip } from '../ui/state.js';
import { numberHeads, TableHead } from '../ui/table-head.js';
import { Text } from '../ui/text.js';

const BY: Readonly<Record<NonNullable<Lock['by']>, string>> = {
  payload: 'payload',
  key: 'key',
  last: 'key, the last task',
  fields: 'fields',
};

function Value({ lock: { value, redacted } }: { lock: Lock }) {
  if (redacted) return <span class="flag">redacted</span>;
  return value ? <Text value={value} titled class="cut mono" /> : <span class="none">–</span>;
}

function Holder({ queue, lock: { task_id: id, state } }: { queue: string; lock: Lock }) {
  if (state === null) {
    return (
      <>
        <Text value={id} titled class="cut mono" />
        <span class="faint">over</span>
      </>
    );
  }
  return (
    <>
      <a href={paths.task(queue, id)} data-open>
        <Text value={id} titled class="cut mono" />
      </a>
      <StateChip state={state} />
    </>
  );
}

const Row = ({ queue, lock }: { queue: string; lock: Lock }) => (
  <tr data-row tabIndex={-1}>
    <th scope="row" class="task">
      {lock.type === null ? <span class="none">–</span> : <Text value={lock.type} titled class="cut" />}
    </th>
    <td data-label="compares">{lock.by ? BY[lock.by] : <span class="none">–</span>}</td>
    <td data-label="value" class="wide">
      <Value lock={lock} />
    </td>
    <td data-label="held by" class="wide">
      <Holder queue={queue} lock={lock} />
    </td>
    <td data-label="until" class="number">
      <Ago at={lock.expires_at} none="no end" />
    </td>
  </tr>
);

function Pages({ queue, cursor, next }: { queue: string; cursor: string | undefined; next: string | null }) {
  if (cursor === undefined && next === null) return null;
  return (
    <nav class="pages" aria-label="Pages">
      {cursor !== undefined && (
        <a class="button plain" href={paths.locks(queue)} data-prev>
          First
        </a>
      )}
      {next !== null && (
        <a class="button plain" href={paths.locks(queue, { cursor: next })} data-next>
          Next
        </a>
      )}
    </nav>
  );
}

/** The locks of unique tasks in a queue, with who holds them. Redis finds them in no order. */
export function LocksList({ queue }: { queue: string }) {
  const { cursor } = useRoute().query;
  const { data, error, loading, reload } = useResource(
    JSON.stringify(['locks', queue, cursor]),
    (signal) => api.locks(queue, { cursor }, signal),
    { every: useRefreshInterval(5), keep: true },
  );
  if (!data) return error ? <Failure error={error} retry={reload} /> : <Loading rows={8} />;
  const { locks, next_cursor: next } = data;
  return (
    <>
      {locks.length === 0 ? (
        <Empty title={cursor === undefined && next === null ? 'No locks' : 'No lock on this page'}>
          {next !== null && 'There may be more on the next page.'}
        </Empty>
      ) : (
        <div class={`table-card${loading ? ' dim' : ''}`}>
          <table class="grid-table cards tasks">
            <TableHead heads={['type', 'compares', 'value', 'held by', ...numberHeads('until')]} />
            <tbody>
              {locks.map((lock, index) => (
                <Row key={index} queue={queue} lock={lock} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {/* While the next page loads, the cursor still belongs to the page before. */}
      <Pages queue={queue} cursor={cursor} next={loading ? null : next} />
    </>
  );
}

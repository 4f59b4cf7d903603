import { useEffect, useState } from 'preact/hooks';
import { api } from '../api/endpoints.js';
import type { FairKey } from '../api/key-types.js';
import { Ago } from '../live/time.js';
import { useRefreshInterval } from '../state/config.js';
import { useResource } from '../state/resource.js';
import { href, navigate, paths, type RouteQuery, useRoute } from '../state/router.js';
import { clockDuration, count, orUnknown } from '../text/format.js';
import { Empty, Failure, Loading } from '../ui/placeholder.js';
import { numberHeads, TableHead } from '../ui/table-head.js';
import { Text } from '../ui/text.js';
import { ForwardPages } from '../ui/turns.js';

const LIMITS = { concurrency: 'its concurrency', rate: 'its rate' } as const;

function Name({ queue, name }: { queue: string; name: string }) {
  if (name === '') return <span class="faint">without a key</span>;
  return (
    <a href={paths.list(queue, 'pending', { key: name })} data-open>
      <Text value={name} titled class="cut mono" />
    </a>
  );
}

function Limits({ row: { concurrency, rate, weight } }: { row: FairKey }) {
  const texts = [
    ...(concurrency === null ? [] : [`${count(concurrency)} at a time`]),
    ...(rate === null ? [] : [`${count(rate.max)} per ${clockDuration(rate.per_ms / 1000)}`]),
    ...(weight === 1 ? [] : [`weight ${weight}`]),
  ];
  return texts.length === 0 ? <span class="none">–</span> : <>{texts.join(', ')}</>;
}

/** The time of a key that waits for a slot is only that of the next look. */
function Held({ held }: Pick<FairKey, 'held'>) {
  if (held === null) return <span class="none">–</span>;
  const by = held.by.map((limit) => LIMITS[limit]).join(' and ');
  return (
    <>
      <span class="flag">held</span> {by}
      {!held.by.includes('concurrency') && held.until !== null && (
        <>
          {' '}
          <Ago at={held.until} />
        </>
      )}
    </>
  );
}

const Row = ({ queue, row }: { queue: string; row: FairKey }) => (
  <tr data-row tabIndex={-1}>
    <th scope="row" class="task">
      <Name queue={queue} name={row.key} />
    </th>
    <td data-label="waiting" class="number">
      {count(row.waiting)}
    </td>
    <td data-label="running" class="number">
      {orUnknown(row.running, count)}
    </td>
    <td data-label="limits" class="wide">
      <Limits row={row} />
    </td>
    <td data-label="held by" class="wide">
      <Held held={row.held} />
    </td>
  </tr>
);

function Search({ query, onSearch }: { query: RouteQuery; onSearch: (query: RouteQuery) => void }) {
  const [typed, setTyped] = useState(`${query['search'] ?? ''}`);
  useEffect(() => setTyped(`${query['search'] ?? ''}`), [query['search']]);
  const submit = (event: Event): void => {
    event.preventDefault();
    onSearch({ ...query, search: typed.trim(), cursor: undefined });
  };
  const isHeld = query['held'] === 'true';
  return (
    <form class="filters" role="search" aria-label="Search keys" onSubmit={submit}>
      <label>
        <span>key</span>
        <input
          type="search"
          value={typed}
          placeholder="text in the key"
          spellcheck={false}
          aria-label="text in the key"
          data-search
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
      </label>
      <button type="submit" class="button plain">
        Search
      </button>
      <button
        type="button"
        class="button plain"
        aria-pressed={isHeld}
        onClick={() => onSearch({ ...query, held: isHeld ? undefined : 'true', cursor: undefined })}
      >
        Only held
      </button>
    </form>
  );
}

/** The keys of a fair queue, those with the most waiting tasks first. */
export function KeysList({ queue }: { queue: string }) {
  const { path, query } = useRoute();
  const { cursor, search, held } = query;
  const { data, error, loading, reload } = useResource(
    JSON.stringify(['keys', queue, cursor, search, held]),
    (signal) => api.keys(queue, { cursor, search, held }, signal),
    { every: useRefreshInterval(10), keep: true },
  );
  if (!data) return error ? <Failure error={error} retry={reload} /> : <Loading rows={8} />;
  const { keys, next_cursor: next, redacted } = data;
  if (redacted) return <Empty title="The keys are hidden">A rule of this console hides the keys of this queue.</Empty>;
  const isChosen = search !== undefined || held !== undefined || cursor !== undefined;
  return (
    <>
      <Search query={query} onSearch={(wanted) => navigate(path, wanted)} />
      {keys.length === 0 ? (
        <Empty title={isChosen ? 'No such key' : 'No keys'}>
          {!isChosen && 'Only a fair queue has keys, and only while they have tasks.'}
        </Empty>
      ) : (
        <div class={`table-card${loading ? ' dim' : ''}`}>
          <table class="grid-table cards tasks">
            <TableHead heads={['key', ...numberHeads('waiting', 'running'), 'limits', 'held by']} />
            <tbody>
              {keys.map((row) => (
                <Row key={row.key} queue={queue} row={row} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {/* While the next page loads, the cursor still belongs to the page before. */}
      <ForwardPages
        cursor={cursor}
        next={loading ? null : next}
        to={(wanted) => href(path, { ...query, cursor: wanted })}
      />
    </>
  );
}

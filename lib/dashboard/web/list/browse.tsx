import { api, type ListScope } from '../api/endpoints.js';
import { useRefreshInterval } from '../state/config.js';
import { useResource } from '../state/resource.js';
import { navigate, type Route, useRoute } from '../state/router.js';
import { count } from '../text/format.js';
import { Empty, Failure, Loading } from '../ui/placeholder.js';
import { Turn } from '../ui/turns.js';
import { AllActions, SelectionBar } from './action-bars.js';
import { orderOf } from './order.js';
import { useSelection } from './selection.js';
import { Damaged, TaskTable } from './task-table.js';

const SIZES = [20, 50, 100, 200];

/** By list, the cursors of the pages before this one: a cursor only leads forward. */
const previousCursors = new Map<string, (string | undefined)[]>();

interface PagerProps {
  route: Route;
  listKey: string;
  size: number;
  next: string | null;
  shown: number;
  /** Undefined: not known. */
  total: number | undefined;
}

function Pager({ route, listKey, size, next, shown, total }: PagerProps) {
  const { path, query } = route;
  const before = previousCursors.get(listKey) ?? [];
  const cursor = query['cursor'];
  const forward = (): void => {
    previousCursors.set(listKey, [...before, cursor]);
    navigate(path, { ...query, cursor: next ?? undefined });
  };
  const back = (): void => {
    previousCursors.set(listKey, before.slice(0, -1));
    navigate(path, { ...query, cursor: before.at(-1) });
  };
  const resize = (value: string): void => {
    previousCursors.delete(listKey);
    navigate(path, { ...query, size: value, cursor: undefined });
  };
  const first = before.length * size;
  // An empty list needs no pager.
  if (shown === 0 && cursor === undefined && next === null) return null;
  return (
    <div class="pager">
      <span class="faint number">
        {cursor !== undefined && before.length === 0 ? `${shown} shown` : `${count(first + 1)}–${count(first + shown)}`}
        {total !== undefined && total > 0 && ` of ${count(Math.max(total, first + shown))}`}
      </span>
      <label>
        <span class="sr-only">Tasks per page</span>
        <select value={`${size}`} onChange={(event) => resize(event.currentTarget.value)}>
          {SIZES.map((option) => (
            <option key={option} value={`${option}`}>
              {option} per page
            </option>
          ))}
        </select>
      </label>
      <Turn to="prev" title="Key: p" disabled={cursor === undefined} onClick={back}>
        {before.length > 0 || cursor === undefined ? 'Previous' : 'First'}
      </Turn>
      <Turn to="next" title="Key: n" disabled={next === null} onClick={forward}>
        Next
      </Turn>
    </div>
  );
}

export function Browse({ scope, total }: { scope: ListScope; total: number | undefined }) {
  const route = useRoute();
  const { cursor } = route.query;
  const size = SIZES.find((option) => `${option}` === route.query['size']) ?? 20;
  const listKey = JSON.stringify([scope, size]);
  if (cursor === undefined) previousCursors.delete(listKey);
  const list = useResource(
    JSON.stringify([scope, cursor, size]),
    (signal) => api.list(scope, { cursor, size, order: orderOf(scope, cursor) }, signal),
    { every: useRefreshInterval(2.5), keep: true },
  );
  const selection = useSelection(list.data?.tasks.map(({ id }) => id) ?? []);
  if (list.error && !list.data) return <Failure error={list.error} retry={list.reload} />;
  if (!list.data) return <Loading rows={8} />;
  const { tasks, next_cursor: next } = list.data;
  const damaged = list.data.damaged ?? [];
  return (
    <>
      <div class="bar-line">
        {/* They act on the whole list, not on a key. */}
        {scope.key === undefined && (
          <AllActions scope={scope} size={scope.group === undefined ? total : tasks.length} onDone={list.reload} />
        )}
        <Pager
          route={route}
          listKey={listKey}
          size={size}
          shown={tasks.length + damaged.length}
          // While the next page loads, the cursor still belongs to the page before.
          next={list.loading ? null : next}
          total={scope.group === undefined ? total : undefined}
        />
      </div>
      {tasks.length > 0 ? (
        <TaskTable tasks={tasks} scope={scope} selection={selection} onDone={list.reload} dim={list.loading} />
      ) : (
        damaged.length === 0 && (
          <Empty title={`No ${scope.state} task`}>{next && 'There may be more on the next page.'}</Empty>
        )
      )}
      <Damaged queue={scope.queue} entries={damaged} onDone={list.reload} />
      <SelectionBar scope={scope} selection={selection} onDone={list.reload} />
    </>
  );
}

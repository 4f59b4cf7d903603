import type { Place } from '../api/endpoints.js';
import { count, plural } from '../text/format.js';
import { Empty, Failure } from '../ui/blank.js';
import { SelectionBar } from './actions.js';
import type { Filters } from './filters.js';
import { MatchActions } from './match-actions.js';
import { useSearch } from './search.js';
import { useSelection } from './selection.js';
import { Damaged, TaskTable } from './task-table.js';

interface SearchListProps {
  place: Place;
  filters: Filters;
  /** Undefined: not known. */
  total: number | undefined;
}

/** How far the search has come, in words and as a bar; it can be stopped, and gone on with. */
function Progress({ search, total }: { search: ReturnType<typeof useSearch>; total: number | undefined }) {
  const { state, stop, goOn, again } = search;
  const done = state.cursor === null;
  const begun = state.scanned > 0 || state.cursor !== undefined;
  const of = total === undefined ? 0 : Math.max(total, state.scanned);
  return (
    <div class="search-state">
      <p role="status">
        {begun && (
          <>
            <b>{plural(state.found.length, 'task')}</b> found; looked at {count(state.scanned)}
          </>
        )}
        {begun && !done && of > 0 && ` of ${count(of)}`}
        {done && ', which is all'}
        {!begun && (state.running ? 'Looking …' : 'Nothing was looked at yet')}
      </p>
      {state.running && (
        <progress max={of || 1} value={of > 0 ? state.scanned : undefined} aria-label="Search">
          {count(state.scanned)}
        </progress>
      )}
      {state.running && (
        <button type="button" class="button plain small" onClick={stop}>
          Stop
        </button>
      )}
      {!state.running && !done && (
        <button type="button" class="button plain small" onClick={goOn}>
          Search on
        </button>
      )}
      {!state.running && (
        <button type="button" class="button plain small" onClick={again}>
          Search again
        </button>
      )}
    </div>
  );
}

export function SearchList({ place, filters, total }: SearchListProps) {
  const search = useSearch(place, filters);
  const { state } = search;
  const selection = useSelection(state.found.map(({ id }) => id));
  return (
    <>
      <Progress search={search} total={total} />
      <MatchActions
        place={place}
        filters={filters}
        found={state.found.length}
        complete={state.cursor === null}
        onDone={search.again}
      />
      {state.error && <Failure error={state.error} retry={search.goOn} />}
      {state.found.length > 0 && <TaskTable tasks={state.found} state={place.state} selection={selection} />}
      {state.found.length === 0 && !state.running && !state.error && (
        <Empty title={state.cursor === null ? 'No task is like that' : 'Nothing found so far'} />
      )}
      <Damaged queue={place.queue} entries={state.damaged} onDone={search.again} />
      <SelectionBar place={place} selection={selection} onDone={search.again} />
    </>
  );
}

import type { ListScope } from '../api/endpoints.js';
import { count, plural } from '../text/format.js';
import { Empty, Failure } from '../ui/placeholder.js';
import { SelectionBar } from './action-bars.js';
import type { Filters } from './filters.js';
import { MatchActions } from './match-actions.js';
import { useSearch } from './search.js';
import { useSelection } from './selection.js';
import { Damaged, TaskTable } from './task-table.js';

interface SearchListProps {
  scope: ListScope;
  filters: Filters;
  /** Undefined: not known. */
  total: number | undefined;
}

/** How far the search has come. It can be stopped and resumed. */
function Progress({ search, total }: { search: ReturnType<typeof useSearch>; total: number | undefined }) {
  const { state, stop, resume, restart } = search;
  const done = state.cursor === null;
  const begun = state.scanned > 0 || state.cursor !== undefined;
  const of = total === undefined ? 0 : Math.max(total, state.scanned);
  return (
    <div class="search-state">
      <p role="status">
        {begun && (
          <>
            <b>{plural(state.found.length, 'task')}</b> found; scanned {count(state.scanned)}
          </>
        )}
        {begun && !done && of > 0 && ` of ${count(of)}`}
        {done && ' (all entries)'}
        {!begun && (state.running ? 'Searching …' : 'Nothing scanned yet')}
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
        <button type="button" class="button plain small" onClick={resume}>
          Continue
        </button>
      )}
      {!state.running && (
        <button type="button" class="button plain small" onClick={restart}>
          Search again
        </button>
      )}
    </div>
  );
}

export function SearchList({ scope, filters, total }: SearchListProps) {
  const search = useSearch(scope, filters);
  const { state } = search;
  const selection = useSelection(state.found.map(({ id }) => id));
  return (
    <>
      <Progress search={search} total={total} />
      <MatchActions scope={scope} filters={filters} found={state.found.length} total={total} onDone={search.restart} />
      {state.error && <Failure error={state.error} retry={search.resume} />}
      {state.found.length > 0 && (
        <TaskTable tasks={state.found} scope={scope} selection={selection} onDone={search.restart} />
      )}
      {state.found.length === 0 && !state.running && !state.error && (
        <Empty title={state.cursor === null ? 'No task matches' : 'Nothing found so far'} />
      )}
      <Damaged queue={scope.queue} entries={state.damaged} onDone={search.restart} />
      <SelectionBar scope={scope} selection={selection} onDone={search.restart} />
    </>
  );
}

import { useEffect, useState } from 'preact/hooks';
import type { State } from '../api/types.js';
import { type Filters, filtersOf, HINTS, isSearch } from './filters.js';

interface FilterFormProps {
  state: State;
  filters: Filters;
  onSearch: (filters: Filters) => void;
}

export function FilterForm({ state, filters, onSearch }: FilterFormProps) {
  const [typed, setTyped] = useState<Filters>(filters);
  useEffect(() => setTyped(filters), [JSON.stringify(filters)]);
  const submit = (event: Event): void => {
    event.preventDefault();
    onSearch(typed);
  };
  return (
    <form class="filters" role="search" aria-label="Search tasks" onSubmit={submit}>
      {filtersOf(state).map((filter, index) => (
        <label key={filter}>
          <span>{filter.replace('_', ' ')}</span>
          <input
            type="search"
            value={typed[filter] ?? ''}
            placeholder={HINTS[filter]}
            spellcheck={false}
            aria-label={HINTS[filter]}
            data-search={index === 0 ? true : undefined}
            title={index === 0 ? 'Key: /' : undefined}
            onInput={(event) => setTyped({ ...typed, [filter]: event.currentTarget.value })}
          />
        </label>
      ))}
      <button type="submit" class="button plain">
        Search
      </button>
      {isSearch(filters) && (
        <button type="button" class="button plain" onClick={() => onSearch({})}>
          Clear
        </button>
      )}
    </form>
  );
}

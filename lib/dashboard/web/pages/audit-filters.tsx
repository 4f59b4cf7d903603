import { useEffect, useState } from 'preact/hooks';
import { ACTIONS, OUTCOMES, spaced } from './audit-text.js';

const FILTERS = ['queue', 'actor', 'action', 'outcome'] as const;
export type AuditFilters = Partial<Record<(typeof FILTERS)[number], string>>;

export const chosenFilters = (query: Readonly<Record<string, string>>): AuditFilters =>
  Object.fromEntries(FILTERS.filter((name) => query[name]).map((name) => [name, query[name]]));

interface ChoiceProps {
  name: string;
  options: readonly string[];
  value: string | undefined;
  onChange: (value: string) => void;
}

const Choice = ({ name, options, value = '', onChange }: ChoiceProps) => (
  <label>
    <span>{name}</span>
    <select aria-label={name} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
      <option value="">any {name}</option>
      {options.map((option) => (
        <option key={option} value={option}>
          {option === 'started' ? 'no result' : spaced(option)}
        </option>
      ))}
    </select>
  </label>
);

export function FilterBar({ filters, onSearch }: { filters: AuditFilters; onSearch: (filters: AuditFilters) => void }) {
  const [typed, setTyped] = useState<AuditFilters>(filters);
  useEffect(() => setTyped(filters), [JSON.stringify(filters)]);
  const submit = (event: Event): void => {
    event.preventDefault();
    onSearch(typed);
  };
  return (
    <form class="filters" role="search" aria-label="Search the audit trail" onSubmit={submit}>
      {(['queue', 'actor'] as const).map((name) => (
        <label key={name}>
          <span>{name}</span>
          <input
            type="search"
            value={typed[name] ?? ''}
            spellcheck={false}
            aria-label={name}
            placeholder={`any ${name}`}
            data-search={name === 'queue' || undefined}
            onInput={(event) => setTyped({ ...typed, [name]: event.currentTarget.value })}
          />
        </label>
      ))}
      <Choice
        name="action"
        options={ACTIONS}
        value={typed.action}
        onChange={(action) => onSearch({ ...typed, action })}
      />
      <Choice
        name="result"
        options={OUTCOMES}
        value={typed.outcome}
        onChange={(outcome) => onSearch({ ...typed, outcome })}
      />
      <button type="submit" class="button plain">
        Search
      </button>
      {Object.keys(filters).length > 0 && (
        <button type="button" class="button plain" onClick={() => onSearch({})}>
          Clear
        </button>
      )}
    </form>
  );
}

export interface Head {
  name: string;
  number?: boolean;
  /** Whether only screen readers get the name. */
  hidden?: boolean;
  /** How the table is sorted by this column, when it can be. */
  sorted?: 'ascending' | 'descending' | 'none';
  /** Sorts by this column. */
  onSort?: () => void;
}

const ARROWS = { ascending: ' ↑', descending: ' ↓', none: '' } as const;

function Label({ name, hidden = false, sorted = 'none', onSort }: Head) {
  if (hidden) return <span class="sr-only">{name}</span>;
  if (!onSort) return <>{name}</>;
  return (
    <button type="button" class="sort" onClick={onSort}>
      {name}
      <span aria-hidden="true">{ARROWS[sorted]}</span>
    </button>
  );
}

/** The head of a table: a name, or more about a column. */
export const TableHead = ({ heads }: { heads: readonly (string | Head)[] }) => (
  <thead>
    <tr>
      {heads
        .map((head) => (typeof head === 'string' ? { name: head } : head))
        .map((head: Head) => (
          <th key={head.name} scope="col" class={head.number ? 'number' : undefined} aria-sort={head.sorted}>
            <Label {...head} />
          </th>
        ))}
    </tr>
  </thead>
);

/** The heads of columns with numbers. */
export const numberHeads = (...names: string[]): Head[] => names.map((name) => ({ name, number: true }));

/** The head of the column with a row's buttons. */
export const ACTIONS_HEAD: Head = { name: 'actions', hidden: true };

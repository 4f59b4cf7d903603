interface Head {
  name: string;
  number?: boolean;
  /** Whether only screen readers get the name. */
  hidden?: boolean;
}

/** The head of a table: a name, or more about a column. */
export const TableHead = ({ heads }: { heads: readonly (string | Head)[] }) => (
  <thead>
    <tr>
      {heads
        .map((head) => (typeof head === 'string' ? { name: head } : head))
        .map(({ name, number = false, hidden = false }: Head) => (
          <th key={name} scope="col" class={number ? 'number' : undefined}>
            {hidden ? <span class="sr-only">{name}</span> : name}
          </th>
        ))}
    </tr>
  </thead>
);

/** The heads of columns with numbers. */
export const numberHeads = (...names: string[]): Head[] => names.map((name) => ({ name, number: true }));

/** The head of the column with a row's buttons. */
export const ACTIONS_HEAD: Head = { name: 'actions', hidden: true };

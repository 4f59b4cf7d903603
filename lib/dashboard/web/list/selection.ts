import { useCallback, useMemo, useState } from 'preact/hooks';

export interface Selection {
  ids: readonly string[];
  has: (id: string) => boolean;
  toggle: (id: string) => void;
  /** Selects all shown rows, or none. */
  toggleAll: () => void;
  clear: () => void;
}

/** The selected rows. A row that is no longer shown is no longer selected. */
export function useSelection(shown: readonly string[]): Selection {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const ids = useMemo(() => shown.filter((id) => chosen.has(id)), [shown.join('\n'), chosen]);
  const toggle = useCallback((id: string) => {
    setChosen((old) => {
      const next = new Set(old);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  }, []);
  return {
    ids,
    has: (id) => chosen.has(id),
    toggle,
    toggleAll: () => setChosen(new Set(ids.length === shown.length ? [] : shown)),
    clear: () => setChosen(new Set()),
  };
}

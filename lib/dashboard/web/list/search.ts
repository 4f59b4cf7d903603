import { useCallback, useEffect, useState } from 'preact/hooks';
import type { ApiError } from '../api/client.js';
import { api, type ListScope } from '../api/endpoints.js';
import type { ListedTask, TaskList } from '../api/task-types.js';
import type { Filters } from './filters.js';
import { orderOf } from './order.js';

/** A request of this size takes Redis some ten milliseconds. */
const SCAN_PER_REQUEST = 5000;
/** The search pauses after this many more results. */
const FOUND_PER_RUN = 100;

export interface SearchState {
  found: readonly ListedTask[];
  damaged: TaskList['damaged'];
  /** How many entries were scanned. */
  scanned: number;
  /** Where the search goes on; null at the end. */
  cursor: string | null | undefined;
  running: boolean;
  error: ApiError | undefined;
}

const START: SearchState = { found: [], damaged: [], scanned: 0, cursor: undefined, running: true, error: undefined };

function add(state: SearchState, reply: TaskList): SearchState {
  const ids = new Set(state.found.map(({ id }) => id));
  return {
    ...state,
    found: [...state.found, ...reply.tasks.filter(({ id }) => !ids.has(id))],
    damaged: [...state.damaged, ...(reply.damaged ?? [])],
    scanned: state.scanned + (reply.scanned ?? 0),
    cursor: reply.next_cursor,
  };
}

/** One run of the search: until it has found enough, reaches the end, or is stopped. */
async function run(
  from: SearchState,
  step: (cursor: string | undefined) => Promise<TaskList>,
  report: (state: SearchState) => void,
  stopped: () => boolean,
): Promise<void> {
  let state: SearchState = { ...from, running: true, error: undefined };
  const target = from.found.length + FOUND_PER_RUN;
  while (!stopped()) {
    try {
      state = add(state, await step(state.cursor ?? undefined));
    } catch (error) {
      if (!stopped()) report({ ...state, running: false, error: error as ApiError });
      return;
    }
    if (stopped()) return;
    const running = state.cursor !== null && state.found.length < target;
    report({ ...state, running });
    if (!running) return;
  }
}

/**
 * Searches a list of any length in steps and reports what it found so far. It can be stopped and
 * resumed.
 */
export function useSearch(scope: ListScope, filters: Filters) {
  const key = JSON.stringify([scope, filters]);
  const [state, setState] = useState<SearchState>(START);
  const [active, setActive] = useState<AbortController>();
  const begin = useCallback(
    (from: SearchState) => {
      const stop = new AbortController();
      setActive(stop);
      setState({ ...from, running: true });
      const step = (cursor: string | undefined) =>
        api.list(
          scope,
          { ...filters, cursor, order: orderOf(scope, cursor), scan: SCAN_PER_REQUEST, size: FOUND_PER_RUN },
          stop.signal,
        );
      void run(from, step, setState, () => stop.signal.aborted);
      return stop;
    },
    [key],
  );
  useEffect(() => {
    const stop = begin(START);
    return () => stop.abort();
  }, [begin]);
  useEffect(() => () => active?.abort(), [active]);
  return {
    state,
    stop: () => {
      active?.abort();
      setState((old) => ({ ...old, running: false }));
    },
    resume: () => void begin(state),
    restart: () => void begin(START),
  };
}

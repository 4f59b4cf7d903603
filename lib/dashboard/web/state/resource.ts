import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { ApiError } from '../api/client.js';

export interface Resource<T> {
  /** The last data; kept while it is read again, and when that fails. */
  data: T | undefined;
  error: ApiError | undefined;
  /** Whether the data of this key has not arrived yet. */
  loading: boolean;
  reload: () => void;
}

export interface ResourceOptions {
  /** How often to read again while the tab is visible; milliseconds, 0 for never. */
  every?: number;
  /** While true nothing is read. */
  hold?: boolean;
  /** Keeps the data of the old key while the new one is read. */
  keep?: boolean;
}

/**
 * Reads `key` by `read`, and again when the key changes or the interval has passed. One request at
 * a time.
 */
export function useResource<T>(
  key: string,
  read: (signal: AbortSignal) => Promise<T>,
  { every = 0, hold = false, keep = false }: ResourceOptions = {},
): Resource<T> {
  const [state, setState] = useState<{ key: string; data?: T; error?: ApiError }>({ key });
  const [round, setRound] = useState(0);
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => {
    if (hold) return;
    const stop = new AbortController();
    const run = async (): Promise<void> => {
      try {
        const data = await latest.current(stop.signal);
        if (!stop.signal.aborted) setState({ key, data });
      } catch (error) {
        if (!stop.signal.aborted)
          setState((old) => ({ ...(old.key === key ? old : { key }), error: error as ApiError }));
      }
    };
    const end = repeat(run, every);
    return () => {
      stop.abort();
      end();
    };
  }, [key, round, every, hold]);
  const reload = useCallback(() => setRound((n) => n + 1), []);
  const fresh = state.key === key;
  return {
    data: fresh || keep ? state.data : undefined,
    error: fresh ? state.error : undefined,
    loading: !fresh || (state.data === undefined && state.error === undefined),
    reload,
  };
}

/**
 * Calls `run` now, and again `every` milliseconds after each call has ended; not while the tab is
 * hidden.
 */
export function repeat(run: () => Promise<void>, every: number): () => void {
  let timer: number | undefined;
  let over = false;
  let busy = false;
  const next = async (): Promise<void> => {
    window.clearTimeout(timer);
    if (over || busy || document.hidden) return;
    busy = true;
    await run();
    busy = false;
    if (every > 0 && !over) timer = window.setTimeout(() => void next(), every);
  };
  const seen = (): void => {
    if (every > 0 && !document.hidden) void next();
  };
  document.addEventListener('visibilitychange', seen);
  void next();
  return () => {
    over = true;
    window.clearTimeout(timer);
    document.removeEventListener('visibilitychange', seen);
  };
}

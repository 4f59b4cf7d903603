import { useEffect, useState } from 'preact/hooks';
import { api, type BulkAction, type ListScope } from '../api/endpoints.js';
import { messageOf } from '../text/errors.js';
import type { Filters } from './filters.js';

/** Entries per request: some ten milliseconds of Redis, and a step of the progress bar. */
const ENTRIES_PER_REQUEST = 5000;

export interface Count {
  matching: number;
  scanned: number;
  /** The time of the server at the end; undefined while it counts. */
  at: string | undefined;
  error: string | undefined;
}

/** Counts the tasks that match, part by part, until the component goes. */
export function useCount(scope: ListScope, filters: Filters): Count {
  const [counted, setCounted] = useState<Count>({ matching: 0, scanned: 0, at: undefined, error: undefined });
  useEffect(() => {
    const stop = new AbortController();
    count(scope, filters, setCounted, stop.signal).catch((error: unknown) => {
      if (!stop.signal.aborted) setCounted((before) => ({ ...before, error: messageOf(error) }));
    });
    return () => stop.abort();
  }, []);
  return counted;
}

async function count(
  scope: ListScope,
  filters: Filters,
  report: (counted: Count) => void,
  signal: AbortSignal,
): Promise<void> {
  let [matching, scanned] = [0, 0];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const part = await api.count(scope, { ...filters, cursor, scan: ENTRIES_PER_REQUEST }, signal);
    matching += part.matching;
    scanned += part.scanned;
    cursor = part.next_cursor;
    report({ matching, scanned, at: cursor === null ? part.counted_at : undefined, error: undefined });
  }
}

export interface MatchProgress {
  done: number;
  skipped: number;
  /** Whether it has reached the end of the list. */
  ended: boolean;
}

/**
 * Acts on the tasks that match, part by part, until the end or until it is stopped.
 *
 * @param before the time of the count: a task that fails again meanwhile is left alone
 */
export async function actOnMatches(
  { scope, filters, action, before }: { scope: ListScope; filters: Filters; action: BulkAction; before: string },
  report: (progress: MatchProgress) => void,
  stopped: () => boolean,
): Promise<void> {
  let [done, skipped] = [0, 0];
  for (let cursor: string | null | undefined; cursor !== null && !stopped();) {
    const part = await api.matching(scope, action, { ...filters, before, cursor, scan: ENTRIES_PER_REQUEST });
    done += part.done;
    skipped += part.skipped;
    cursor = part.next_cursor;
    report({ done, skipped, ended: cursor === null });
  }
}

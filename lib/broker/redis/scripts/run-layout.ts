import type { MarkWatcher } from './linked-requests.js';

/** Flags of a step, as shared/runs.lua has them. */
export const OPTIONAL = 1;
export const PLAIN = 2;

/** Bytes of what it has of a run, and of a step; of one that waits, the names of its neighbours follow: see L.neighbours of run-successes.lua. */
export const COUNTS_SIZE = 37;
export const STEP_SIZE = 27;
/** At most so many bytes of them; and what starts the rest of the graph, which no name there may have. */
export const LONGEST_NAMES = 232;
export const NO_NAME = '{';
/** Where L.hint has what STEP has of the step from its policy on, and the names. */
export const [HINT_STEP_AT, HINT_NAMES_AT] = [12, 22] as const;
/** The names of the steps before one, in L.neighbours; undefined when it has none. */
export function namesBefore(neighbours: string): readonly string[] | undefined {
  const at = neighbours.indexOf('\0\0');
  return at < 0 ? undefined : neighbours.slice(at + 2, -1).split('\0');
}

/** Where a part of COUNTS begins. */
export const [RUN_OPEN_AT, RUN_FAILED_AT, RUN_ENDED_AT, RUN_STARTED_AT, RUN_TOTAL_AT] = [1, 9, 17, 25, 33] as const;
/** Where a part of STEP begins. */
export const [ENDED_AT, POLICY_AT, FLAGS_AT, READY_AT, OPEN_AT] = [1, 9, 10, 11, 19] as const;

/** The place of a step in the graph, as shared/runs.lua reads it. */
export interface Graph {
  n: number;
  t: string;
  q?: string;
  y?: number;
  a?: number;
  u?: string;
  l?: number;
  k?: MarkWatcher;
  r?: number;
}

import type { EnqueueOptions } from '../../lib/client/types.js';

/** Milliseconds that a throttled task keeps others out. */
export const THROTTLE_MS = 2_000;

/** What must hold of the tasks of a key: the rules of repeat-judge.ts. */
export type Rule = 'alone' | 'once' | 'spaced' | 'last' | 'follows' | 'supersedes';

export interface ChaosMode {
  readonly options: EnqueueOptions<unknown>;
  readonly rules: readonly Rule[];
}

const by = { for: '1d', by: 'key' } as const;

/** Each is a type of task, too. */
export const MODES: Readonly<Record<string, ChaosMode>> = {
  unique: { options: { unique: by }, rules: ['alone'] },
  existing: { options: { unique: { ...by, onDuplicate: 'existing' } }, rules: ['alone'] },
  replace: { options: { unique: { ...by, onDuplicate: 'replace' } }, rules: ['alone', 'last'] },
  started: { options: { unique: { ...by, until: 'started', onDuplicate: 'existing' } }, rules: [] },
  expired: { options: { unique: { for: THROTTLE_MS, by: 'key', until: 'expired' } }, rules: ['spaced'] },
  throttle: { options: { throttle: THROTTLE_MS }, rules: ['spaced'] },
  once: { options: { once: '1d' }, rules: ['once'] },
  debounce: { options: { debounce: { wait: '1s', maxWait: '2s' } }, rules: ['last'] },
  latest: { options: { latest: true }, rules: ['last', 'follows'] },
  supersede: { options: { supersede: true }, rules: ['last', 'supersedes'] },
};

/** A key of a fair queue. */
export interface FairKey {
  /** Empty: tasks without a key. */
  key: string;
  waiting: number;
  /** Null: not known. */
  running: number | null;
  weight: number;
  /** Null: no limit. */
  concurrency: number | null;
  rate: { max: number; per_ms: number } | null;
  /** Null: it has its turns. */
  held: { by: ('concurrency' | 'rate')[]; until: string | null } | null;
}

export interface FairKeys {
  keys: FairKey[];
  next_cursor: string | null;
  /** A rule hides them. */
  redacted: boolean;
}

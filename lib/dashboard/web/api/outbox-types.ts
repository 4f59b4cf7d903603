/** The JSON of the outbox, as far as the page uses it. */

export interface OutboxSender {
  id: string;
  /** The relay that has it; null: none. */
  owner: string | null;
  lease_ms: number;
  taken: number;
}

export interface Outbox {
  fresh: number;
  taken: number;
  poisoned: number;
  /** 0: there is none. */
  oldest_ms: number;
  senders: OutboxSender[];
}

export interface PoisonedRow {
  row: number;
  queue: string;
  task_id: string;
  type: string;
  error: string;
  age_ms: number;
}

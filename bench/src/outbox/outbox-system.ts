import type pg from 'pg';
import type { Handle, Payload } from '../system.js';

/** A system whose tasks are stored in a transaction of PostgreSQL. */
export interface OutboxSystem {
  /** Stores tasks in the transaction of this client. */
  enqueue(client: pg.PoolClient, payloads: readonly Payload[]): Promise<unknown>;
  /** Starts to run them. */
  work(concurrency: number, handle: Handle): Promise<void>;
  /** Brings committed tasks to their queue, where these are two places. */
  relay?(): Promise<void>;
  close(): Promise<void>;
}

export type OpenOutbox = (pool: pg.Pool, redisPort: number) => Promise<OutboxSystem>;

import { InvalidOptionError } from '../../errors.js';
import { rejectUnknownKeys, requireObject } from '../../validation.js';

export interface StoreOptions {
  /**
   * The table of rows; that of senders has `_senders` behind it. Each connection to Redis needs its own. A schema
   * may stand before it: `jobs.outbox`. Default `asynq_outbox`.
   */
  table?: string;
}

/** Returns the table. @throws InvalidOptionError */
export function readStoreOptions(options: StoreOptions = {}, what: string): string | undefined {
  requireObject(options, `options of ${what}`, InvalidOptionError);
  rejectUnknownKeys(options, ['table'], `option of ${what}`, InvalidOptionError);
  return options.table;
}

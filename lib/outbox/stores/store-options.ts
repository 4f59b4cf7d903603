import { InvalidOptionError } from '../../errors.js';
import { describe, rejectUnknownKeys, requireObject } from '../../validation.js';
import type { SqlStoreOptions } from '../sql/sql-store.js';
import { listenOn, type PgPool } from './listen.js';
import { hasMethods } from './methods.js';

export interface StoreOptions {
  /**
   * The table of rows; that of senders has `_senders` behind it. Each connection to Redis needs its own. A schema
   * may stand before it: `jobs.outbox`. Default `asynq_outbox`.
   */
  table?: string;
  /**
   * With PostgreSQL, the pool of `pg` of which the relay keeps one connection, to have notice of rows. `false`: it keeps
   * none, and polls; a pooler such as PgBouncer may have no notices. Default: a connection of the store's own library, but for
   * Kysely and Prisma, which give none.
   */
  listen?: PgPool | false;
}

/** @throws InvalidOptionError */
export function readStoreOptions(options: StoreOptions = {}, what: string): SqlStoreOptions {
  requireObject(options, `options of ${what}`, InvalidOptionError);
  rejectUnknownKeys(options, ['table', 'listen'], `option of ${what}`, InvalidOptionError);
  const { table, listen } = options;
  if (listen === undefined || listen === false) return { table, listen };
  if (hasMethods(listen, ['connect'])) return { table, listen: listenOn(listen) };
  throw new InvalidOptionError(`${what} option listen must be a Pool of pg or false, not ${describe(listen)}`);
}

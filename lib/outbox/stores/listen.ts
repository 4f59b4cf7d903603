import type { SqlDatabase } from '../sql/database.js';

/** A client of `pg`: what `pool.connect()` resolves with. */
export interface PgClient {
  query(text: string, values?: unknown[]): Promise<{ rows: object[] }>;
}

/** A client of `pg` from its pool. */
export interface PgPoolClient extends ListeningClient {
  release(destroy?: boolean): void;
}

/** A pool of `pg`. */
export interface PgPool {
  connect(): Promise<PgPoolClient>;
}

/** A connection that is taken for as long as it listens. */
export interface ListeningClient extends PgClient {
  on(event: 'notification' | 'error' | 'end', listener: () => void): unknown;
  off(event: 'notification' | 'error' | 'end', listener: () => void): unknown;
}

/** @param release gives the connection back, or closes it when it is lost */
export async function listenByPg(
  client: ListeningClient,
  release: (isLost: boolean) => void,
  channel: string,
  onRows: () => void,
  onLost: () => void,
): Promise<() => Promise<void>> {
  let ended = false;
  const end = (): boolean => {
    if (ended) return false;
    ended = true;
    client.off('notification', onRows);
    client.off('end', lost);
    return true; // `lost` stays: an error without a listener would end the process
  };
  const lost = (): void => {
    if (!end()) return;
    release(true);
    onLost();
  };
  client.on('error', lost);
  client.on('end', lost);
  client.on('notification', onRows);
  try {
    await client.query(`LISTEN ${channel}`);
  } catch (error) {
    if (end()) release(true);
    throw error;
  }
  return async () => {
    if (!end()) return;
    const isClean = client.query(`UNLISTEN ${channel}`).then(
      () => true,
      () => false,
    );
    release(!(await isClean));
  };
}

/** Listens on a connection that it takes of this pool. */
export const listenOn =
  (pool: PgPool): NonNullable<SqlDatabase['listen']> =>
  async (channel, onRows, onLost) => {
    const client = await pool.connect();
    return listenByPg(client, (isLost) => client.release(isLost), channel, onRows, onLost);
  };

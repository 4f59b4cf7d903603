import type { RedisOptions } from 'ioredis';

/** How a thread connects. All of it can be cloned. */
export interface PlainConnection {
  readonly tls?: object | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly db: number;
  readonly connectTimeout: number;
}

/** Where Redis is: a host and a port, or a socket. */
export type Address = { readonly host: string; readonly port: number } | { readonly path: string };

const CONNECT_TIMEOUT_MS = 5_000;

/** Without functions, which a thread cannot get. A text says which option has some. */
export function plainConnection(options: RedisOptions): PlainConnection | string {
  if (options.Connector) return 'the option Connector of the connection is a class, which a thread cannot get';
  const { tls, username, password, db = 0, connectTimeout = CONNECT_TIMEOUT_MS } = options;
  const plain = {
    ...(tls && { tls: { ...tls } }),
    ...(username && { username }),
    ...(password && { password }),
    db,
    connectTimeout,
  };
  try {
    return structuredClone(plain);
  } catch {
    return 'the option tls of the connection holds functions or objects, which a thread cannot get: give it texts and bytes only (ca, cert, key, servername)';
  }
}

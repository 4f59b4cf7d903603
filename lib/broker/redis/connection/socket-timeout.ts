import type { Socket } from 'node:net';
import type { Redis } from 'ioredis';
import { type Clock, SystemClock } from '../../../clock.js';

/** How often within a timeout is looked whether the socket has read something. */
const LOOKS = 4;

/** What ioredis 5 and 6 keep of a connection. */
interface Connection {
  readonly options: { readonly socketTimeout?: number };
  readonly stream: Pick<Socket, 'bytesRead' | 'destroy'>;
  readonly commandQueue: { readonly length: number };
  /** While there is one, ioredis asks for no other. It forgets it when the connection closes. */
  socketTimeoutTimer: object | undefined;
  setSocketTimeout?: () => void;
}

/**
 * Closes a connection whose commands get no reply for `socketTimeout`, up to a quarter of it later. ioredis does so with a timer
 * and a listener for each command that is alone, which take 3 µs of some 60; here one timer runs while commands are under way.
 *
 * @param clock real time, as for all timeouts of the network
 */
export function watchReplies(client: Redis, clock: Clock = new SystemClock()): void {
  const connection = client as unknown as Connection;
  if (connection.setSocketTimeout) connection.setSocketTimeout = () => watch(connection, clock);
}

function watch(connection: Connection, clock: Clock): void {
  const { stream } = connection;
  const limit = connection.options.socketTimeout!;
  const step = Math.ceil(limit / LOOKS);
  const watching = {};
  let read = stream.bytesRead;
  let silent = 0;
  const look = (): void => {
    if (connection.socketTimeoutTimer !== watching) return; // the connection was closed
    silent = stream.bytesRead === read ? silent + step : 0;
    read = stream.bytesRead;
    const isWaiting = connection.commandQueue.length > 0;
    if (isWaiting && silent < limit) return void clock.after(step, look);
    connection.socketTimeoutTimer = undefined;
    if (isWaiting) stream.destroy(new Error(`Socket timeout. Expecting data, but didn't receive any in ${limit}ms.`));
  };
  connection.socketTimeoutTimer = watching;
  clock.after(step, look);
}

import { type AddressInfo, type Socket, connect, createServer } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Proxy {
  readonly port: number;
  /** From now on requests reach Redis and are executed, but replies are held back. */
  holdReplies(): void;
  /** Cuts every connection; new ones work again. */
  cut(): void;
  /** The same, and refuses new ones. */
  close(): void;
}

/**
 * A TCP proxy before a port on loopback, for replies that are lost or slow. It ends with the test.
 *
 * @param delay milliseconds that every reply takes
 */
export async function startProxy(target: number, delay = 0): Promise<Proxy> {
  const sockets = new Set<Socket>();
  let held = false;
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    client.pipe(upstream);
    const pass = (chunk: Buffer): void => void (held || client.destroyed || client.write(chunk));
    upstream.on('data', (chunk) => (delay > 0 ? setTimeout(pass, delay, chunk) : pass(chunk)));
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => [client, upstream].forEach((one) => (sockets.delete(one), one.destroy())));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
    held = false;
  };
  const close = (): void => {
    cut();
    server.close();
  };
  onTestFinished(close);
  return { close, port: (server.address() as AddressInfo).port, holdReplies: () => void (held = true), cut };
}

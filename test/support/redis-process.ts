import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { connect, createServer } from 'node:net';

const MISSING =
  'redis-server was not found, and these tests talk to a real one: install it (apt-get install redis-server, or brew install redis) and run again';

/**
 * Below the range the kernel gives to outgoing connections; a cluster bus takes the port 10,000
 * above.
 */
const FIRST_PORT = 10_000;
const LAST_PORT = 22_000;
/** On a busy machine, and with much to load, a server takes long to start. */
const START_TIMEOUT_MS = 60_000;
const RETRY_INTERVAL_MS = 15;

export const sleep = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));

/**
 * Repeats `probe` until it returns true; what it throws counts as "not yet" and is reported at the
 * timeout.
 */
export async function until(what: string, probe: () => Promise<boolean>, timeout = START_TIMEOUT_MS): Promise<void> {
  const end = Date.now() + timeout;
  let last: unknown;
  while (Date.now() < end) {
    try {
      if (await probe()) return;
      last = undefined;
    } catch (error) {
      last = error;
    }
    await sleep(RETRY_INTERVAL_MS);
  }
  throw new Error(`${what}: not within ${timeout} ms`, { cause: last });
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });

/** A loopback port that is free now, as is the one 10,000 above it. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST_PORT, LAST_PORT);
    if ((await isFree(port)) && (await isFree(port + 10_000))) return port;
  }
}

export interface ServerProcess {
  readonly pid: number;
  /** Why the process has ended; `undefined` while it runs. */
  failure(): Error | undefined;
  /** Sends the signal and resolves when the process is gone. */
  end(signal: NodeJS.Signals): Promise<void>;
}

/**
 * A shell that waits for the end of this process, whatever ends it, and then kills the server.
 * Node's own `exit` event does not come when a test runner terminates its worker.
 */
export function guard(pid: number, dir: string, removeDir: boolean): ChildProcess {
  const script = `cat >/dev/null; kill -9 "$1"; ${removeDir ? 'rm -rf "$2"' : ''}`;
  const shell = spawn('sh', ['-c', script, 'sh', `${pid}`, dir], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  shell.unref();
  (shell.stdin as unknown as { unref(): void }).unref();
  return shell;
}

/** Runs redis-server with these arguments. */
export function launch(args: readonly string[], dir: string, removeDir: boolean): ServerProcess {
  const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  let failure: Error | undefined;
  const listen = (chunk: Buffer): void => void (output = (output + chunk.toString()).slice(-4000));
  child.stdout.on('data', listen);
  child.stderr.on('data', listen);
  child.unref();
  const guardProcess = child.pid === undefined ? undefined : guard(child.pid, dir, removeDir);
  const gone = new Promise<void>((resolve) => {
    const over = (error: Error): void => {
      failure ??= error;
      guardProcess?.kill('SIGKILL');
      resolve();
    };
    child.once('error', (error) =>
      over(error.message.includes('ENOENT') ? new Error(MISSING, { cause: error }) : error),
    );
    child.once('close', (code, signal) => over(new Error(`redis-server ended (${code ?? signal}): ${output}`)));
  });
  return {
    pid: child.pid ?? 0,
    failure: () => failure,
    end: async (signal) => {
      if (!failure) child.kill(signal);
      await gone;
    },
  };
}

/** Whether a start failed because someone else had the port. */
export const refusesPort = (error: unknown): boolean => String(error).includes('Address already in use');

/**
 * One PING over a bare socket; any reply but LOADING means that the server serves (it may ask for a
 * password).
 */
const serves = (port: number): Promise<boolean> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
    socket.setTimeout(1000, () => socket.destroy(new Error(`no reply from port ${port}`)));
    socket.once('error', reject);
    socket.once('close', () => resolve(false));
    socket.once('data', (reply) => {
      resolve(!reply.toString().startsWith('-LOADING'));
      socket.destroy();
    });
  });

/** Resolves when the server answers; rejects at once when its process has ended. */
export async function untilPong(server: ServerProcess, port: number): Promise<void> {
  const ended = async (): Promise<boolean> => server.failure() !== undefined || serves(port);
  await until(`redis-server on port ${port} answers PING`, ended);
  const failure = server.failure();
  if (failure) throw failure;
}

import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { chownSync, readFileSync, readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Connection, createConnection } from 'mysql2/promise';
import pg from 'pg';
import { freePort, guard, until } from './redis-process.js';

/** A database server of a test, on loopback only. It dies with the process of the test, however that ends. */
export interface DatabaseServer {
  readonly port: number;
  /** Ends it by kill -9. What was committed is there afterwards: the system has it, though perhaps not yet the disk. */
  kill(): Promise<void>;
  /** Starts it again, on the same port and data. Resolves when it answers. */
  start(): Promise<void>;
  /** Removes its data. The next one that starts a server in this process gets this one: to make one takes seconds. */
  stop(): Promise<void>;
}

interface Kind {
  readonly name: string;
  readonly program: string;
  /** Who runs it where root may not. */
  readonly user: string | undefined;
  install(dir: string, run: (program: string, args: string[]) => void): void;
  args(dir: string, port: number): string[];
  ping(port: number): Promise<void>;
  /** Makes it as new: nobody is connected, and its database is empty. */
  empty(port: number): Promise<void>;
}

const START_TIMEOUT_MS = 60_000;
const CLOSE_TIMEOUT_MS = 2_000;

/** Tests kill processes, and never the machine: a disk that is waited for at each commit proves nothing. */
const UNSYNCED = ['fsync=off', 'full_page_writes=off'];

/** Debian keeps the programs of PostgreSQL out of PATH. */
function postgresProgram(name: string): string {
  const root = '/usr/lib/postgresql';
  try {
    const newest = readdirSync(root)
      .sort((a, b) => Number(b) - Number(a))
      .find((version) => readdirSync(join(root, version, 'bin')).includes(name));
    return newest === undefined ? name : join(root, newest, 'bin', name);
  } catch {
    return name;
  }
}

const POSTGRES: Kind = {
  name: 'postgresql',
  program: postgresProgram('postgres'),
  user: 'postgres',
  install: (dir, run) =>
    run(postgresProgram('initdb'), ['-D', dir, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync']),
  args: (dir, port) => [
    '-D',
    dir,
    '-p',
    String(port),
    '-h',
    '127.0.0.1',
    '-k',
    dir,
    ...['max_connections=60', ...UNSYNCED].flatMap((setting) => ['-c', setting]),
  ],
  async ping(port) {
    await onPostgres(port, 'postgres', []);
  },
  async empty(port) {
    // Connections that are being closed: to be told of an end by the server is an error to some of them.
    const isAlone = async (): Promise<boolean> =>
      (await onPostgres(port, 'template1', [`SELECT 1 FROM pg_stat_activity WHERE datname = 'postgres'`])) === 0;
    await until('nobody is connected', isAlone, CLOSE_TIMEOUT_MS).catch(() => undefined);
    await onPostgres(port, 'template1', ['DROP DATABASE postgres WITH (FORCE)', 'CREATE DATABASE postgres']);
  },
};

/** Runs statements one after the other. Returns how many rows the last one has. */
async function onPostgres(port: number, database: string, statements: readonly string[]): Promise<number> {
  let rows = 0;
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', database });
  client.on('error', () => undefined);
  try {
    await client.connect();
    for (const statement of statements) rows = (await client.query(statement)).rowCount ?? 0;
    return rows;
  } finally {
    await client.end();
  }
}

/** The same for MariaDB, whose log is 96 MB otherwise. */
const UNSYNCED_INNODB = [
  '--debug-no-sync',
  '--innodb-flush-method=nosync',
  '--innodb-flush-log-at-trx-commit=2',
  '--skip-innodb-doublewrite',
  '--innodb-log-file-size=16M',
];

const MARIADB: Kind = {
  name: 'mariadb-server',
  program: 'mariadbd',
  user: undefined,
  install: (dir, run) =>
    run('mariadb-install-db', [
      '--no-defaults',
      `--datadir=${dir}`,
      `--tmpdir=${dir}`,
      `--user=${process.getuid?.() === 0 ? 'root' : ''}`,
      '--auth-root-authentication-method=normal',
      '--skip-test-db',
      ...UNSYNCED_INNODB,
    ]),
  args: (dir, port) => [
    '--no-defaults',
    `--datadir=${dir}`,
    `--tmpdir=${dir}`, // a server that starts deletes the temporary tables of others in a shared one
    `--port=${port}`,
    '--bind-address=127.0.0.1',
    '--skip-name-resolve',
    `--socket=${join(dir, 'socket')}`,
    `--pid-file=${join(dir, 'pid')}`,
    '--innodb-buffer-pool-size=32M',
    ...UNSYNCED_INNODB,
    ...(process.getuid?.() === 0 ? ['--user=root'] : []),
  ],
  ping: (port) =>
    onMariadb(port, async (connection) => {
      await connection.query('CREATE DATABASE IF NOT EXISTS test');
    }),
  empty: (port) =>
    onMariadb(port, async (connection) => {
      // An open transaction would hold up DROP.
      const [others] = await connection.query(
        `SELECT id FROM information_schema.processlist WHERE user = 'root' AND id <> CONNECTION_ID()`,
      );
      for (const { id } of others as { id: number }[]) await connection.query(`KILL ${id}`).catch(() => undefined);
      await connection.query('DROP DATABASE test');
      await connection.query('CREATE DATABASE test');
    }),
};

async function onMariadb(port: number, work: (connection: Connection) => Promise<void>): Promise<void> {
  const connection = await createConnection({ host: '127.0.0.1', port, user: 'root' });
  try {
    await work(connection);
  } finally {
    await connection.end();
  }
}

/** Its database is `postgres`, its user `postgres`, without a password. */
export const startPostgres = (): Promise<DatabaseServer> => startDatabase(POSTGRES);

/** Its database is `test`, its user `root`, without a password. */
export const startMariadb = (): Promise<DatabaseServer> => startDatabase(MARIADB);

/** Servers that run and that nobody uses. */
const idle = new Map<Kind, Server[]>();

async function startDatabase(kind: Kind): Promise<DatabaseServer> {
  const used = idle.get(kind)?.pop();
  if (used) return used;
  const identity = kind.user !== undefined && process.getuid?.() === 0 ? identityOf(kind.user) : undefined;
  const dir = await mkdtemp(join(tmpdir(), `${kind.name}-test-`));
  if (identity) chownSync(dir, identity.uid, identity.gid);
  const run = (program: string, args: string[]): void => {
    try {
      execFileSync(program, args, { ...identity, stdio: 'pipe', cwd: dir });
    } catch (error) {
      throw missing(kind, error as NodeJS.ErrnoException);
    }
  };
  kind.install(dir, run);
  const server = new Server(kind, await freePort(), dir, identity);
  await server.start();
  return server;
}

class Server implements DatabaseServer {
  private child: ChildProcess | undefined;
  private gone: Promise<void> = Promise.resolve();

  constructor(
    private readonly kind: Kind,
    readonly port: number,
    private readonly dir: string,
    private readonly identity: { uid: number; gid: number } | undefined,
  ) {}

  async start(): Promise<void> {
    const { kind, port, dir, identity } = this;
    const child = spawn(kind.program, kind.args(dir, port), {
      ...identity,
      cwd: dir,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let output = '';
    child.stderr.on('data', (chunk: Buffer) => (output = (output + chunk.toString()).slice(-4000)));
    child.unref();
    (child.stderr as unknown as { unref(): void }).unref();
    const guardProcess = child.pid === undefined ? undefined : guard(child.pid, dir, true);
    let failure: Error | undefined;
    this.child = child;
    this.gone = new Promise((resolve) => {
      child.once('error', (error) => {
        failure = missing(kind, error);
        resolve();
      });
      child.once('exit', () => {
        failure ??= new Error(`${kind.program} ended: ${output}`);
        guardProcess?.kill('SIGKILL');
        resolve();
      });
    });
    const answers = () => kind.ping(port).then(() => true);
    await until(
      `${kind.name} on port ${port} answers`,
      async () => failure !== undefined || answers(),
      START_TIMEOUT_MS,
    );
    if (failure) throw failure;
  }

  async kill(): Promise<void> {
    const { child } = this;
    child?.kill('SIGSTOP'); // it makes no more children
    const children = child?.pid === undefined ? [] : childrenOf(child.pid);
    child?.kill('SIGKILL');
    for (const pid of children) end(pid);
    await this.gone;
    // PostgreSQL does not start again while one of them is there.
    await until(`the children of ${this.kind.name} are gone`, async () => !children.some(isRunning));
    this.child = undefined;
  }

  async stop(): Promise<void> {
    try {
      if (!this.child) throw new Error('it was killed');
      await this.kind.empty(this.port);
      idle.set(this.kind, [...(idle.get(this.kind) ?? []), this]);
    } catch {
      await this.kill();
      await rm(this.dir, { recursive: true, force: true });
    }
  }
}

const lines = (program: string, args: string[]): string[] => {
  const { stdout } = spawnSync(program, args, { encoding: 'utf8' });
  return stdout.split('\n').filter((line) => line.trim() !== '');
};

const childrenOf = (pid: number): number[] => lines('pgrep', ['-P', `${pid}`]).map(Number);

/** One that has ended, and that nobody has asked for its end, is there still. */
const isRunning = (pid: number): boolean =>
  lines('ps', ['-o', 'stat=', '-p', `${pid}`]).some((state) => !state.startsWith('Z'));

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it is gone
  }
}

/** @throws when the system has no such user */
function identityOf(user: string): { uid: number; gid: number } {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((one) => one.startsWith(`${user}:`));
  const [, , uid, gid] = line?.split(':') ?? [];
  if (uid === undefined) throw new Error(`root cannot run PostgreSQL, and the system has no user "${user}"`);
  return { uid: Number(uid), gid: Number(gid) };
}

function missing({ name, program }: Kind, error: NodeJS.ErrnoException): Error {
  if (error.code !== 'ENOENT') return error;
  const remedy = `install it (apt-get install ${name}) and run again`;
  return new Error(`${program} was not found, and these tests talk to a real one: ${remedy}`, { cause: error });
}

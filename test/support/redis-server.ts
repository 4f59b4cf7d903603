import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ServerProcess, freePort, launch, refusesPort, untilPong } from './redis-process.js';

export interface RedisOptions {
  /** Further redis-server arguments, after (and so over) ours: `['--maxmemory', '10mb']`. */
  args?: string[];
  /**
   * Every acknowledged write survives a SIGKILL, as the system has it before the reply. Nothing waits for the disk. Default false:
   * nothing is persisted.
   */
  appendOnly?: boolean;
  /** Default: a free one. */
  port?: number;
  /** Default: a new temporary directory, which `stop` removes. A given one is left in place. */
  dir?: string;
}

/**
 * A redis-server of a test, on loopback only. It dies with the process of the test, however that
 * ends.
 */
export class RedisProcess {
  readonly host = '127.0.0.1';
  private server: ServerProcess | undefined;

  constructor(
    readonly port: number,
    readonly dir: string,
    private readonly args: readonly string[],
    private readonly ownsDir: boolean,
  ) {}

  get url(): string {
    return `redis://${this.host}:${this.port}`;
  }

  /** Process id, `undefined` while it is down. */
  get pid(): number | undefined {
    return this.server?.pid;
  }

  /** Resolves when the server answers PING. */
  async start(): Promise<void> {
    const args = ['--port', `${this.port}`, '--bind', this.host, '--dir', this.dir, '--save', '', ...this.args];
    this.server = launch(args, this.dir, this.ownsDir);
    await untilPong(this.server, this.port);
  }

  /** Resolves when the process is gone. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await this.server?.end(signal);
    this.server = undefined;
  }

  /** Stops the process (SIGKILL) if it runs and starts it again on the same port and directory. */
  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  /** Kills the process and removes its temporary directory. */
  async stop(): Promise<void> {
    await this.kill();
    if (this.ownsDir) await rm(this.dir, { recursive: true, force: true });
  }
}

const persistence = (appendOnly: boolean | undefined): string[] =>
  appendOnly ? ['--appendonly', 'yes', '--appendfsync', 'no'] : ['--appendonly', 'no'];

/**
 * Starts a redis-server; a port taken by someone else in the meantime is exchanged for another one.
 */
export async function startRedis(options: RedisOptions = {}): Promise<RedisProcess> {
  const args = [...persistence(options.appendOnly), ...(options.args ?? [])];
  for (let attempt = 1; ; attempt++) {
    const dir = options.dir ?? (await mkdtemp(join(tmpdir(), 'redis-test-')));
    const redis = new RedisProcess(options.port ?? (await freePort()), dir, args, options.dir === undefined);
    try {
      await redis.start();
      return redis;
    } catch (error) {
      await redis.stop();
      if (options.port !== undefined || attempt === 5 || !refusesPort(error)) throw error;
    }
  }
}

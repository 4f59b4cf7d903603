import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { packageVersion } from '../../lib/dashboard/package-version.js';
import { request } from '../support/messages.js';
import { startRedis, type RedisProcess } from '../support/redis.js';
import { Program, Programs, repository } from './program.js';

const main = join(repository, 'dist', 'cli', 'main.js');
const programs = new Programs();
let redis: RedisProcess;
let home: string;

beforeAll(async () => {
  [redis, home] = await Promise.all([startRedis(), mkdtemp(join(tmpdir(), 'asynq-cli-'))]);
});
afterAll(async () => {
  await programs.destroy();
  await redis.stop();
  await rm(home, { recursive: true });
});

const start = (args: string[], env: NodeJS.ProcessEnv = {}, nodeArgs: string[] = []): Program =>
  programs.start(process.execPath, [...nodeArgs, main, ...args], { HOME: home, ...env });

async function run(args: string[], env?: NodeJS.ProcessEnv, nodeArgs?: string[]) {
  const program = start(args, env, nodeArgs);
  const { code } = await program.ended;
  return { status: code, stdout: program.stdout, stderr: program.stderr };
}

async function seed(queue: string, count: number): Promise<void> {
  const broker = new RedisBroker(new RedisConnections({ host: redis.host, port: redis.port }));
  const tasks = Array.from({ length: count }, () => request({ queue }));
  for (let from = 0; from < count; from += 500) await broker.producer.enqueue(queue, tasks.slice(from, from + 500));
  await broker.close();
}

describe('the process', () => {
  it('ends with 0, 1 or 2, with errors on standard error', async () => {
    const env = { ASYNQ_URI: redis.url };
    expect(await run(['version'])).toEqual({
      status: 0,
      stdout: `nestjs-asynq version ${packageVersion}\n`,
      stderr: '',
    });
    expect(await run(['queue', 'ls'], env)).toEqual({ status: 0, stdout: '', stderr: '' });
    expect(await run(['task', 'run', '-q', 'a', '-i', 'b'], env)).toEqual({
      status: 1,
      stdout: '',
      stderr: 'error: queue not found: queue="a"; see `nestjs-asynq queue list`\n',
    });
    expect(await run(['task', 'run', '-q', 'a'], env)).toMatchObject({ status: 2, stdout: '' });
  });

  it('finds its config file', async () => {
    await writeFile(join(home, '.asynq.yaml'), `uri: ${redis.url}\n`);
    await seed('of-the-file', 1);
    expect(await run(['queue', 'ls'])).toMatchObject({ status: 0, stdout: 'of-the-file\n' });
    const other = join(home, 'other.json');
    await writeFile(other, `{"uri": "127.0.0.1:1"}`);
    expect(await run(['queue', 'ls', '--config', other])).toMatchObject({ status: 1 });
    expect((await run(['queue', 'ls', '--config', other], { URI: redis.url })).status).toBe(0);
    await rm(join(home, '.asynq.yaml'));
  });

  it('loads only what it needs', async () => {
    const tracer = ['--import', join(repository, 'test', 'e2e', 'loaded-modules.mjs')];
    const loadedBy = async (...args: string[]) => {
      const { stderr, status } = await run(args, { URI: redis.url }, tracer);
      expect(status).toBe(0);
      return stderr.split('\n').filter((line) => line.startsWith('loaded '));
    };
    const foreign = /node_modules\/(ioredis|@nestjs|rxjs|reflect-metadata|yaml|cli-progress)\/|chunks\/redis-broker/;
    for (const args of [['version'], ['--help'], ['task', '--help'], ['completion', 'bash']]) {
      const loaded = await loadedBy(...args);
      expect(loaded.filter((line) => foreign.test(line))).toEqual([]);
      expect(loaded.length).toBeGreaterThan(10);
      expect(loaded.length).toBeLessThan(40);
    }
    const connected = await loadedBy('queue', 'ls');
    expect(connected).toEqual(
      expect.arrayContaining([expect.stringMatching(/ioredis/), expect.stringMatching(/chunks\/redis-broker/)]),
    );
    expect(connected.filter((line) => /@nestjs|rxjs|reflect-metadata|yaml|cli-progress/.test(line))).toEqual([]);
  });

  it('is quiet when its reader closes the output', async () => {
    await seed('many', 1_000);
    const line = `"$0" "$1" task list -q many -s pending --size 1000 --json | head -n 1; echo "\${PIPESTATUS[0]}"`;
    const env = { PATH: process.env['PATH'], ASYNQ_URI: redis.url };
    const outcome = await new Promise((resolve) => {
      execFile('bash', ['--norc', '-c', line, process.execPath, main], { env }, (error, stdout, stderr) =>
        resolve({ error, stdout, stderr }),
      );
    });
    expect(outcome).toEqual({ error: null, stdout: '{\n0\n', stderr: '' });
  });

  it.skipIf(!existsSync('/dev/full')).each([['stats'], ['queue ls'], ['version'], ['--help'], ['completion bash']])(
    'says in one line that its output cannot be written, and fails: %s',
    async (args) => {
      const outcomeOf = (redirection: string) => {
        const env = { PATH: process.env['PATH'], ASYNQ_URI: redis.url };
        const line = `"$0" "$1" ${args} ${redirection}`;
        return new Promise((resolve) => {
          execFile('bash', ['--norc', '-c', line, process.execPath, main], { env }, (error, _, stderr) =>
            resolve([error?.code, stderr]),
          );
        });
      };
      const error = 'error: cannot write the output: ENOSPC: no space left on device, write\n';
      expect(await outcomeOf('> /dev/full')).toEqual([1, error]);
      expect(await outcomeOf('&> /dev/full')).toEqual([1, '']);
    },
  );

  it('ends quietly with 130 at Ctrl-C', async () => {
    const server = createServer().listen(0, '127.0.0.1'); // answers nothing
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const connected = new Promise<void>((resolve) =>
      server.once('connection', (socket) => {
        onTestFinished(() => void socket.destroy());
        resolve();
      }),
    );
    const program = start(['queue', 'ls', '-u', `127.0.0.1:${(server.address() as AddressInfo).port}`]);
    await connected;
    program.interrupt();
    expect(await program.ended).toEqual({ code: 130, signal: null });
    expect(program.output.trim()).toBe('');
  });
});

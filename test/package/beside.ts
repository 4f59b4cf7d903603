import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { startRedis, type RedisProcess } from '../support/redis.js';
import { packageVersion } from '../../lib/dashboard/package-version.js';
import { Workshop, must, run } from './consumer.js';

const bundler = { module: 'preserve', resolution: 'bundler' };
/** TypeScript before 7 only: what many apps on Nest 11 still have. It knows no exports map. */
const node10 = { module: 'commonjs', resolution: 'node10' };
const jestEsm = { way: 'its ES modules', app: 'esm', config: 'jest.esm.json', flags: '--experimental-vm-modules' };
/** CommonJS through ts-jest, as `nest new` sets it up for Nest 11. */
const jestCli = { way: 'ts-jest', app: 'cjs', config: 'jest.nest-cli.json', flags: '' };
const users = {
  // Both compile with their own TypeScript: 7.0 beside Nest 12, 5.9 beside Nest 11.
  nest12: { resolutions: [bundler], jest: [jestEsm], others: ['typescript-5.4', 'typescript-6.0'] },
  nest11: { resolutions: [node10], jest: [jestEsm, jestCli], others: [] },
};

/**
 * The package as its users get it: packed, installed elsewhere beside Nest 11 or 12, compiled and run from an ESM and
 * from a CommonJS app. class-validator and class-transformer are not installed in any of them.
 */
export function exerciseBeside(nest: keyof typeof users): void {
  vi.setConfig({ testTimeout: 360_000, hookTimeout: 360_000 });
  const workshop = new Workshop();
  let redis: RedisProcess;
  let folder: string;
  const bin = (name: string) => join(folder, 'node_modules', '.bin', name);
  const node = (app: string, program: string, env: NodeJS.ProcessEnv = {}) =>
    run(join(folder, app), process.execPath, [join('dist', `${program}.js`)], env, 60);
  const compileWith = (compiler: string, app: string, ...flags: string[]) =>
    run(join(folder, app), process.execPath, [join(folder, 'node_modules', compiler, 'bin', 'tsc'), ...flags]);
  const compile = (app: string, ...flags: string[]) => compileWith('typescript', app, ...flags);

  beforeAll(async () => {
    [folder, redis] = await Promise.all([workshop.install(nest, inject('tarball')), startRedis()]);
  });
  afterAll(async () => {
    await redis?.stop();
    await workshop.remove();
  });

  it('installs without a conflict, and without its optional peers', async () => {
    await must(folder, 'npm', ['ls', '--all']);
    expect(existsSync(join(folder, 'node_modules', 'class-validator'))).toBe(false);
    expect(existsSync(join(folder, 'node_modules', 'class-transformer'))).toBe(false);
  });

  it('has the command line', async () => {
    const npx = (...args: string[]) => run(join(folder, 'esm'), 'npx', ['--no-install', 'nestjs-asynq', ...args]);
    expect(await npx('version')).toMatchObject({ stdout: `nestjs-asynq version ${packageVersion}\n`, status: 0 });
    const paused = await npx('queue', 'pause', nest, '-u', redis.url);
    expect(paused).toMatchObject({ stdout: `Queue "${nest}" is paused\n`, status: 0 });
  });

  describe.each(['esm', 'cjs'])('an app that is %s', (app) => {
    it('compiles with the payload types of its tasks, every declaration checked', async () => {
      expect(await compile(app)).toMatchObject({ stdout: '', status: 0 });
      const code = readFileSync(join(folder, app, 'dist', 'memory.js'), 'utf8');
      expect(code.includes('require(')).toBe(app === 'cjs');
    });

    it('runs a task in memory, and ends by itself', async () => {
      const outcome = await node(app, 'memory');
      expect(outcome).toEqual({ stdout: '["letter:send to memory after 0 retries"]\n', stderr: '', status: 0 });
    });

    it('runs a task on Redis, and ends by itself', async () => {
      const outcome = await node(app, 'redis', { REDIS_URL: redis.url });
      expect(outcome).toEqual({ stdout: '["letter:send to redis after 0 retries"]\n', stderr: '', status: 0 });
    });

    it('has metrics in the registry of its prom-client', async () => {
      const outcome = await node(app, 'metrics');
      expect(outcome).toEqual({ stdout: 'nestjs_asynq_slots 2\n', stderr: '', status: 0 });
    });

    it('has the outbox, without a library for databases', async () => {
      const outcome = await node(app, 'outbox');
      expect(outcome).toEqual({ stdout: 'ASYNQ_INVALID_OPTION 5\n', stderr: '', status: 0 });
    });

    it('has the console on Express and on Fastify', async () => {
      const seen = '[200,200,204,"archived",404,"ASYNQ_QUEUE_NOT_FOUND"]';
      const outcome = await node(app, 'dashboard');
      expect(outcome).toEqual({ stdout: `[${seen},${seen}]\n`, stderr: '', status: 0 });
    });

    it('is tested with the testing kit', async () => {
      const outcome = await node(app, 'testing');
      expect(outcome).toEqual({ stdout: '[1,"letter:send to nobody after 2 retries"]\n', stderr: '', status: 0 });
    });
  });

  it.each(users[nest].resolutions)('has types for module resolution $resolution', async (options) => {
    const flags = ['--noEmit', '--skipLibCheck', '--module', options.module, '--moduleResolution', options.resolution];
    expect(await compile('cjs', ...flags)).toMatchObject({ stdout: '', status: 0 });
  });

  it.each(users[nest].others)('has types that %s accepts, every declaration checked', async (compiler) => {
    expect(await compileWith(compiler, 'esm', '--noEmit')).toMatchObject({ stdout: '', status: 0 });
  });

  it.each(users[nest].jest)('is tested in Jest with $way', async ({ app, config, flags }) => {
    const outcome = await run(join(folder, app), bin('jest'), ['--config', config], { NODE_OPTIONS: flags });
    expect(outcome.stderr).toMatch(/Tests: +1 passed, 1 total/);
    expect(outcome.status).toBe(0);
  });
}

import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RedisConnections } from '../../lib/broker/redis/connection/connections.js';
import { RedisBroker } from '../../lib/broker/redis/redis-broker.js';
import { arrangeEveryState } from '../support/every-state.js';
import { startRedis, type RedisProcess } from '../support/redis.js';
import { repository } from './program.js';

const page = await readFile(join(repository, 'docs', 'command-line.md'), 'utf8');
const tutorial = await readFile(join(repository, 'docs', 'tutorial.md'), 'utf8');
const scriptsOf = (text: string): string[] => [...text.matchAll(/^```bash\n(.*?)^```$/gms)].map(([, code]) => code!);
const blocks = [...scriptsOf(page), ...scriptsOf(tutorial).filter((script) => script.includes('npx nestjs-asynq'))];

describe('docs/command-line.md', () => {
  let redis: RedisProcess;
  let folder: string;

  beforeAll(async () => {
    [redis, folder] = await Promise.all([startRedis(), mkdtemp(join(tmpdir(), 'asynq-docs-'))]);
    const broker = new RedisBroker(new RedisConnections({ host: redis.host, port: redis.port }));
    await arrangeEveryState(broker);
    await broker.close();
    const main = join(repository, 'dist', 'cli', 'main.js');
    const npx = join(folder, 'npx');
    await writeFile(npx, `#!/bin/sh\nshift\nexec '${process.execPath}' '${main}' "$@"\n`);
    await chmod(npx, 0o755);
  });
  afterAll(async () => {
    await redis.stop();
    await rm(folder, { recursive: true });
  });

  /** Each line of a block by itself would not know the functions before it. */
  const run = (script: string): Promise<{ status: number; stdout: string; stderr: string }> =>
    new Promise((resolve) => {
      const env = { PATH: `${folder}:${process.env['PATH']}`, HOME: folder, ASYNQ_URI: redis.url };
      execFile('bash', ['--norc', '-ec', script], { env }, (error, stdout, stderr) =>
        resolve({ status: Number(error?.code ?? 0), stdout, stderr }),
      );
    });

  const elsewhere = (script: string): boolean => script.includes('localhost:');

  it('has scripts', () => {
    expect(blocks.filter(elsewhere)).toHaveLength(1);
    expect(blocks.length).toBeGreaterThanOrEqual(6);
  });

  it.each(blocks.filter((block) => !elsewhere(block)))('has a script that runs:\n%s', async (script) => {
    const { status, stderr } = await run(script);
    expect([status, stderr]).toEqual([0, '']);
  });

  it.concurrent.for(blocks.filter(elsewhere).flatMap((block) => block.trim().split('\n')))(
    'names another Redis, there or not: %s',
    async (line, { expect }) => {
      const { status, stderr } = await run(line);
      expect(status).toBeLessThan(2);
      expect(stderr).toMatch(/^(error: no connection to Redis at .*\n)?$/);
    },
  );

  it('tells of every command', async () => {
    const { stdout } = await run(
      'npx nestjs-asynq __complete -- ""; for g in queue task server cron group; do npx nestjs-asynq __complete -- $g ""; done',
    );
    const names = stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => line.split('\t')[0]!);
    expect(names.length).toBeGreaterThan(20);
    for (const name of names) expect(page).toMatch(new RegExp(`[\` ]${name}\\b`));
  });
});

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { ours } from './ours.js';
import type { System } from './system.js';

/** nestjs-asynq on a Redis that has a replica on this machine. @param acknowledged whether each call waits for the replica */
export async function replicated(port: number, acknowledged: boolean): Promise<System> {
  const dir = mkdtempSync(join(tmpdir(), 'bench-replica-'));
  const own = ['--port', `${await freePort()}`, '--save', '', '--dir', dir];
  const replica = spawn('redis-server', [...own, '--replicaof', '127.0.0.1', `${port}`], { stdio: 'ignore' });
  const master = new Redis(port);
  await master.config('SET', 'repl-diskless-sync-delay', '0');
  while ((await master.wait(1, 1_000)) < 1); // it is empty: the replica is in step at once
  const system = await ours(port, 'plain', acknowledged ? { replicas: 1, timeout: '5s' } : false);
  return {
    ...system,
    close: async () => {
      await system.close();
      master.disconnect();
      replica.kill('SIGKILL');
      await new Promise((resolve) => replica.once('close', resolve));
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

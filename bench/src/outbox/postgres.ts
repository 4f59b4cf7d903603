import { execFileSync, spawn } from 'node:child_process';
import { chownSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';

export const settingsOf = (port: number) => ({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' });

/** Debian keeps the programs of PostgreSQL out of PATH. */
function program(name: string): string {
  const root = '/usr/lib/postgresql';
  try {
    const newest = readdirSync(root).sort((a, b) => Number(b) - Number(a))[0];
    return newest === undefined ? name : join(root, newest, 'bin', name);
  } catch {
    return name;
  }
}

/** Root may not run PostgreSQL. */
function identity(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((one) => one.startsWith('postgres:'))!;
  const [, , uid, gid] = line.split(':');
  return { uid: Number(uid), gid: Number(gid) };
}

/** A PostgreSQL with its default settings, also about the disk, in a folder of its own. */
export async function startPostgres(port: number): Promise<() => void> {
  const who = identity();
  const dir = mkdtempSync(join(tmpdir(), 'asynq-bench-pg-'));
  if (who) chownSync(dir, who.uid, who.gid);
  const options = { ...who, cwd: dir, stdio: 'ignore' as const };
  execFileSync(program('initdb'), ['-D', dir, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8'], options);
  const server = spawn(program('postgres'), ['-D', dir, '-p', `${port}`, '-h', '127.0.0.1', '-k', dir], options);
  for (let left = 200; ; left--) {
    const client = new pg.Client(settingsOf(port));
    try {
      await client.connect();
      await client.end();
      break;
    } catch (error) {
      if (left === 0) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  return () => {
    server.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true, maxRetries: 20 });
  };
}

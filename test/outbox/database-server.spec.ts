import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { startPostgres } from '../support/database-server.js';

it('starts again after it was killed, though one of its processes is slow to end', async () => {
  const server = await startPostgres();
  onTestFinished(() => server.stop());
  const client = new pg.Client({ host: '127.0.0.1', port: server.port, user: 'postgres', database: 'postgres' });
  client.on('error', () => undefined);
  await client.connect();
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  process.kill(rows[0]!.pid, 'SIGSTOP');
  await server.kill();
  await server.start();
  await expect(client.query('SELECT 1')).rejects.toThrow();
});

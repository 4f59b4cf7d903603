import { describe, expect, it } from 'vitest';
import { runInProcess } from '../support/command-line.js';

const after = async (...words: string[]): Promise<string[]> => {
  const { status, stdout, stderr } = await runInProcess(['__complete', '--', ...words], {
    env: { URI: '127.0.0.1:1' },
  });
  expect([status, stderr]).toEqual([0, '']);
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split('\t')[0]!);
};

describe('completion', () => {
  it('knows the commands', async () => {
    const all = [
      'stats',
      'dash',
      'queue',
      'task',
      'server',
      'cron',
      'group',
      'lock',
      'workflow',
      'batch',
      'outbox',
      'completion',
      'version',
    ];
    expect(await after('')).toEqual(all);
    expect(await after('qu')).toEqual(['queue']);
    expect(await after('-u', 'queue', 's')).toEqual(['stats', 'server']);
    expect(await after('queue', 're')).toEqual(['resume', 'remove']);
    expect(await after('--db=3', 'cron', '--tls', 'l')).toEqual(['list']);
    expect(await after('nonsense', 'x')).toEqual([]);
    expect((await runInProcess(['__complete', '--', 'group', ''])).stdout).toBe(
      'list\tlist the groups of a queue with waiting tasks\n',
    );
  });

  it('knows the flags, and the values of flags with choices', async () => {
    expect(await after('task', 'ls', '--cu')).toEqual(['--cursor']);
    expect(await after('task', 'ls', '--cl')).toEqual(['--cluster', '--cluster_addrs']);
    expect(await after('task', 'archiveall', '-s', '')).toEqual([
      'pending',
      'scheduled',
      'retry',
      'completed',
      'aggregating',
      'waiting',
      'held',
    ]);
    expect(await after('task', 'archiveall', '--state=s')).toEqual(['--state=scheduled']);
    expect(await after('completion', '')).toEqual(['bash', 'zsh', 'fish']);
    expect(await after('queue', 'remove', '-q', '--fo')).toEqual(['--force']);
  });

  it('offers no names when Redis is unavailable or the line is wrong', async () => {
    expect(await after('queue', 'inspect', '')).toEqual([]);
    expect(await after('-n', 'x', 'queue', 'inspect', '')).toEqual([]);
  });

  it.each(['bash', 'zsh', 'fish'])('has a script for %s', async (shell) => {
    const { status, stdout } = await runInProcess(['completion', shell]);
    expect(status).toBe(0);
    expect(stdout).toContain('nestjs-asynq');
    expect(stdout).toContain('__complete -- ');
  });

  it('has none for other shells', async () => {
    const { status, stderr } = await runInProcess(['completion', 'csh']);
    expect([status, stderr]).toEqual([2, expect.stringContaining('Allowed choices are bash, zsh, fish')]);
  });
});

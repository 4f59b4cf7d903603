import { expect } from 'vitest';
import { it as base } from '../contract/redis-fixture.js';
import { type CommandEnvironment, type CommandResult, runInProcess } from '../support/command-line.js';

/** A test that gives lines to the command, connected to the driver's Redis. */
export const it = base
  .extend(
    'run',
    async ({ driver: { server, clock } }) =>
      (line: string | string[], more: CommandEnvironment = {}): Promise<CommandResult> => {
        const args = typeof line === 'string' ? line.split(' ') : line;
        return runInProcess(['--uri', `${server.host}:${server.port}`, ...args], { clock, ...more });
      },
  )
  /** The lines of the output; fails on any other status, and on any note. */
  .extend('lines', async ({ run }) => async (line: string | string[], more?: CommandEnvironment): Promise<string[]> => {
    const { status, stdout, stderr } = await run(line, more);
    expect([status, stderr]).toEqual([0, '']);
    return stdout.split('\n').slice(0, -1);
  })
  .extend(
    'json',
    async ({ lines }) =>
      async (line: string): Promise<unknown> =>
        JSON.parse((await lines(`${line} --json`)).join('\n')),
  );

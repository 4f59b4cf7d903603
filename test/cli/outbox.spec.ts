import { outboxSchema } from 'nestjs-asynq/outbox';
import { describe, expect, it } from 'vitest';
import { runInProcess } from '../support/command-line.js';

describe('outbox sql', () => {
  it.each(['postgres', 'mysql', 'sqlite'] as const)('prints the tables for %s', async (dialect) => {
    const { status, stdout, stderr } = await runInProcess(['outbox', 'sql', '--dialect', dialect]);
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout.split(';\n\n').filter(Boolean)).toEqual(outboxSchema(dialect));
  });

  it('takes the name of the table', async () => {
    const { stdout } = await runInProcess(['outbox', 'sql', '--dialect', 'postgres', '--table', 'jobs.mail']);
    expect(stdout).toContain('CREATE TABLE jobs.mail (');
    expect(stdout).toContain('CREATE TABLE jobs.mail_senders (');
    expect(stdout).toContain('CREATE INDEX jobs_mail_new ON jobs.mail ');
  });

  it.each([
    [['--dialect', 'oracle'], /'oracle' is invalid. Allowed choices are postgres, mysql, sqlite/],
    [[], /required option '--dialect <name>' not specified/],
    [['--dialect', 'sqlite', '--table', 'jobs.mail'], /a table of SQLite has no schema before its name: "jobs.mail"/],
    [['--dialect', 'mysql', '--table', 'x; DROP'], /small letters, digits and _, not "x; DROP"/],
  ])('refuses %j', async (args, message) => {
    const { status, stdout, stderr } = await runInProcess(['outbox', 'sql', ...args]);
    expect([status, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(message);
  });
});

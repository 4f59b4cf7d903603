import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { DatabaseServer } from '../support/database-server.js';
import { type CommandEnvironment, runInProcess } from '../support/command-line.js';
import { createTables, fileOf, MYSQL, PG, SQLITE, type StoreKind, type StoreWorld } from './stores.js';

const URLS: Readonly<Record<string, (server: DatabaseServer) => string>> = {
  postgres: ({ port }) => `postgres://postgres@127.0.0.1:${port}/postgres`,
  mysql: ({ port }) => `mariadb://root@127.0.0.1:${port}/test`,
  sqlite: (server) => `sqlite:${fileOf(server)}`,
};

const BYTES: Readonly<Record<string, string>> = { postgres: "'\\x00'", mysql: "x'00'", sqlite: "x'00'" };

describe.each([PG, MYSQL, SQLITE])('the rows of an outbox in $name', (kind: StoreKind) => {
  let server: DatabaseServer;
  let world: StoreWorld;
  let url: string;
  beforeAll(async () => {
    server = await kind.start();
    world = await kind.open(server);
    url = URLS[kind.dialect]!(server);
  });
  afterAll(async () => {
    await world.close();
    await server.stop();
  });
  beforeEach(async () => {
    await createTables(world, kind);
    // Ids 1 to 5. The first is from the year 1970.
    const rows: [queue: string, state: string, error: string | null, createdAt: string][] = [
      ['mails', 'poisoned', '100% broken', '0'],
      ['mails', 'poisoned', 'cannot be read', '9000000000000000'],
      ['files', 'poisoned', 'cannot be read', '9000000000000000'],
      ['files', 'new', null, '0'],
      ['files', 'sent', null, '0'],
    ];
    for (const [index, [queue, state, error, createdAt]] of rows.entries()) {
      const values = `'${queue}', 't${index + 1}', 'send', ${BYTES[kind.dialect]}, '{}', '${state}', ${createdAt}`;
      const columns = 'queue, task_id, type, message, details, state, created_at, error';
      await world.sql(`INSERT INTO asynq_outbox (${columns}) VALUES (${values}, ${error ? `'${error}'` : 'NULL'})`);
    }
  });

  const outbox = (line: string, environment: CommandEnvironment = {}) =>
    runInProcess(['outbox', ...line.split(' ')], { ...environment, env: { ASYNQ_DATABASE: url } });
  const states = async () =>
    (await world.sql('SELECT state FROM asynq_outbox ORDER BY id')).map(({ state }) => String(state));
  const listed = async (flags: string) => {
    const { status, stdout, stderr } = await outbox(`rows --json ${flags}`);
    expect([status, stderr]).toEqual([0, '']);
    const { rows, next } = JSON.parse(stdout) as { rows: { id: number }[]; next: number | null };
    return [rows.map(({ id }) => id), next];
  };

  it('are listed by state, queue, error and age, page by page', async () => {
    expect(await listed('-s poisoned')).toEqual([[1, 2, 3], null]);
    expect(await listed('-s new')).toEqual([[4], null]);
    expect(await listed('-q files')).toEqual([[3], null]);
    expect(await listed('--error read')).toEqual([[2, 3], null]);
    expect(await listed('--error 0%')).toEqual([[1], null]);
    expect(await listed('--error 0_')).toEqual([[], null]);
    expect(await listed('--older-than 1h')).toEqual([[1], null]);
    expect(await listed('--size 2')).toEqual([[1, 2], 2]);
    expect(await listed('--size 2 --after 2')).toEqual([[3], null]);
    const { stdout } = await outbox('rows --error broken');
    expect(stdout).toMatch(/^Row +Queue +Type +Task +Age +Error\n *1 +mails +send +t1 +\d+h\d+m\d+s +100% broken\n$/);
    expect(await outbox('rows -s taken')).toMatchObject({
      status: 0,
      stdout: '',
      stderr: 'No rows of the state "taken"\n',
    });
    const { rows } = JSON.parse((await outbox('rows --json -s new')).stdout) as { rows: object[] };
    expect(rows).toEqual([
      {
        id: 4,
        queue: 'files',
        taskId: 't4',
        type: 'send',
        state: 'new',
        error: null,
        age: expect.any(Number) as number,
      },
    ]);
  });

  it('are tried once more when they are poisoned, and no others', async () => {
    expect((await outbox('retry --error read --dry-run')).stdout).toBe('2 rows would be tried once more\n');
    expect((await outbox('retry 1 5 99')).stdout).toBe('1 row new again\n');
    expect(await states()).toEqual(['new', 'poisoned', 'poisoned', 'new', 'sent']);
    expect((await outbox('retry')).stdout).toBe('2 rows new again\n');
    expect(await states()).toEqual(['new', 'new', 'new', 'new', 'sent']);
  });

  it('are deleted after they were counted, and somebody has said yes', async () => {
    expect((await outbox('delete -q mails --dry-run')).stdout).toBe('2 rows would be deleted\n');
    const asked = await outbox('delete -q mails', { columns: 80, input: 'n\n' });
    expect([asked.status, asked.stderr]).toEqual([
      1,
      expect.stringContaining('Delete 2 rows of the state "poisoned"? [y/N]'),
    ]);
    expect(await outbox('delete 1')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('add --yes') as string,
    });
    expect(await states()).toHaveLength(5);
    expect((await outbox('delete 1 4 --yes')).stdout).toBe('1 row deleted\n');
    expect((await outbox('delete -s sent --yes')).stdout).toBe('1 row deleted\n');
    expect(await states()).toEqual(['poisoned', 'poisoned', 'new']);
    expect((await outbox('delete -s taken --yes')).status).toBe(2);
  });
});

describe('the database of an outbox', () => {
  const rows = (...flags: string[]) => runInProcess(['outbox', 'rows', ...flags]);

  it.each([
    [[], /which database\? give the database with --database or ASYNQ_DATABASE/],
    [['--database', 'redis://secret@localhost'], /^error: this is no database of an outbox; give the database/],
    [['--database', 'sqlite:/nowhere/app.db'], /the file "\/nowhere\/app.db" cannot be opened/],
    [
      ['--database', 'postgres://u:secret@127.0.0.1:1/app'],
      /the database of the outbox cannot be reached \(.*ECONNREFUSED/,
    ],
    [
      ['--database', 'mysql://u:secret@127.0.0.1:1/app'],
      /the database of the outbox cannot be reached \(.*ECONNREFUSED/,
    ],
    [['--size', '1001'], /It must be at most 1000/],
  ])('is refused: %j', async (flags, message) => {
    const { status, stdout, stderr } = await rows(...flags);
    expect([status, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(message);
    expect(stderr).not.toContain('secret');
  });

  it('needs ids that are numbers', async () => {
    const { status, stderr } = await runInProcess(['outbox', 'retry', 'x17', '--database', 'sqlite:/nowhere/app.db']);
    expect([status, stderr]).toEqual([2, 'error: the id of a row is a number, not "x17"\n']);
  });
});

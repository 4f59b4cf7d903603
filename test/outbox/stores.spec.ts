import { randomUUID } from 'node:crypto';
import { outboxSchema, type OutboxStore, type OwnedSender } from 'nestjs-asynq/outbox';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { DatabaseServer } from '../support/database-server.js';
import { KINDS } from './library-stores.js';
import { createTables, type StoreWorld } from './stores.js';

const LEASE = 30_000;
/** Over before it begins; MariaDB's clock has whole seconds. */
const OVER = -2_000;
const NONE = { ended: [], except: [] } as const;

const row = (queue: string, taskId: string = randomUUID()) => ({
  queue,
  taskId,
  type: 'mail',
  message: Buffer.from([0, 255, 39, 92]),
  details: '{"a":"\\\\\'ü"}',
});

/** What a store promises, whatever database and library it is on. */
describe.each(KINDS)('the store of $name', (kind) => {
  let server: DatabaseServer;
  let world: StoreWorld;
  let store: OutboxStore;
  beforeAll(async () => {
    server = await kind.start();
    world = await kind.open(server);
    ({ store } = world);
    await createTables(world, kind);
  });
  afterAll(async () => {
    await world.close();
    await server.stop();
  });
  beforeEach(async () => {
    for (const table of ['asynq_outbox', 'asynq_outbox_senders']) await world.sql(`DELETE FROM ${table}`);
  });

  const insert = (...queues: string[]) =>
    world.transaction((tx) =>
      store.insert(
        tx,
        queues.map((queue) => row(queue)),
      ),
    );
  const ids = (rows: readonly { readonly id: number }[] = []) => rows.map(({ id }) => id);

  it('gives rows of committed transactions only, as they were written, once', async () => {
    await insert('a', 'b');
    await world
      .transaction(async (tx) => {
        await store.insert(tx, [row('a')]);
        throw new Error('roll back');
      })
      .catch(() => undefined);
    expect(await store.hasNew([])).toBe(true);
    const { id: sender, rows } = await store.takeSender('me', LEASE);
    expect(rows).toEqual([]);
    const taken = (await store.exchange({ sender, owner: 'me', take: 10, ...NONE }, LEASE))!;
    expect(taken).toMatchObject([{ queue: 'a', message: row('').message, details: row('').details }, { queue: 'b' }]);
    expect(Buffer.isBuffer(taken[0]!.message)).toBe(true);
    expect(taken[1]!.number).toBeGreaterThan(taken[0]!.number);
    expect(taken[0]!.number).toBeGreaterThan(1e15);
    expect(await store.exchange({ sender, owner: 'me', take: 10, ...NONE }, LEASE)).toEqual([]);
    expect(await store.hasNew([])).toBe(false);
    expect(await store.counts()).toMatchObject({ fresh: 0, taken: 2, poisoned: 0 });
    const ended = ids(taken).map((id) => ({ id, state: 'sent' as const }));
    await store.exchange({ sender, owner: 'me', take: 10, except: [], ended }, LEASE);
    expect(await store.counts()).toEqual({ fresh: 0, taken: 0, poisoned: 0, oldest: 0 });
  });

  it('writes more rows at once than one statement has', async () => {
    await insert(...Array.from({ length: 501 }, () => 'a'));
    expect(await store.counts()).toMatchObject({ fresh: 501 });
  });

  it('shows its senders, and poisoned rows by page, and deletes these', async () => {
    await insert('a', 'b', 'c');
    const { id: sender } = await store.takeSender('me', LEASE);
    const rows = (await store.exchange({ sender, owner: 'me', take: 10, ...NONE }, LEASE))!;
    const ended = rows.slice(1).map(({ id }) => ({ id, state: 'poisoned' as const, error: 'bad' }));
    await store.exchange({ sender, owner: 'me', take: 0, except: [], ended }, LEASE);
    expect(await store.senders()).toMatchObject([{ id: sender, owner: 'me', taken: 1 }]);
    const [first, ...none] = await store.poisoned({ limit: 1 });
    expect(none).toEqual([]);
    expect(first).toMatchObject({ id: rows[1]!.id, queue: 'b', type: 'mail', error: 'bad' });
    const [second] = await store.poisoned({ limit: 5, after: first!.id });
    expect(second).toMatchObject({ id: rows[2]!.id, queue: 'c' });
    expect(await store.retryPoisoned(10, [second!.id, rows[0]!.id])).toBe(1);
    expect(await store.dropPoisoned([first!.id, rows[0]!.id])).toBe(1);
    expect(await store.counts()).toMatchObject({ fresh: 1, taken: 1, poisoned: 0 });
    await store.release(sender, 'me');
    expect(await store.senders()).toMatchObject([{ owner: undefined, lease: 0 }]);
  });

  it('finds the rows of tasks that have not ended, whoever has them', async () => {
    const [taken, fresh, sent] = ['taken', 'fresh', 'sent'].map((id) => row('a', id));
    await world.transaction((tx) => store.insert(tx, [taken!, sent!, fresh!]));
    const { id: sender } = await store.takeSender('me', LEASE);
    const rows = (await store.exchange({ sender, owner: 'me', take: 2, ...NONE }, LEASE))!;
    const ended = [{ id: rows[1]!.id, state: 'sent' as const }];
    await store.exchange({ sender, owner: 'me', take: 0, except: [], ended }, LEASE);
    const found = await store.unsent!(['taken', 'sent', 'fresh', 'nobody']);
    const [id, byTask] = [rows[0]!.id, found.toSorted((one, other) => one.id - other.id)];
    expect(byTask).toMatchObject([
      { id, queue: 'a', taskId: 'taken' },
      { queue: 'a', taskId: 'fresh' },
    ]);
  });

  it('numbers rows of a sender ever higher, also when later ids are lower', async () => {
    await insert('late', 'a', 'a');
    const { id: sender } = await store.takeSender('me', LEASE);
    const first = (await store.exchange({ sender, owner: 'me', take: 10, ended: [], except: ['late'] }, LEASE))!;
    const second = (await store.exchange({ sender, owner: 'me', take: 10, ...NONE }, LEASE))!;
    expect(first.map(({ queue }) => queue)).toEqual(['a', 'a']);
    expect(second.map(({ queue }) => queue)).toEqual(['late']);
    expect(second[0]!.number).toBeGreaterThan(first[1]!.number);
  });

  it('gives ordered rows to one relay at a time, and no others with them', async () => {
    await insert('a');
    expect(await store.hasOrdered()).toBe(false);
    await world.transaction((tx) =>
      store.insert(
        tx,
        ['1', '2', '3'].map((id) => ({ ...row('b', id), ordered: true })),
      ),
    );
    expect([await store.hasOrdered(), (await store.counts()).fresh]).toEqual([true, 4]);
    const both = await Promise.allSettled(['me', 'other'].map((owner) => store.takeOrdered(owner, LEASE)));
    const takes = both.map((one) => (one.status === 'fulfilled' ? one.value : undefined));
    const owner = takes[0] ? 'me' : 'other';
    const [{ id: sender, rows }, ...more] = takes.filter((one) => one !== undefined) as [OwnedSender];
    expect([rows, more]).toEqual([[], []]);
    expect(sender).toMatch(/^ordered-[0-9a-f]{28}$/); // of this table alone
    const request = { sender, owner, ended: [], except: [] };
    const taken = (await store.exchange({ ...request, take: 2 }, LEASE))!;
    expect(taken.map(({ queue }) => queue)).toEqual(['b', 'b']);
    const plain = await store.takeSender('third', OVER);
    expect(plain.id).not.toBe(sender);
    const others = (await store.exchange({ ...request, sender: plain.id, owner: 'third', take: 9 }, OVER))!;
    expect(others.map(({ queue }) => queue)).toEqual(['a']);
    const ended = [{ id: taken[0]!.id, state: 'poisoned' as const, error: 'bad' }];
    expect(await store.exchange({ ...request, take: 0, ended }, OVER)).toEqual([]);
    expect(await store.retryPoisoned(9)).toBe(1);
    expect((await store.takeSender('fourth', LEASE)).id).toBe(plain.id);
    const next = (await store.takeOrdered('fourth', LEASE))!;
    expect(ids(next.rows)).toEqual([taken[1]!.id]);
    expect(await store.exchange({ ...request, take: 9 }, LEASE)).toBeUndefined();
    const last = (await store.exchange({ ...request, owner: 'fourth', take: 9 }, LEASE))!;
    expect(ids(last)).toEqual([taken[0]!.id, taken[1]!.id + 1]);
    expect(last[0]!.number).toBeGreaterThan(taken[1]!.number);
  });

  it('gives a row to one of two relays, and neither waits for the other', async () => {
    await insert(...Array.from({ length: 20 }, () => 'a'));
    const one = await store.takeSender('one', LEASE);
    const two = await store.takeSender('two', LEASE);
    expect(two.id).not.toBe(one.id);
    const takes = await Promise.all(
      [one, two, one, two].map(({ id }) =>
        store.exchange({ sender: id, owner: id === one.id ? 'one' : 'two', take: 5, ...NONE }, LEASE),
      ),
    );
    const all = takes.flatMap((rows) => ids(rows!));
    expect(new Set(all).size).toBe(all.length);
  });

  it('lets only the owner of a sender end and take rows', async () => {
    await insert('a');
    const { id: sender } = await store.takeSender('me', OVER);
    const rows = await store.exchange({ sender, owner: 'me', take: 1, ...NONE }, OVER);
    const orphan = (await store.takeOrphan('other', LEASE))!;
    expect(orphan.id).toBe(sender);
    expect(orphan.rows).toEqual(rows);
    const ended = [{ id: rows![0]!.id, state: 'sent' as const }];
    expect(await store.exchange({ sender, owner: 'me', take: 1, except: [], ended }, LEASE)).toBeUndefined();
    expect(await store.counts()).toMatchObject({ taken: 1 });
    await store.release(sender, 'me'); // not its own any more
    expect(await store.takeOrphan('third', LEASE)).toBeUndefined();
    expect((await store.takeSender('other', LEASE)).rows).toEqual(rows);
    await store.release(sender, 'other');
    expect((await store.takeSender('fourth', LEASE)).id).toBe(sender);
  });

  it('takes a sender whose lease a clock has written that was an hour ahead', async () => {
    await insert('a');
    const { id: sender } = await store.takeSender('me', LEASE);
    const rows = await store.exchange({ sender, owner: 'me', take: 1, ...NONE }, LEASE);
    expect(await store.takeOrphan('other', LEASE)).toBeUndefined();
    await world.sql('UPDATE asynq_outbox_senders SET owned_until = owned_until + 3600000000');
    expect(await store.takeOrphan('other', LEASE)).toEqual({ id: sender, number: rows![0]!.number, rows });
  });

  it('abandons a sender of the owner, with its rows', async () => {
    await insert('a');
    await world.transaction((tx) => store.insert(tx, [{ ...row('b'), ordered: true }]));
    const { id: plain } = await store.takeSender('me', LEASE);
    const { id: ordered } = (await store.takeOrdered('me', LEASE))!;
    for (const sender of [plain, ordered]) {
      await store.exchange({ sender, owner: 'me', take: 1, ...NONE }, LEASE);
      await store.abandon!(sender, 'other');
    }
    expect(await store.counts()).toMatchObject({ fresh: 0, taken: 2 });
    for (const sender of [plain, ordered]) await store.abandon!(sender, 'me');
    expect(await store.counts()).toMatchObject({ fresh: 2, taken: 0 });
    expect(await store.senders()).toEqual([]);
    expect((await store.takeSender('me', LEASE)).id).not.toBe(plain);
    const next = (await store.takeOrdered('me', LEASE))!;
    expect(next.id).not.toBe(ordered);
    expect(await store.exchange({ sender: next.id, owner: 'me', take: 9, ...NONE }, LEASE)).toMatchObject([
      { queue: 'b' },
    ]);
  });

  it('keeps poisoned rows, and makes them new again on demand', async () => {
    await insert('a', 'a', 'a');
    const { id: sender } = await store.takeSender('me', LEASE);
    const rows = (await store.exchange({ sender, owner: 'me', take: 10, ...NONE }, LEASE))!;
    const ended = rows.map(({ id }, index) =>
      index === 0
        ? { id, state: 'poisoned' as const, error: "it's bad" }
        : { id, state: 'refused' as const, error: 'taken' },
    );
    await store.exchange({ sender, owner: 'me', take: 0, except: [], ended }, LEASE);
    expect(await store.counts()).toMatchObject({ fresh: 0, taken: 0, poisoned: 1 });
    expect(await store.purge(OVER, 10)).toBe(2);
    expect(await store.retryPoisoned(10)).toBe(1);
    expect(await store.retryPoisoned(10)).toBe(0);
    expect(await store.counts()).toMatchObject({ fresh: 1, poisoned: 0 });
  });

  it('notes an end, however long its reason is, and whatever is in it', async () => {
    await insert('a');
    const { id: sender } = await store.takeSender('me', LEASE);
    const request = { sender, owner: 'me', except: [] };
    const [taken] = (await store.exchange({ ...request, take: 1, ended: [] }, LEASE))!;
    const ended = [{ id: taken!.id, state: 'poisoned' as const, error: `\0\ud800${'ü'.repeat(100_000)}` }];
    await store.exchange({ ...request, take: 0, ended }, LEASE);
    expect((await store.poisoned({ limit: 1 }))[0]!.error).toBe(`��${'ü'.repeat(9_998)}`);
  });

  it('removes ended rows that are old enough', async () => {
    await insert('a', 'a', 'a');
    const { id: sender } = await store.takeSender('me', LEASE);
    const rows = (await store.exchange({ sender, owner: 'me', take: 2, ...NONE }, LEASE))!;
    const ended = ids(rows).map((id) => ({ id, state: 'sent' as const }));
    await store.exchange({ sender, owner: 'me', take: 0, except: [], ended }, LEASE);
    expect(await store.purge(3_600_000, 10)).toBe(0);
    expect(await store.purge(OVER, 1)).toBe(1);
    expect(await store.purge(OVER, 10)).toBe(1);
    expect(await store.counts()).toMatchObject({ fresh: 1 });
  });

  it('does all of an exchange or nothing, when a statement fails in between', async () => {
    await insert('a', 'a');
    const { id: sender } = await store.takeSender('me', LEASE);
    const request = { sender, owner: 'me', except: [] };
    const [row] = (await store.exchange({ ...request, take: 1, ended: [] }, LEASE))!;
    const ended = [{ id: row!.id, state: 'sent' as const }];
    // The last statement writes this column; those before it have ended one row and taken another.
    await world.sql('ALTER TABLE asynq_outbox_senders RENAME COLUMN owned_until TO away');
    await expect(store.exchange({ ...request, take: 1, ended }, LEASE)).rejects.toThrow();
    await world.sql('ALTER TABLE asynq_outbox_senders RENAME COLUMN away TO owned_until');
    expect(await store.counts()).toMatchObject({ fresh: 1, taken: 1 });
    const [next] = (await store.exchange({ ...request, take: 1, ended }, LEASE))!;
    expect(next!.number).toBeGreaterThan(row!.number);
    expect(await store.counts()).toMatchObject({ fresh: 0, taken: 1 });
  });

  it('fails its check without its tables, and says how to make them', async () => {
    onTestFinished(() => createTables(world, kind));
    await store.check();
    await world.sql('DROP TABLE asynq_outbox_senders');
    await expect(store.check()).rejects.toMatchObject({
      code: 'ASYNQ_INVALID_OPTION',
      message: expect.stringMatching(/npx nestjs-asynq outbox sql --dialect (postgres|mysql|sqlite)" prints/) as string,
    });
  });

  it('says so when its table is of another version', async () => {
    onTestFinished(() => createTables(world, kind));
    await world.sql('ALTER TABLE asynq_outbox DROP COLUMN details');
    await expect(store.check()).rejects.toThrow(/are missing or of another version \(.*details.*\)/);
  });

  it('names an index that its table does not have, and says how to make it', async () => {
    const create = outboxSchema(kind.dialect).filter((text) => text.startsWith('CREATE INDEX'));
    for (const statement of create) {
      const index = statement.split(' ')[2]!;
      await world.sql(`DROP INDEX ${index}${kind.dialect === 'mysql' ? ' ON asynq_outbox' : ''}`);
      await expect(store.check()).rejects.toMatchObject({
        code: 'ASYNQ_INVALID_OPTION',
        message: `the table "asynq_outbox" of the outbox has no index "${index}": an older version has made it; run ${statement}`,
      });
      await world.sql(statement);
    }
    await store.check();
  });

  it('refuses what is no transaction', async () => {
    for (const tx of [{}, world.noTransaction]) {
      await expect(store.insert(tx, [row('a')])).rejects.toMatchObject({ code: 'ASYNQ_INVALID_TASK' });
    }
    expect(await world.sql('SELECT * FROM asynq_outbox')).toEqual([]);
  });

  it('tells of the commit of a transaction, if its library can, and of nothing else', async () => {
    expect(store.afterCommit !== undefined).toBe(kind.commits ?? false);
    if (!store.afterCommit) return;
    let commits = 0;
    const watch = (tx: unknown) => store.afterCommit!(tx, () => void commits++);
    await world.transaction(async (tx) => {
      await store.insert(tx, [row('a')]);
      watch(tx);
      await world.savepoint!(tx, async (inner) => {
        await store.insert(inner, [row('a')]);
        watch(inner);
      });
      await store.insert(tx, [row('a')]);
      expect(commits).toBe(0);
    });
    await expect.poll(() => commits).toBe(2);
    const failed = new Error('roll back');
    const run = world.transaction(async (tx) => {
      await store.insert(tx, [row('a')]);
      watch(tx);
      throw failed;
    });
    await expect(run).rejects.toBe(failed);
    await insert('a');
    expect(commits).toBe(2);
    expect(await store.counts()).toMatchObject({ fresh: 4 });
  });

  it('tells of rows when they are committed, if its database can', async () => {
    expect(store.listen !== undefined).toBe(kind.listens);
    if (!store.listen) return;
    let told = (): void => {};
    const notice = new Promise<void>((resolve) => (told = resolve));
    const end = await store.listen(told, () => undefined);
    await insert('a');
    await notice;
    await end();
  });
});

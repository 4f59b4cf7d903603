import { randomUUID } from 'node:crypto';
import Database from 'libsql';
import { kyselyOutbox, drizzleOutbox, type OutboxStore, sqliteOutbox, typeormOutbox } from 'nestjs-asynq/outbox';
import { DataSource } from 'typeorm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { DatabaseServer } from '../support/database-server.js';
import { TYPEORM_SQLITE } from './library-stores.js';
import { createTables, fileOf, SQLITE, type StoreWorld } from './stores.js';

const row = () => ({ queue: 'a', taskId: randomUUID(), type: 'mail', message: Buffer.from('m'), details: '{}' });

let server: DatabaseServer;
let world: StoreWorld;
let store: OutboxStore;
beforeEach(async () => {
  server = await SQLITE.start();
  world = await SQLITE.open(server);
  ({ store } = world);
  await createTables(world, SQLITE);
});
afterEach(async () => {
  await world.close();
  await server.stop();
});

describe('an outbox in SQLite', () => {
  it('waits for an open transaction of the same process, and does not block it', async () => {
    const sender = await store.takeSender('me', 30_000);
    let taking: Promise<unknown> | undefined;
    await world.transaction(async (tx) => {
      await store.insert(tx, [row()]);
      taking = store.exchange({ sender: sender.id, owner: 'me', take: 10, ended: [], except: [] }, 30_000);
      await new Promise(setImmediate);
      await store.insert(tx, [row()]);
    });
    expect(await taking).toHaveLength(2);
  });

  it('keeps what it has done when a transaction of the application is rolled back', async () => {
    const typeorm = await TYPEORM_SQLITE.open(server);
    await typeorm.transaction((tx) => typeorm.store.insert(tx, [row()]));
    const { id: sender } = await typeorm.store.takeSender('me', 30_000);
    const request = { sender, owner: 'me', take: 10, ended: [], except: [] };
    const [taken] = (await typeorm.store.exchange(request, 30_000))!;
    let ending: Promise<unknown> | undefined;
    await typeorm
      .transaction(async (tx) => {
        await typeorm.store.insert(tx, [row()]);
        const ended = [{ id: taken!.id, state: 'sent' as const }];
        ending = typeorm.store.exchange({ ...request, ended }, 30_000);
        await new Promise(setImmediate);
        throw new Error('roll back');
      })
      .catch(() => undefined);
    expect(await ending).toEqual([]);
    expect(await typeorm.store.counts()).toMatchObject({ fresh: 0, taken: 0 });
    await typeorm.close();
  });

  it('writes no row outside of a transaction', async () => {
    const db = new Database(fileOf(server));
    await expect(sqliteOutbox(db).insert(db, [row()])).rejects.toMatchObject({
      code: 'ASYNQ_INVALID_TASK',
      message: expect.stringContaining('the connection has no open transaction') as string,
    });
    db.close();
  });

  it('needs a file', async () => {
    await expect(sqliteOutbox(new Database(':memory:')).check()).rejects.toThrow(/^an outbox in SQLite needs a file/);
  });

  it('is not for what has another interface', () => {
    expect(() => sqliteOutbox({} as never)).toThrow('sqliteOutbox takes a Database of better-sqlite3 or libsql');
    expect(() => kyselyOutbox({} as never)).toThrow('kyselyOutbox takes a Kysely');
    expect(() => drizzleOutbox({} as never)).toThrow('drizzleOutbox takes a database of');
    expect(() => typeormOutbox(new DataSource({ type: 'sqljs' }))).toThrow('not "sqljs"');
    class Other {
      execute() {}
      transaction() {}
    }
    Object.assign(Other, { [Symbol.for('drizzle:entityKind')]: 'LibSQLDatabase' });
    expect(() => drizzleOutbox(new Other() as never)).toThrow(
      'drizzleOutbox takes a database of drizzle-orm/node-postgres or drizzle-orm/mysql2, not LibSQLDatabase',
    );
  });
});
